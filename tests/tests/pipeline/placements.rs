//! Tensors, layers and caches on the host or on one device: every plan verifies and computes the whole model's logits.

use std::collections::BTreeMap;
use std::path::Path;

use tpc_core::golden::distance;
use tpc_core::placement::{HostExperts, Placement, SplitMode, parse_overrides, parse_tensor_split};
use tpc_ir::verify::verify;
use tpc_ir::{DType, Graph, Op, Place};
use tpc_passes::place::{LayerPlace, LayerPlacement, PlaceOverride};
use tpc_passes::plan::PlanRequest;
use tpc_tests::{Sweep, TENSOR_NAMES, goldens};

use super::choices::each_graph;
use super::graphs::random_graph;
use super::random::{Builder, Rng, plan_and_run_with};
use super::support::{golden, placement, plan, run};
use super::synthetic::make;

/// The maximum NMSE if only the order of sums differs.
const AGAINST_UNSHARDED: f64 = 1e-10;
/// Few suffice: a placement does not depend on the number of tokens.
const TOKENS: usize = 8;

pub(crate) struct Way {
    pub(crate) name: String,
    pub(crate) set: Box<dyn Fn(&mut Placement)>,
}

fn way(name: impl Into<String>, set: impl Fn(&mut Placement) + 'static) -> Way {
    Way {
        name: name.into(),
        set: Box::new(set),
    }
}

fn overridden(pattern: &str, place: &str) -> Way {
    let text = format!("{pattern}={place}");
    way(format!("-ot {text}"), move |p| {
        p.overrides = parse_overrides(std::slice::from_ref(&text), &p.devices)
            .unwrap_or_else(|e| panic!("{e}"));
    })
}

fn random_pattern(rng: &mut Rng, n_layer: u64) -> String {
    let layer = match rng.range(0, 3) {
        0 => format!(r"blk\.{}\.", rng.range(0, n_layer.max(1) - 1)),
        1 => r"blk\.\d*[02468]\.".to_owned(),
        2 => r"blk\.(?!0\.)".to_owned(),
        _ => String::new(),
    };
    format!(
        "{layer}.*{}",
        TENSOR_NAMES[rng.range(0, TENSOR_NAMES.len() as u64 - 1) as usize]
    )
}

pub(crate) fn ways(rng: &mut Rng, n_layer: u64, experts: bool, devices: usize) -> Vec<Way> {
    let mut out = vec![
        overridden(r"blk\.0\.attn.*", "CPU"),
        overridden(".*ffn_down.*", "CPU"),
        overridden(r"blk\.1\..*", "CPU"),
        overridden("output.*", "CPU"),
        way("-nkvo", |p| p.kv_on_host = true),
        way("-sm layer", |p| p.split_mode = SplitMode::Layer),
        way("-sm auto", |p| p.split_mode = SplitMode::Auto),
    ];
    for _ in 0..20 {
        let places = ["CPU", "CPU", "CPU", "mirrored", "dev1"];
        let place = places[rng.range(0, places.len() as u64 - 1) as usize];
        out.push(overridden(&random_pattern(rng, n_layer), place));
    }
    if experts {
        out.extend((0..=n_layer).map(|n| {
            way(format!("-ncmoe {n}"), move |p| {
                p.host_experts = HostExperts::First(n);
            })
        }));
    }
    out.extend(
        (0..=n_layer + 1).map(|n| way(format!("-ngl {n}"), move |p| p.n_gpu_layers = Some(n))),
    );
    for split in ["3,1", "1,0,2"] {
        let Ok(shares) = parse_tensor_split(split, devices) else {
            continue;
        };
        out.push(way(format!("-ts {split}"), move |p| {
            p.tensor_split = Some(shares.clone());
        }));
    }
    out.push(way("-nkvo -ncmoe 1 -ngl 2", |p| {
        (p.kv_on_host, p.host_experts, p.n_gpu_layers) = (true, HostExperts::First(1), Some(2));
    }));
    out.push(way("-nkvo -sm layer", |p| {
        (p.kv_on_host, p.split_mode) = (true, SplitMode::Layer);
    }));
    out
}

