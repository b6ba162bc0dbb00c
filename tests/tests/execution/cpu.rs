//! Golden models on the CPU executor: as near to the exact logits as the engine is that made them.

use std::sync::Arc;

use tpc_core::golden::{Golden, distance};
use tpc_cpu::{CpuExecutor, CpuOptions, CpuTarget};
use tpc_ir::DType;
use tpc_ir::program::verify;
use tpc_passes::assemble;
use tpc_runtime::{Options, Session};
use tpc_tests::{Sweep, goldens};

use crate::support::{
    FileWeights, config, golden, name, one_by_one, placement, plan, shape, whole,
};

/// The distance of the engine's own logits from the exact ones.
fn engine(path: &std::path::Path, exact: &Golden, name: &str) -> Option<f64> {
    // The repository carries the exact logits only.
    let beside = path.with_extension("logits");
    let shared = tpc_tests::shared().map(|s| s.join("golden").join(format!("{name}.logits")));
    let own = [Some(beside), shared]
        .into_iter()
        .flatten()
        .find(|p| p.exists())?;
    let bytes = std::fs::read(&own).unwrap_or_else(|e| panic!("{}: {e}", own.display()));
    let own = Golden::parse(name, &bytes).unwrap_or_else(|e| panic!("{e}"));
    let wide = |g: &Golden| g.logits.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    Some(distance(wide(exact), wide(&own)).nmse)
}

/// The distance that is allowed: that of the engine and a little more; next to nothing where weights are not quantised.
fn allowed(name: &str, engine: Option<f64>) -> f64 {
    if ["-f32", "-f16", "-bf16"].iter().any(|t| name.ends_with(t)) {
        return 5e-6;
    }
    let engine = engine.unwrap_or(4e-4);
    (engine + 1e-4)
        .max(engine * 1.1)
        .min(engine.max(5e-4) * 1.1)
}

/// What a router costs that chooses other experts, where two are nearly as good.
const FLIPPED: f64 = 5e-3;

#[test]
fn golden_models_agree_on_the_cpu() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    let mut flipped = std::collections::BTreeSet::new();
    for path in goldens() {
        let name = name(&path);
        if !name.contains(&only) {
            continue;
        }
        let exact = golden(&path);
        let allowed = allowed(&name, engine(&path, &exact, &name));
        let routed = name.contains("-moe-");
        let tokens = &exact.tokens;
        let all: &[usize] = &[1, 2, 3, 4];
        for &devices in Sweep::asked().pick(&all[..3], all) {
            let (file, compiled) = plan(&path, &placement(devices, DType::F16));
            let config = config(&compiled, tokens.len());
            let shapes = [shape(&config, 1), shape(&config, tokens.len())];
            let program = assemble(&compiled.programs, &shapes, &CpuTarget).expect("it is small");
            if let Err(errors) = verify(&program) {
                failed.push(format!(
                    "{name} on {devices}: {}: {}",
                    errors[0].code, errors[0]
                ));
                continue;
            }
            let program = Arc::new(program);
            let session = |threads| {
                let options = CpuOptions {
                    threads,
                    options: Options::default(),
                    profile: false,
                };
                let executor = CpuExecutor::new(Arc::clone(&program), &FileWeights(&file), options);
                executor.and_then(|e| Session::with_executor(e, config))
            };
            let mut two = match session(2) {
                Ok(session) => session,
                Err(e) => {
                    failed.push(format!("{name} on {devices}: {e}"));
                    continue;
                }
            };
            let found = whole(&mut two, tokens);
            let wanted = exact.logits.iter().map(|&x| f64::from(x));
            let d = distance(wanted, found.iter().copied());
            if routed && d.nmse > allowed && d.nmse <= FLIPPED {
                println!(
                    "{name} on {devices}: NMSE {:e}, {allowed:e} without a flip",
                    d.nmse
                );
                flipped.insert(name.clone());
            } else if d.nmse.is_nan() || d.nmse > allowed {
                failed.push(format!(
                    "{name} on {devices}: NMSE {:e}, {allowed:e} allowed",
                    d.nmse
                ));
            }
            let each = one_by_one(&mut session(1).expect("it has loaded before"), tokens);
            let d = distance(found.iter().copied(), each.iter().copied());
            if d.nmse.is_nan() || d.max_abs > 1e-5 {
                failed.push(format!(
                    "{name} on {devices}: token by token differs by {:e}",
                    d.max_abs
                ));
            }
        }
    }
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
    // Rounding flips few routers that the engine's does not.
    assert!(flipped.len() <= 2, "{flipped:?}");
}
