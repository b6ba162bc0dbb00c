//! Golden models: the reference executor agrees with the exact logits, on one device and split.

use crate::support::verified;
use tpc_core::golden::distance;
use tpc_ir::{Verified, stage};
use tpc_tests::goldens;

use super::support::{compiled, golden, placement, plan, round_trip, run};
use super::synthetic::make;

/// The maximum NMSE from an engine's logits, computed with the engine's rounding.
const AGAINST_GOLDEN: f64 = 1e-8;
/// The maximum NMSE if only the order of sums differs.
const AGAINST_UNSHARDED: f64 = 1e-11;

#[test]
fn golden_models_agree_on_any_number_of_devices() {
    let mut seen = std::collections::BTreeSet::new();
    for path in goldens() {
        let Some((file, single)) = plan(&path, &placement(1)) else {
            continue;
        };
        seen.insert(single.model.summary.arch);
        let golden = golden(&path);
        let want = || golden.logits.iter().map(|&x| f64::from(x));
        let name = path
            .file_stem()
            .expect("a file name")
            .to_string_lossy()
            .into_owned();
        let whole = run(&single.model.graph, &file, &single, &golden.tokens);
        let d = distance(want(), whole.iter().copied());
        assert!(
            d.nmse <= AGAINST_GOLDEN,
            "{name}: the model's graph: NMSE {:e}",
            d.nmse
        );
        round_trip(&single.model.graph);
        for devices in [1, 2, 3, 4, 8] {
            let Some((file, compiled)) = plan(&path, &placement(devices)) else {
                continue;
            };
            let split = compiled
                .sharded
                .values()
                .any(|(_, v)| v.sharding.is_split());
            assert_eq!(
                split,
                devices > 1,
                "{name} on {devices}: several devices split, one does not"
            );
            let got = run(&compiled.programs, &file, &compiled, &golden.tokens);
            let d = distance(want(), got.iter().copied());
            assert!(
                d.nmse <= AGAINST_GOLDEN,
                "{name} on {devices}: NMSE {:e} against the golden logits",
                d.nmse
            );
            let d = distance(whole.iter().copied(), got);
            assert!(
                d.nmse <= AGAINST_UNSHARDED,
                "{name} on {devices}: NMSE {:e} against one device",
                d.nmse
            );
            round_trip(&compiled.sharded);
            round_trip(&compiled.programs);
        }
    }
    for arch in [
        "bloom",
        "gemma3",
        "gemma4",
        "gpt2",
        "gpt-oss",
        "granitemoe",
        "llama",
        "olmo2",
        "phi3",
        "qwen2",
    ] {
        assert!(seen.contains(arch), "no golden model of {arch} ran");
    }
}

#[test]
fn models_saved_by_another_program_agree() {
    // The file was saved with every key of llama.cpp; most are 0 or false.
    let Some(shared) = tpc_tests::shared() else {
        return;
    };
    for path in tpc_tests::files(&[shared.join("golden2")], ".gguf") {
        let golden = golden(&path);
        for devices in [1, 2, 4] {
            let (file, compiled) = plan(&path, &placement(devices)).expect("granitemoe is lowered");
            let got = run(&compiled.programs, &file, &compiled, &golden.tokens);
            let d = distance(golden.logits.iter().map(|&x| f64::from(x)), got);
            assert!(
                d.nmse <= AGAINST_GOLDEN,
                "{} on {devices}: NMSE {:e}",
                path.display(),
                d.nmse
            );
        }
    }
}

#[test]
fn a_wrong_program_is_noticed() {
    // Remove one all-reduce: the logits must differ, otherwise the comparison is useless.
    let path = goldens()
        .into_iter()
        .find(|p| p.to_string_lossy().contains("qwen2-dense"))
        .expect("in the repository");
    let golden = golden(&path);
    let (file, compiled) = plan(&path, &placement(2)).expect("qwen2 is lowered");
    let text = compiled.programs.to_string();
    let line = text
        .lines()
        .find(|l| l.contains("= all_reduce"))
        .expect("two devices reduce");
    let (results, operands) = line.split_once(" = all_reduce ").expect("checked");
    let replaced: Vec<String> = results
        .split(", v")
        .zip(operands.split(", "))
        .map(|(r, o)| {
            format!(
                "{}{r} = scale {o} {{scale = 1.0}}",
                if r.starts_with('v') { "" } else { "v" }
            )
        })
        .collect();
    let faulty = text.replace(line, &replaced.join("\n"));
    let faulty = tpc_ir::text::parse(&faulty)
        .unwrap_or_else(|e| panic!("{}", e[0]))
        .graph;
    let faulty: Verified<stage::Programs> = verified(faulty);
    let got = run(&faulty, &file, &compiled, &golden.tokens);
    let d = distance(golden.logits.iter().map(|&x| f64::from(x)), got);
    assert!(d.nmse > 1e-3, "NMSE {:e}", d.nmse);
}

#[test]
fn a_parallel_residual_needs_one_all_reduce_per_layer() {
    let file = make("command-r:layers=3,embd=64,heads=4,ff=128,vocab=64,ctx=32,type=f32");
    let compiled = compiled(&file, &placement(2)).expect("a plan");
    for layer in 0..compiled.model.summary.n_layer as u32 {
        let reduces = |i: &tpc_ir::InstData| matches!(i.op, tpc_ir::Op::AllReduce(_));
        let n = compiled
            .sharded
            .insts()
            .filter(|(_, i)| i.layer == Some(layer) && reduces(i))
            .count();
        let last = layer as u64 + 1 == compiled.model.summary.n_layer;
        assert!(n == 1 || last && n == 0, "layer {layer} has {n}");
    }
    let all = compiled
        .sharded
        .insts()
        .filter(|(_, i)| matches!(i.op, tpc_ir::Op::AllReduce(_)))
        .count();
    let vocabulary = usize::from(
        compiled
            .sharded
            .classes
            .iter()
            .any(|c| c.name == "vocabulary"),
    );
    assert_eq!(all, compiled.model.summary.n_layer as usize + vocabulary);
}