fn copied_once(placed: &Graph) {
    let mut seen = std::collections::BTreeSet::new();
    for (_, data) in placed.insts() {
        if let Op::Copy(_) = data.op {
            let to = placed.value(data.results[0]).place;
            assert!(
                seen.insert((data.operands[0], to)),
                "a value is copied twice to {to}"
            );
            // A copy within a group ends the factors of an axis.
            let within = placed.value(data.operands[0]).place == to;
            assert!(
                !within || matches!(to, Place::Group(_)),
                "a copy within a place"
            );
        }
    }
}

/// Runs the model with the placements that `chosen` accepts. Returns the number of runs.
fn check(path: &Path, chosen: &mut dyn FnMut() -> bool) -> usize {
    let Some((file, single)) = plan(path, &placement(1)) else {
        return 0;
    };
    let name = path
        .file_stem()
        .expect("a file name")
        .to_string_lossy()
        .into_owned();
    let tokens = &golden(path).tokens[..TOKENS];
    let whole = run(&single.model.graph, &file, &single, tokens);
    let experts = single
        .model
        .graph
        .insts()
        .any(|(_, i)| matches!(i.op, Op::MulMatId(_)));
    let mut rng = Rng::new(name.bytes().map(u64::from).sum());
    let mut ran = 0;
    for devices in [2, 3, 5] {
        for way in ways(&mut rng, single.model.summary.n_layer, experts, devices) {
            if !chosen() {
                continue;
            }
            let mut asked = placement(devices);
            (way.set)(&mut asked);
            let what = format!("{name} on {devices} devices with {}", way.name);
            let compiled = super::support::compiled(&file, &asked)
                .unwrap_or_else(|d| panic!("{what}: {} {}", d[0].code, d[0]));
            verify(&compiled.programs).unwrap_or_else(|e| panic!("{what}: {}", e[0]));
            copied_once(&compiled.planned.graph);
            let got = run(&compiled.programs, &file, &compiled, tokens);
            let d = distance(whole.iter().copied(), got);
            assert!(d.nmse <= AGAINST_UNSHARDED, "{what}: NMSE {:e}", d.nmse);
            ran += 1;
        }
    }
    ran
}

#[test]
fn placed_models_agree_with_whole_ones() {
    let every = Sweep::asked().pick(20, 1);
    let mut turn = 0;
    let mut ran = 0;
    for path in goldens() {
        ran += check(&path, &mut || {
            turn += 1;
            turn % every == 0
        });
    }
    println!("{ran} placements ran");
    assert!(ran > 20, "only {ran} placements ran");
}

/// Assigns the graph's ops to layers, in order.
fn in_layers(graph: &Graph, rng: &mut Rng, layers: u32) -> Graph {
    let mut out = Graph::new(graph.name.clone());
    let mut layer = None;
    for (_, data) in graph.insts() {
        if rng.one_in(4) {
            layer = layer.map_or(Some(0), |l: u32| (l + 1 < layers).then_some(l + 1));
        }
        let types = data
            .results
            .iter()
            .map(|&v| graph.value(v).ty.clone())
            .collect();
        let own = layer.filter(|_| !matches!(data.op, Op::Input(_)));
        let made = out.push(
            data.op.clone(),
            data.operands.clone(),
            types,
            Place::Host,
            own,
        );
        for (&old, new) in data.results.iter().zip(out.inst(made).results.clone()) {
            out.value_mut(new).name = graph.value(old).name.clone();
        }
    }
    out.outputs.clone_from(&graph.outputs);
    out
}

fn anywhere(b: &mut Builder, request: &mut PlanRequest) {
    const LAYERS: u32 = 4;
    let devices = request.devices.len();
    b.graph = in_layers(&b.graph, &mut b.rng, LAYERS);
    let rng = &mut b.rng;
    let mut stages: Vec<Vec<usize>> = vec![Vec::new()];
    for d in 0..devices {
        if !stages[stages.len() - 1].is_empty() && rng.one_in(3) {
            stages.push(Vec::new());
        }
        stages.last_mut().expect("there is one").push(d);
    }
    let last = stages.len() as u64 - 1;
    let home = |rng: &mut Rng| match rng.one_in(5) {
        true => LayerPlace::Host,
        false => LayerPlace::Stage(rng.range(0, last) as usize),
    };
    let mut layer_placement = LayerPlacement {
        prologue: home(rng),
        layers: (0..LAYERS).map(|_| home(rng)).collect(),
        epilogue: home(rng),
        overrides: BTreeMap::new(),
        stages,
    };
    for (_, data) in b.graph.insts() {
        let often = data.op.is_stored();
        if often && rng.one_in(4) {
            let pin = match (rng.range(0, 3), &data.op) {
                (0, _) => PlaceOverride::Device(rng.range(0, devices as u64 - 1) as usize),
                (1, Op::Weight(_)) => PlaceOverride::Mirrored,
                _ => PlaceOverride::Host,
            };
            layer_placement.overrides.insert(data.results[0], pin);
        }
    }
    request.layer_placement = layer_placement;
}

