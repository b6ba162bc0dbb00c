//! tpc's graphs of model files, written as captures: reading them back gives the same plans.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::{CacheSplit, Placement};
use tpc_ggml::capture;
use tpc_ir::{Bindings, Graph, Op, Place, Symbol};
use tpc_passes::plan::plan as choose;

use super::writer::capture;
use super::{carry_out, stem};
use crate::support::{placement, plan};

pub(super) fn batch() -> Bindings {
    Bindings::default()
        .with(Symbol::NTokens, 11)
        .with(Symbol::NSeqTokens, 11)
        .with(Symbol::NOutputs, 7)
        .with(Symbol::NKv, 1013)
        .with(Symbol::NCtx, 2027)
        .with(Symbol::NKvSwa, 509)
        .with(Symbol::NCtxSwa, 1021)
}

/// Returns a placement with caches divided by heads, as in plans of captures.
fn by_heads(devices: usize) -> Placement {
    Placement {
        cache_split: CacheSplit::Heads,
        ..placement(devices)
    }
}

fn held(programs: &Graph) -> Vec<u64> {
    let mut out = vec![0; programs.devices.len()];
    for (_, data) in programs.insts() {
        let v = data.results[0];
        if let (Op::Weight(_), Place::Device(d)) = (&data.op, programs.value(v).place) {
            let bytes = programs.value(v).ty.bytes(&Bindings::default());
            out[d.index()] += bytes.expect("weights have constant sizes");
        }
    }
    out
}

fn sums(sharded: &Graph) -> usize {
    let insts = sharded.insts();
    insts
        .filter(|(_, d)| matches!(d.op, Op::AllReduce(_)))
        .count()
}

/// Counts layers with a token mixer. In a capture, a layer without one belongs to the previous layer.
fn mixing_layers(graph: &Graph) -> usize {
    let mixes = |op: &Op| matches!(op, Op::FlashAttn(_) | Op::SsmConv(_));
    let layers = graph.insts().filter(|(_, d)| mixes(&d.op));
    let layers: BTreeSet<u32> = layers.filter_map(|(_, d)| d.layer).collect();
    layers.len()
}

/// Plans a model's graph and its capture. Returns the time to plan the capture without verification.
fn check(name: &str, native: &CompiledModel) -> Duration {
    let devices = native.request.devices.len();
    let what = format!("{name} on {devices}");
    let text = capture(&native.model.graph, batch());
    let start = Instant::now();
    let captured = capture::read(&text, name).unwrap_or_else(|e| panic!("{what}: {e}"));
    let planned =
        choose(&captured.graph, &native.request).unwrap_or_else(|e| panic!("{what}: {e}"));
    let took = start.elapsed();
    println!(
        "| {name} | {devices} | {} | {} | {} | {:.0} ms |",
        captured.n_layer,
        captured.graph.insts().len(),
        planned.choice.distinct,
        took.as_secs_f64() * 1e3
    );
    assert!(captured.notes.is_empty(), "{what}: {:?}", captured.notes);
    assert_eq!(
        captured.n_layer as usize,
        mixing_layers(&native.model.graph),
        "{what}"
    );
    // In the capture, the first layer may begin elsewhere, and so differ from the others.
    let (own, kinds) = (planned.choice.distinct, native.planned.choice.distinct);
    assert!(
        own <= kinds + 1,
        "{what}: {own} kinds of layers, not {kinds}"
    );
    let again = carry_out(planned, devices);
    let again = again.unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(held(&again.programs), held(&native.programs), "{what}");
    assert_eq!(sums(&again.sharded), sums(&native.sharded), "{what}");
    took
}

#[test]
fn native_graphs_plan_alike_when_captured() {
    let mut compared = 0;
    let all = tpc_tests::headers();
    for path in all.iter().chain(&tpc_tests::goldens()) {
        for devices in [2, 3, 8] {
            let Some((_, native)) = plan(path, &by_heads(devices)) else {
                break;
            };
            check(&stem(path), &native);
            compared += 1;
        }
    }
    assert!(compared >= 30, "the repository has ten headers");
}

/// Reading, inference and planning of a real model take some tenths of a second. The limit allows for a busy machine
/// and unoptimised code.
const LIMIT: Duration = Duration::from_secs(5);

#[test]
fn captures_of_real_size_plan_in_no_time() {
    let mut planned = 0;
    for path in tpc_tests::headers() {
        let Some((_, native)) = plan(&path, &by_heads(8)) else {
            continue;
        };
        let took = check(&stem(&path), &native);
        assert!(took < LIMIT, "{}: {took:?}", stem(&path));
        planned += 1;
    }
    assert!(planned >= 10, "the repository has ten headers");
}

const MANY: usize = 8;

/// The maximum load of the busiest device, as a multiple of an even share.
const EVEN: f64 = 1.10;

/// Models that eight devices cannot share so evenly, with the best possible load and the reason.
const UNEVEN: &[(&str, f64, &str)] = &[];

fn busiest(path: &Path) -> Option<f64> {
    let (_, native) = plan(path, &by_heads(MANY))?;
    let held = held(&native.programs);
    let most = held.iter().copied().max().unwrap_or(0);
    Some(most as f64 * MANY as f64 / native.size.bytes as f64)
}

#[test]
fn eight_devices_share_real_models_evenly() {
    for path in tpc_tests::headers() {
        let name = stem(&path);
        let Some(share) = busiest(&path) else {
            continue;
        };
        let known = UNEVEN.iter().find(|u| name.starts_with(u.0));
        let limit = known.map_or(EVEN, |u| u.1);
        println!("| {name} | {share:.3} | {limit:.2} |");
        assert!(share <= limit, "{name}: {share:.3} of an even share");
    }
}
