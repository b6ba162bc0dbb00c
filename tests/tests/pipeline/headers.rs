//! tpc plans headers of real models for 1 to 8 devices, with consistent totals.

use std::collections::BTreeMap;

use tpc_core::pipeline::{CompiledModel, compile_capture};
use tpc_core::report::PlanReport;
use tpc_ggml::capture;
use tpc_ir::budget::Limits;
use tpc_ir::{Op, Place, Resource};
use tpc_lint::plan_report;
use tpc_tests::{captures, headers};

use super::support::{placement, plan, round_trip};

fn used_bytes(compiled: &CompiledModel, report: &PlanReport) -> u64 {
    assert!(
        compiled.model.summary.unused.is_empty(),
        "{:?}",
        compiled.model.summary.unused
    );
    report.model.bytes - report.model.unused_bytes
}

/// Returns the bytes of each tensor on all devices, counted index by index.
fn bytes_by_tensor(compiled: &CompiledModel) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for (_, inst) in compiled.programs.insts() {
        if let Op::Weight(w) = &inst.op {
            let bytes = compiled
                .programs
                .value(inst.results[0])
                .ty
                .bytes(&tpc_ir::Bindings::default());
            *out.entry(w.tensor.clone()).or_insert(0) +=
                bytes.expect("weights have constant sizes");
        }
    }
    out
}

/// Counts the all-reduces from the first layer on. The last layer's second one may follow the selection of output rows;
/// it counts, too.
fn reductions(compiled: &CompiledModel) -> usize {
    let insts = || compiled.sharded.insts().map(|(_, i)| i);
    let first = insts().position(|i| i.layer.is_some()).unwrap_or(0);
    insts()
        .skip(first)
        .filter(|i| matches!(i.op, Op::AllReduce(_)))
        .count()
}

#[test]
fn headers_plan_for_one_to_eight_devices() {
    let mut planned = 0;
    for path in headers() {
        let name = path
            .file_name()
            .expect("a file name")
            .to_string_lossy()
            .into_owned();
        for devices in 1..=8 {
            let placement = placement(devices);
            let Some((file, compiled)) = plan(&path, &placement) else {
                break;
            };
            planned += 1;
            let r = plan_report(&name, &placement, &compiled);
            assert_eq!(
                r.verdict.word(),
                "ok",
                "{name} on {devices}: {:?}",
                r.diagnostics
            );
            // The devices' bytes are the file's tensor bytes plus duplicated bytes.
            let held: u64 = r.devices.iter().map(|d| d.weights_bytes).sum();
            assert_eq!(
                held,
                used_bytes(&compiled, &r) + r.mirrored_bytes,
                "{name} on {devices}"
            );
            let by_tensor = bytes_by_tensor(&compiled);
            let aside = &compiled.model.summary.ignored;
            for t in file.header().tensors() {
                if aside.contains(&t.name) {
                    continue;
                }
                let held = by_tensor[&t.name];
                assert!(
                    held >= t.bytes,
                    "{name} on {devices}: {} has {} of {} bytes",
                    t.name,
                    held,
                    t.bytes
                );
                assert!(
                    held <= t.bytes * devices as u64 + t.bytes,
                    "{name} on {devices}: {}",
                    t.name
                );
            }
            assert!(
                compiled
                    .programs
                    .values()
                    .all(|(_, v)| !matches!(v.place, Place::Group(_)))
            );
            if devices == 1 {
                assert_eq!(r.mirrored_bytes, 0);
                continue;
            }
            for (layer, v) in compiled.weights() {
                let data = compiled.sharded.value(v);
                let bytes = data.ty.bytes(&tpc_ir::Bindings::default()).unwrap_or(0);
                let big = layer.is_some()
                    && bytes * 1000
                        > used_bytes(&compiled, &r) / compiled.model.summary.n_layer * 50;
                assert!(
                    !big || data.sharding.is_split(),
                    "{name} on {devices}: {} stays whole",
                    data.name
                );
            }
            // Bytes duplicated because of divisibility (edge blocks, KV heads) are counted separately.
            let even = |c: &tpc_ir::ClassData| {
                let n = devices as u64;
                c.size.is_multiple_of(n) && c.ranges.iter().all(|r| r.len * n == c.size)
            };
            let share = |bytes: u64| bytes as f64 / r.model.bytes as f64;
            if compiled.sharded.classes.iter().all(even) {
                let whole = share(r.mirrored.whole_bytes);
                // With caches divided by cells, devices may project the keys and values of all heads.
                let cells = r.caches.as_ref().is_some_and(|c| c.split == "cells");
                let most = if cells { 0.04 } else { 0.03 };
                assert!(
                    whole <= most,
                    "{name} on {devices}: {:.2} % mirrored",
                    whole * 100.0
                );
            }
            assert!(
                share(r.mirrored.edge_block_bytes) <= 0.05,
                "{name} on {devices}: edge blocks"
            );
            let layers = compiled.model.summary.n_layer as usize;
            assert_eq!(
                reductions(&compiled),
                2 * layers,
                "{name} on {devices}: two all-reduces per layer"
            );
        }
    }
    assert!(
        planned >= 80,
        "only {planned} plans: the ten headers of the repository make 80"
    );
}

