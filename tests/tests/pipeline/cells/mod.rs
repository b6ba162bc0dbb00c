//! KV caches divided by cells: proved plans, exact logits, bytes per device.

mod random;

use std::collections::BTreeSet;
use std::path::Path;

use tpc_core::golden::distance;
use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::{CacheSplit, Placement};
use tpc_ir::{Op, Place};
use tpc_runtime::{Batch, Session, SessionConfig};
use tpc_tests::{Sweep, goldens, headers};

use super::support::{FileWeights, golden, placement, plan, round_trip, run};

/// The maximum NMSE from an engine's logits, computed with the engine's rounding.
const AGAINST_GOLDEN: f64 = 1e-8;
/// The maximum NMSE if only the order of sums differs.
const AGAINST_WHOLE: f64 = 1e-11;
/// Tokens that fill blocks of several devices.
const LONG: usize = 200;

pub(super) fn by_cells(devices: usize) -> Placement {
    Placement {
        cache_split: CacheSplit::Cells,
        ..placement(devices)
    }
}

/// Returns the numbers of parts of the programs' states.
fn parts(compiled: &CompiledModel) -> BTreeSet<u64> {
    let of = compiled.programs.insts().filter_map(|(_, i)| match &i.op {
        Op::State(state) => state.cells.map(|c| c.of),
        _ => None,
    });
    of.collect()
}

fn cache_bytes(compiled: &CompiledModel) -> Vec<u64> {
    let prints = compiled.footprints();
    let device = |p: &&Place| matches!(p, Place::Device(_));
    prints.keys().filter(device).map(|p| prints[p].kv).collect()
}

fn tokens() -> Vec<u32> {
    (0..LONG as u32).map(|i| (i * 37 + i * i) % 100).collect()
}

fn attends(compiled: &CompiledModel) -> bool {
    let mut ops = compiled.model.graph.insts();
    ops.any(|(_, i)| {
        matches!(i.op, Op::State(_)) && {
            let ty = &compiled.model.graph.value(i.results[0]).ty;
            ty.counts_cells()
        }
    })
}

fn check(path: &Path, devices: usize, seen: &mut usize) {
    let name = path.display();
    let Some((file, compiled)) = plan(path, &by_cells(devices)) else {
        return;
    };
    if !attends(&compiled) {
        return;
    }
    let golden = golden(path);
    let got = run(&compiled.programs, &file, &compiled, &golden.tokens);
    let want = golden.logits.iter().map(|&x| f64::from(x));
    let d = distance(want, got);
    let nmse = d.nmse;
    assert!(nmse <= AGAINST_GOLDEN, "{name} on {devices}: NMSE {nmse:e}");
    round_trip(&compiled.sharded);
    round_trip(&compiled.programs);
    if parts(&compiled).contains(&(devices as u64)) {
        *seen += 1;
    }
}

#[test]
fn golden_models_agree_with_caches_divided_by_cells() {
    let mut seen = 0;
    for (i, path) in goldens().iter().enumerate() {
        for (k, devices) in [2, 3, 4, 8].into_iter().enumerate() {
            // Each model takes one number of devices; `TPC_FULL` takes all.
            if std::env::var_os("TPC_FULL").is_some() || i % 4 == k {
                check(path, devices, &mut seen);
            }
        }
    }
    assert!(seen >= 5, "only {seen} plans divide caches by cells");
}

#[test]
fn long_texts_agree_with_one_device() {
    let all = std::env::var_os("TPC_FULL").is_some();
    let names = ["deepseek2", "gpt-oss", "bloom", "gemma2", "qwen3next"];
    for path in goldens() {
        let name = path.display().to_string();
        if !all && !names.iter().any(|n| name.contains(n)) {
            continue;
        }
        let Some((file, single)) = plan(&path, &placement(1)) else {
            continue;
        };
        if !attends(&single) {
            continue;
        }
        let tokens = tokens();
        let whole = run(&single.model.graph, &file, &single, &tokens);
        for devices in [2, 3] {
            let (_, compiled) = plan(&path, &by_cells(devices)).expect("the model is known");
            let window = compiled.model.summary.window;
            let mut config = SessionConfig::new(tokens.len());
            if let Some(window) = window {
                config = config.with_window(window, tokens.len());
            }
            let source = FileWeights(&file);
            let mut session = Session::new(&compiled.programs, &source, config)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            // A batch, then single tokens.
            let head = tokens.len() - 3;
            let batch = Batch::sequence(&tokens[..head], 0, 0);
            session
                .decode(&batch)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let mut last = Vec::new();
            for (i, token) in tokens.iter().enumerate().skip(head) {
                let batch = Batch::sequence(&[*token], i as u32, 0);
                let out = session
                    .decode(&batch)
                    .unwrap_or_else(|e| panic!("{name}: {e}"));
                last = out.reals().expect("logits are real").to_vec();
            }
            let expected = whole[whole.len() - last.len()..].iter().copied();
            let nmse = distance(expected, last).nmse;
            assert!(nmse <= AGAINST_WHOLE, "{name} on {devices}: NMSE {nmse:e}");
        }
    }
}

#[test]
fn devices_store_one_copy_together() {
    let mut compared = 0;
    for path in goldens() {
        let name = path.display().to_string();
        let Some((_, single)) = plan(&path, &placement(1)) else {
            continue;
        };
        let one: u64 = cache_bytes(&single).iter().sum();
        let ctx_size = Some(256);
        for devices in [2, 4] {
            let of = Placement {
                ctx_size,
                ..by_cells(devices)
            };
            let (_, compiled) = plan(&path, &of).expect("the model is known");
            let alone = Placement {
                ctx_size,
                ..placement(1)
            };
            let (_, alone) = plan(&path, &alone).expect("the model is known");
            let whole = cache_bytes(&alone).iter().sum::<u64>();
            let all = cache_bytes(&compiled);
            if parts(&compiled).is_empty() || one == 0 {
                continue;
            }
            // Windows are rounded up to whole rounds of blocks.
            if compiled.model.summary.window.is_none() {
                assert_eq!(all.iter().sum::<u64>(), whole, "{name} on {devices}");
            }
            compared += 1;
        }
    }
    assert!(compared >= 5, "only {compared} plans");
}

/// Returns the bytes that the devices store together by cells, and the bytes of one copy.
fn stored(path: &Path, devices: usize) -> Option<(u64, u64)> {
    let with = |placement: Placement| Placement {
        ctx_size: Some(8192),
        ..placement
    };
    let (_, compiled) = plan(path, &with(by_cells(devices)))?;
    let (_, alone) = plan(path, &with(placement(1)))?;
    // Windows are rounded up to whole rounds of blocks, and recurrent states have no cells.
    let whole = compiled.model.summary.window.is_none() && !parts(&compiled).is_empty();
    let sum = |of: &CompiledModel| cache_bytes(of).iter().sum();
    whole.then(|| (sum(&compiled), sum(&alone)))
}

#[test]
fn devices_store_one_copy_of_the_caches_of_real_models() {
    let counts = Sweep::asked().pick(vec![8], vec![2, 4, 8]);
    let mut compared = 0;
    for (i, path) in headers().iter().enumerate() {
        if Sweep::asked() == Sweep::Sample && i % 4 != 0 {
            continue;
        }
        for &devices in &counts {
            if let Some((all, one)) = stored(path, devices) {
                assert_eq!(all, one, "{} on {devices}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared >= 2, "only {compared} plans");
}