#[test]
fn random_graphs_anywhere_give_the_same_numbers() {
    let copied = std::cell::Cell::new(0);
    let outcome = each_graph(200, |mut b| {
        let out = random_graph(&mut b);
        copied.set(copied.get() + plan_and_run_with(b, out, anywhere));
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
    let copied = copied.get();
    crate::random::unproved_at_most(40);
    assert!(copied > 50, "only {copied} factors were split");
}

/// The bound is wider, because a difference in the last bit may change the rounding.
#[test]
fn quantised_caches_split_as_whole() {
    let full = Sweep::asked() == Sweep::Full;
    let pairs = [
        (DType::Q8_0, DType::Q8_0),
        (DType::Q8_0, DType::Q4_0),
        (DType::Iq4Nl, DType::Iq4Nl),
    ];
    let (mut ran, mut refused) = (0, 0);
    for (i, path) in goldens().into_iter().enumerate() {
        let tokens = golden(&path).tokens;
        let name = path
            .file_stem()
            .expect("a file name")
            .to_string_lossy()
            .into_owned();
        for (j, (k, v)) in pairs.into_iter().enumerate() {
            if !full && i % pairs.len() != j {
                continue;
            }
            let with = |devices: usize| Placement {
                cache_type_k: k,
                cache_type_v: v,
                ..placement(devices)
            };
            let file = tpc_gguf::GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
            let single = match super::support::compiled(&file, &with(1)) {
                Ok(single) => single,
                // Refused: a head is not whole blocks of the cache type.
                Err(d) => {
                    assert!(d[0].help.is_some(), "{name}: {}", d[0]);
                    println!("{name} {k}/{v}: {} {}", d[0].code, d[0]);
                    refused += 1;
                    continue;
                }
            };
            let whole = run(&single.model.graph, &file, &single, &tokens);
            for devices in [2, 3] {
                let (_, split) = plan(&path, &with(devices)).expect("one device was planned");
                let got = run(&split.programs, &file, &split, &tokens);
                let d = distance(whole.iter().copied(), got);
                assert!(
                    d.nmse <= 1e-7,
                    "{name} {k}/{v} on {devices}: NMSE {:e}",
                    d.nmse
                );
                ran += 1;
            }
        }
    }
    println!("{ran} cells ran, {refused} pairs were refused");
    assert!(
        ran > refused,
        "{ran} cells ran, {refused} pairs were refused"
    );
}

#[test]
fn what_is_mirrored_in_one_layer_is_split_in_others() {
    let file = make("llama:layers=3,embd=48,ff=40,vocab=24,ctx=32,type=f32");
    for layer in 0..3 {
        let mut placement = placement(2);
        placement.split_mode = SplitMode::Tensor;
        let text = format!(r"blk\.{layer}\.ffn_up.*=mirrored");
        placement.overrides = parse_overrides(&[text], &placement.devices).expect("an override");
        let compiled =
            super::support::compiled(&file, &placement).unwrap_or_else(|d| panic!("{}", d[0]));
        for other in 0..3 {
            let name = format!("blk.{other}.ffn_up.weight");
            let mut values = compiled.sharded.values();
            let is = |op: &Op| matches!(op, Op::Weight(w) if w.tensor == name);
            let found = values.find(|(v, _)| is(compiled.sharded.def_op(*v)));
            let (_, data) = found.expect("both layers have it");
            assert_eq!(
                data.sharding.is_split(),
                other != layer,
                "{name} with layer {layer} mirrored"
            );
        }
    }
}
