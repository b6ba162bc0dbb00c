//! Golden models on one to four devices.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tpc_core::golden::distance;
use tpc_ir::{DType, Op};
use tpc_tests::{Sweep, goldens};

use super::{ALONE, BY_SIZE, MOST, Subject, allowed, engine, exact};
use crate::support::{golden, name, placement};

/// If a router chooses other experts, the maximum distance to a reference with the CPU's rounding, as a fraction of the
/// distance to the exact logits.
const LEFT: f64 = 0.1;

fn beyond(distance: f64, allowed: f64) -> bool {
    distance.is_nan() || distance > allowed
}

#[test]
fn golden_models_agree_on_the_cpu() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    let mut flipped: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in goldens() {
        let name = name(&path);
        if !name.contains(&only) {
            continue;
        }
        let golden = golden(&path);
        let exact = exact(&golden);
        let engine = engine(&path, &golden, &name);
        let rough: &[usize] = Sweep::asked().pick(&[1, 3], &[1, 2, 3, 4]);
        for devices in 1..=4 {
            let subject = Subject::new(&path, &placement(devices, DType::F16), &golden.tokens);
            let subject = subject.expect("it has a plan");
            let what = format!("{name} on {devices}");
            let from_exact =
                |found: &[f64]| distance(exact.iter().copied(), found.iter().copied()).nmse;
            let found = match subject.logits(BY_SIZE) {
                Ok(found) => found,
                Err(e) => {
                    failed.push(format!("{what}: {e}"));
                    continue;
                }
            };
            let (nmse, most) = (from_exact(&found), allowed(&name, engine));
            println!("{what}: NMSE {nmse:.2e}, {most:.2e} allowed");
            if beyond(nmse, most) {
                let from = subject.left_from_rounded(&found, BY_SIZE);
                failed.push(format!(
                    "{what}: NMSE {nmse:e}, {most:e} allowed, {from:e} from the reference with its rounding"
                ));
            }
            let alone = subject.alone(&found);
            if beyond(alone, ALONE) {
                failed.push(format!("{what}: token by token differs by {alone:e}"));
            }
            if !rough.contains(&devices) {
                continue;
            }
            match one_term(&subject, (&name, engine), from_exact) {
                Ok(None) => {}
                Ok(Some(far)) => flipped
                    .entry(name.clone())
                    .or_default()
                    .push(format!("{what}: {far}")),
                Err(far) => failed.push(format!("{what}: {far}")),
            }
        }
    }
    println!("{flipped:#?}");
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
    assert!(flipped.len() <= 3, "{flipped:#?}");
}

fn terms(path: &Path, devices: usize) -> BTreeMap<String, usize> {
    let tokens = golden(path).tokens;
    let subject = Subject::new(path, &placement(devices, DType::F16), &tokens).expect("a plan");
    let executor = subject.executor(1, BY_SIZE).expect("it loads");
    let graph = &subject.program.graph;
    let mut out = BTreeMap::new();
    for (inst, terms) in executor.rounded_products() {
        if let Op::Weight(weight) = graph.def_op(graph.inst(inst).operands[0]) {
            let before = out.insert(weight.tensor.clone(), terms);
            assert!(
                before.is_none_or(|before| before == terms),
                "{}",
                weight.tensor
            );
        }
    }
    out
}

#[test]
fn a_product_has_the_same_terms_on_any_number_of_devices() {
    let both = |path: &PathBuf| {
        let name = name(path);
        name.starts_with("mamba2") || name.starts_with("qwen3next")
    };
    let models: Vec<PathBuf> = goldens().into_iter().filter(both).collect();
    for path in &models {
        let one = terms(path, 1);
        assert!(one.values().any(|t| *t == 1) && one.values().any(|t| *t == 2));
        for devices in [2, 4] {
            assert_eq!(terms(path, devices), one, "{} on {devices}", name(path));
        }
    }
}

/// Runs the model with one-term activations, as for large models. If the NMSE exceeds the limit, the reference with the
/// same rounding must have about the same logits: rounding may change a router's choice, and a recurrence may amplify
/// an error. Describes such a difference; returns an error if the reference does not show it.
fn one_term(
    subject: &Subject,
    (name, engine): (&str, Option<f64>),
    from_exact: impl Fn(&[f64]) -> f64,
) -> Result<Option<String>, String> {
    let found = subject.logits(0).expect("it has loaded before");
    let nmse = from_exact(&found);
    // The engine's NMSE exceeds the limit if its routers choose other experts.
    let most = match engine {
        Some(engine) if engine > MOST => (engine + 1e-4).min(1.1 * engine),
        _ => allowed(name, engine),
    };
    println!("    with one term {nmse:.2e}");
    if !beyond(nmse, most) {
        return Ok(None);
    }
    let from = subject.left_from_rounded(&found, 0);
    let far = format!(
        "with one term NMSE {nmse:e}, {most:e} allowed, {from:e} from the reference with its rounding"
    );
    match from <= LEFT * nmse {
        true => Ok(Some(far)),
        false => {
            let plain = from_exact(&subject.reference([].into()));
            Err(format!("{far}, which has {plain:e} without"))
        }
    }
}