/// The book and error messages state this: the limits stop only unrealistic input.
#[test]
fn no_model_known_takes_an_eighth_of_the_budget() {
    let counted = [
        Resource::Terms,
        Resource::Segments,
        Resource::Steps,
        Resource::Trials,
    ];
    let mut most = BTreeMap::new();
    let devices = placement(16);
    for path in headers().iter().chain(&captures()) {
        let name = path.file_name().expect("a file name").to_string_lossy();
        let compiled = if name.ends_with(".jsonl") {
            let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{e}"));
            let captured = capture::read(&text, &name).unwrap_or_else(|e| panic!("{name}: {e}"));
            compile_capture(&captured, &devices).unwrap_or_else(|e| panic!("{name}: {}", e[0]))
        } else {
            plan(path, &devices)
                .unwrap_or_else(|| panic!("{name} has no plan"))
                .1
        };
        let budget = &compiled.budget;
        assert_eq!(budget.limits(), &Limits::COMMAND);
        for resource in counted {
            let used = budget.used(resource);
            let known = most.entry(resource.name()).or_insert((0, String::new()));
            if used > known.0 {
                *known = (used, name.to_string());
            }
            let limit = budget.limits().of(resource);
            assert!(8 * used <= limit, "{name}: {used} {resource} of {limit}");
        }
    }
    println!("{most:?}");
    assert!(most.values().all(|(used, _)| *used > 0), "{most:?}");
}

#[test]
fn printed_plans_parse_again() {
    for path in headers() {
        for devices in [1, 3, 8] {
            let Some((_, compiled)) = plan(&path, &placement(devices)) else {
                break;
            };
            round_trip(&compiled.model.graph);
            round_trip(&compiled.sharded);
            if devices == 3 {
                round_trip(&compiled.programs);
            }
            assert!(
                compiled.planned.factors.is_stable(&compiled.planned.graph),
                "a second pass refines something"
            );
            assert!(compiled.planned.factors.opaque.is_empty());
        }
    }
}

#[test]
fn scarce_memory_is_a_constraint() {
    use tpc_core::placement::Placement;
    let mut found = 0;
    for path in tpc_tests::files(&[tpc_tests::data().join("golden")], ".gguf") {
        let file = tpc_gguf::GgufFile::open(&path).expect("a model");
        let totals = |placement: &Placement| -> (u64, PlanReport) {
            let compiled =
                super::support::compiled(&file, placement).unwrap_or_else(|e| panic!("{}", e[0]));
            let r = plan_report("m", placement, &compiled);
            (
                r.devices
                    .iter()
                    .map(|d| d.total_bytes)
                    .max()
                    .expect("devices"),
                r,
            )
        };
        for devices in 2..=5 {
            let mut placement = placement(devices);
            placement.ctx_size = Some(16);
            placement.ubatch_size = 16;
            let (free, _) = totals(&placement);
            // With slightly less memory than this plan needs, tpc finds another plan or reports that none fits.
            placement.topology.devices[0].memory = Some(free as f64 - 1.0);
            let (tight, r) = totals(&placement);
            assert_eq!(
                r.verdict.word() == "ok",
                tight < free,
                "{}: {:?}",
                path.display(),
                r.diagnostics
            );
            found += usize::from(tight < free);
            placement.topology.devices[0].memory = Some(free as f64 / 8.0);
            let (_, r) = totals(&placement);
            assert_eq!(r.verdict.word(), "error");
            assert!(r.diagnostics.iter().any(|d| d.code == "TPC0300"));
        }
    }
    assert!(found > 0, "memory never changed a plan");
}
