//! Synthetic models of awkward sizes: programs of several devices compute the model's graph, and split it.

use crate::support::verified;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use tpc_ir::stage::Executable;
use tpc_tests::Sweep;

use tpc_core::golden::distance;
use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::{Placement, parse_tensor_split};
use tpc_gguf::GgufFile;
use tpc_ir::factor::Var;
use tpc_ir::op::Role;
use tpc_ir::{DType, Graph, Group, Op, Sharding, Value, Verified};
use tpc_models::description::{Presence, Window};
use tpc_models::{ARCHS, Arch};
use tpc_passes::canonicalise::canonicalise;
use tpc_passes::factors::{GraphFacts, PropagationConflict, active_roles};
use tpc_passes::lower::lower;
use tpc_passes::machine::{Link, Topology};
use tpc_passes::plan::{Choice, SplitOption, options_for};
use tpc_passes::shard::shard;
use tpc_runtime::quant::quantise;
use tpc_runtime::{Batch, ReferenceSession, Session, SessionConfig};
use tpc_synth::{Model, Spec};

use super::random::Rng;
use super::support::{FileWeights, placement, round_trip};

/// The maximum NMSE if only the order of sums differs.
const EXACT: f64 = 1e-20;
/// The maximum NMSE if another order of sums may change the rounding of cached numbers.
const ROUNDED: f64 = 1e-11;

/// Common sizes. `f32` has no quantisation blocks, so only counts limit the splits.
const SMALL: &str = "layers=1,embd=48,ff=40,vocab=24,ctx=32,type=f32";

/// Writes the model of a specification to a file that is mapped and deleted.
pub(super) fn make(spec: &str) -> GgufFile {
    try_make(spec).unwrap_or_else(|e| panic!("{spec}: {e}"))
}

/// Makes the model of a specification; returns an error if it is invalid.
pub(super) fn try_make(spec: &str) -> Result<GgufFile, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("tpc-synthetic-{}-{number}.gguf", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let quantise = |dtype: DType, values: &[f32], out: &mut Vec<u8>| {
        quantise(dtype, values, out).map_err(|e| e.to_string())
    };
    let spec = Spec::parse(spec).map_err(|e| e.to_string())?;
    let model = Model::new(spec, &quantise).map_err(|e| e.to_string())?;
    let file = std::fs::File::create(&path).expect("a temporary file");
    let written = model.write(file).map_err(|e| e.to_string());
    let file = written.and_then(|_| GgufFile::open(&path).map_err(|e| e.to_string()));
    // If the system cannot remove a mapped file, its cleanup of temporary files will.
    let _ = std::fs::remove_file(&path);
    file
}

pub(super) fn preset_keys(arch: &str) -> Vec<(String, String)> {
    let name = format!("{arch}-tiny");
    let preset = tpc_synth::presets().into_iter().find(|p| p.name == name);
    let (prefix, spec) = (format!("{arch}."), preset.expect("every architecture").spec);
    let pairs = spec.split([':', ',']).filter_map(|p| p.split_once('='));
    pairs
        .filter(|(key, _)| key.starts_with(&prefix))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn linked(devices: usize, latency_us: f64) -> Placement {
    let link = Link::new(1e18, latency_us);
    Placement {
        topology: Topology {
            link,
            host_link: link,
            ..Topology::default()
        },
        ..placement(devices)
    }
}

/// Returns links so fast that heads, widths and vocabularies of small models are worth splitting.
pub(super) fn fast_links(devices: usize) -> Placement {
    linked(devices, 10.0)
}

fn shares(devices: usize, split: &[f64]) -> Placement {
    Placement {
        tensor_split: Some(split.to_vec()),
        ..fast_links(devices)
    }
}

pub(super) fn planned(file: &GgufFile, placement: &Placement) -> CompiledModel {
    let compiled = super::support::compiled(file, placement)
        .unwrap_or_else(|d| panic!("{}: {}", d[0].code, d[0]));
    round_trip(&compiled.model.graph);
    round_trip(&compiled.sharded);
    round_trip(&compiled.programs);
    compiled
}

fn tokens(n: u32, vocab: u32) -> Vec<u32> {
    (0..n).map(|i| (i * 7 + 3) % vocab).collect()
}

fn session<'g, S: Executable>(
    graph: &'g Verified<S>,
    file: &GgufFile,
    compiled: &CompiledModel,
    n_ctx: usize,
    n_ctx_swa: usize,
) -> ReferenceSession<'g> {
    let mut config = SessionConfig::new(n_ctx);
    if let Some(window) = compiled.model.summary.window {
        config = config.with_window(window, n_ctx_swa);
    }
    Session::new(graph, &FileWeights(file), config).unwrap_or_else(|e| panic!("{e}\n{graph}"))
}

fn decode(session: &mut ReferenceSession<'_>, batch: &Batch) -> Vec<f64> {
    let out = session.decode(batch).unwrap_or_else(|e| panic!("{e}"));
    out.reals().expect("logits are real").to_vec()
}

fn run<S: Executable>(graph: &Verified<S>, file: &GgufFile, compiled: &CompiledModel) -> Vec<f64> {
    let vocab = compiled.model.summary.n_vocab as u32;
    let tokens = tokens(7, vocab);
    let mut session = session(graph, file, compiled, 8, 8);
    let mut out = decode(&mut session, &Batch::sequence(&tokens[..4], 0, 0));
    for (i, t) in tokens.iter().enumerate().skip(4) {
        out.extend(decode(&mut session, &Batch::sequence(&[*t], i as u32, 0)));
    }
    assert!(out.iter().all(|x| x.is_finite()));
    out
}

fn assert_close(what: &str, want: &[f64], got: &[f64], tolerance: f64) {
    assert_eq!(want.len(), got.len(), "{what}");
    let d = distance(want.iter().copied(), got.iter().copied());
    assert!(d.nmse <= tolerance, "{what}: NMSE {:e}", d.nmse);
}

fn sharding<'g>(graph: &'g Graph, tensor: &str) -> &'g Sharding {
    let loads = |v: Value| matches!(graph.def_op(v), Op::Weight(w) if w.tensor == tensor);
    let (_, data) = graph
        .values()
        .find(|&(v, _)| loads(v))
        .unwrap_or_else(|| panic!("no {tensor} in\n{graph}"));
    &data.sharding
}

fn split_axis(compiled: &CompiledModel, tensor: &str) -> Option<usize> {
    let axes = &sharding(&compiled.sharded, tensor).axes;
    axes.iter().position(Option::is_some)
}

fn assert_split(what: &str, compiled: &CompiledModel, expected: &[(&str, Option<usize>)]) {
    for (stem, axis) in expected {
        for layer in 0..compiled.model.summary.n_layer {
            let tensor = format!("blk.{layer}.{stem}.weight");
            let found = split_axis(compiled, &tensor);
            assert_eq!(found, *axis, "{what}: {tensor}\n{}", compiled.sharded);
        }
    }
}

/// Returns a plan that divides the axis `first.1` of the tensors named `first.0`, and the rows of other weights if
/// compatible, but never the model width. If a factor can be divided in several ways, `way` selects one, modulo their
/// number.
fn divided(
    file: &GgufFile,
    placement: &Placement,
    first: (&str, usize),
    way: usize,
) -> CompiledModel {
    let mut compiled = planned(file, placement);
    let graph = &compiled.planned.graph;
    let (factors, analysis) = (&compiled.planned.factors, &compiled.planned.analysis);
    let weights = || {
        graph.values().filter_map(|(v, _)| match graph.def_op(v) {
            Op::Weight(w) => Some((v, w.tensor.as_str())),
            _ => None,
        })
    };
    let rows = weights().map(|(v, _)| (v, 1));
    let leaves = weights()
        .filter(|(_, tensor)| tensor.contains(first.0))
        .map(|(v, _)| (v, first.1))
        .chain(rows)
        .flat_map(|(v, axis)| {
            analysis.summands[v.index()]
                .iter()
                .flat_map(move |t| &t.axes[axis])
        });
    let shares = compiled.request.device_weights();
    let clash = |a: &SplitOption, b: &SplitOption| {
        let together = |x, y| x == y || analysis.leaves[x].co_occurring.contains(y);
        a.leaves
            .iter()
            .any(|x| b.leaves.iter().any(|y| together(x, y)))
    };
    let mut taken: Vec<SplitOption> = Vec::new();
    for &leaf in leaves {
        let mut ways = options_for(
            compiled.planned.graph_facts(),
            leaf,
            (Group::new(0), &shares),
        );
        ways.retain(|o| o.kind != "model width");
        if ways.is_empty() {
            continue;
        }
        let option = ways.swap_remove(way % ways.len());
        if taken.iter().all(|t| !clash(t, &option)) {
            taken.push(option);
        }
    }
    let choice = consistent(compiled.planned.graph_facts(), taken);
    let sharded =
        shard(graph, factors, analysis, &choice).unwrap_or_else(|e| panic!("{e}\n{graph}"));
    let sharded = verified(sharded);
    let programs = canonicalise(lower(&sharded).unwrap_or_else(|e| panic!("{e}\n{sharded}")));
    let programs = verified(programs);
    round_trip(&sharded);
    round_trip(&programs);
    super::support::proved(&compiled.model.graph, &programs)
        .unwrap_or_else(|e| panic!("{e}\n{programs}"));
    (compiled.sharded, compiled.programs) = (sharded, programs);
    compiled.planned.choice = choice;
    compiled
}

/// Returns the choice of these options, without options that split only some summands of an op. The planner does not
/// choose such options either.
fn consistent(facts: GraphFacts<'_>, mut options: Vec<SplitOption>) -> Choice {
    loop {
        let choice = Choice::from_options(options.clone());
        let torn = facts.graph.insts().find(|&(inst, _)| {
            let roles = active_roles(facts.graph, facts.analysis, inst, &choice);
            matches!(roles, Err(PropagationConflict::MixedSegments(_)))
        });
        let Some((inst, _)) = torn else {
            return choice;
        };
        let roles = &facts.analysis.insts[inst.index()].roles;
        let summed: Vec<Var> = roles
            .iter()
            .filter(|role| role.role == Role::Whole || role.summands.len() > 1)
            .flat_map(|role| role.summands.iter().flatten().copied())
            .collect();
        options.retain(|o| !o.leaves.iter().any(|l| summed.contains(l)));
    }
}

/// Ways to divide a factor: whole units, shared blocks, chains of KV heads and queries.
const WAYS: std::ops::Range<usize> = 0..3;

const HEADS: (&str, usize) = ("attn_q.", 1);

/// The key rows begin within the query rows. Heads are then two summands of attention's output, so every plan splits
/// both or neither.
#[test]
fn joined_projections_whose_parts_overlap_are_divided_as_one() {
    let spec =
        "cogvlm:embd=64,heads=4,kv_heads=4,head_dim=32,layers=1,ff=40,vocab=24,ctx=32,type=f32";
    let file = make(spec);
    for devices in [2, 3, 4] {
        let placement = linked(devices, 0.0);
        let compiled = planned(&file, &placement);
        let whole = run(&compiled.model.graph, &file, &compiled);
        assert_close(
            spec,
            &whole,
            &run(&compiled.programs, &file, &compiled),
            EXACT,
        );
        for way in WAYS {
            let compiled = divided(&file, &placement, ("attn_qkv.", 1), way);
            let what = format!("{spec} on {devices} in way {way}");
            assert_close(
                &what,
                &whole,
                &run(&compiled.programs, &file, &compiled),
                EXACT,
            );
        }
    }
}

const FFN: [(&str, Option<usize>); 3] = [
    ("ffn_gate", Some(1)),
    ("ffn_up", Some(1)),
    ("ffn_down", Some(0)),
];

#[test]
fn heads_are_divided_among_any_number_of_devices() {
    for (heads, kv) in [
        (1, 1),
        (4, 1),
        (8, 1),
        (6, 2),
        (8, 2),
        (12, 3),
        (9, 3),
        (8, 4),
        (10, 5),
        (12, 6),
        (14, 7),
        (16, 8),
        (24, 8),
    ] {
        let file = make(&format!(
            "llama:{SMALL},heads={heads},kv_heads={kv},head_dim=4,seed={heads}"
        ));
        // A single head is divided by the elements of its values. Several query heads of one KV head are divided by
        // queries.
        let q = (heads > 1).then_some(1);
        let k = (kv > 1).then_some(1);
        let v = (kv > 1 || heads == 1).then_some(1);
        let attention = [
            ("attn_q", q),
            ("attn_k", k),
            ("attn_v", v),
            ("attn_output", Some(0)),
        ];
        let mut whole = None;
        for devices in 2..=8 {
            let placement = fast_links(devices);
            let compiled = planned(&file, &placement);
            let what = format!("{heads}×{kv} on {devices}");
            let whole = whole.get_or_insert_with(|| run(&compiled.model.graph, &file, &compiled));
            let got = run(&compiled.programs, &file, &compiled);
            assert_close(&what, whole, &got, EXACT);
            for way in WAYS {
                let compiled = divided(&file, &placement, HEADS, way);
                let what = format!("{what} in way {way}");
                assert_split(&what, &compiled, &FFN);
                assert_split(&what, &compiled, &attention);
                let got = run(&compiled.programs, &file, &compiled);
                assert_close(&what, whole, &got, EXACT);
            }
        }
    }
}

#[test]
fn devices_take_uneven_shares() {
    for (heads, kv) in [(8, 2), (12, 6), (9, 3)] {
        let file = make(&format!(
            "qwen2:{SMALL},heads={heads},kv_heads={kv},head_dim=4"
        ));
        for split in [
            &[3.0, 1.0][..],
            &[1.0, 0.0, 2.0],
            &[5.0, 1.0, 1.0],
            &[0.0, 1.0],
            &[1.0, 2.0, 3.0, 4.0, 5.0],
            &[0.0, 0.0, 1.0, 1.0],
        ] {
            let placement = shares(split.len(), split);
            let what = format!("{heads}×{kv} by {split:?}");
            let compiled = planned(&file, &placement);
            let whole = run(&compiled.model.graph, &file, &compiled);
            let mut plans = vec![compiled];
            for way in WAYS {
                let compiled = divided(&file, &placement, HEADS, way);
                // A single active device has the whole model.
                if split.iter().filter(|&&s| s > 0.0).count() > 1 {
                    assert_split(&what, &compiled, &FFN);
                    let attention = [("attn_q", Some(1)), ("attn_output", Some(0))];
                    assert_split(&what, &compiled, &attention);
                }
                plans.push(compiled);
            }
            for compiled in plans {
                let got = run(&compiled.programs, &file, &compiled);
                assert_close(&what, &whole, &got, EXACT);
                for class in &compiled.sharded.classes {
                    for (range, share) in class.ranges.iter().zip(split) {
                        assert!(*share > 0.0 || range.len == 0, "{what}: {class:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_model_width_is_divided_where_links_cost_nothing() {
    for spec in [
        "llama:biases=1",
        "gpt2:",
        "olmo2:",
        "command-r:biases=1",
        "gemma3:",
    ] {
        let file = make(&format!("{spec},{SMALL},heads=6,kv_heads=3,head_dim=4"));
        let mut axes = Vec::new();
        for devices in [2, 3, 5, 8] {
            let compiled = planned(&file, &linked(devices, 0.0));
            let what = format!("{spec} on {devices}");
            let whole = run(&compiled.model.graph, &file, &compiled);
            assert_close(
                &what,
                &whole,
                &run(&compiled.programs, &file, &compiled),
                EXACT,
            );
            axes.push(split_axis(&compiled, "blk.0.ffn_up.weight"));
        }
        assert!(axes.contains(&Some(0)), "{spec}: {axes:?}");
    }
}

#[test]
fn layers_may_differ() {
    let file = make(
        "llama:layers=4,embd=32,heads=8/4/6/2,kv_heads=4/1/3/2,head_dim=4,ff=24/40/7/64,vocab=24,ctx=32,type=f32",
    );
    for devices in [2, 3, 5, 8] {
        let placement = fast_links(devices);
        let compiled = planned(&file, &placement);
        let what = format!("{devices} devices");
        let whole = run(&compiled.model.graph, &file, &compiled);
        assert_close(
            &what,
            &whole,
            &run(&compiled.programs, &file, &compiled),
            EXACT,
        );
        for way in WAYS {
            let compiled = divided(&file, &placement, HEADS, way);
            assert_close(
                &what,
                &whole,
                &run(&compiled.programs, &file, &compiled),
                EXACT,
            );
            assert_split(&what, &compiled, &FFN);
            assert_split(
                &what,
                &compiled,
                &[("attn_q", Some(1)), ("attn_output", Some(0))],
            );
            assert_eq!(split_axis(&compiled, "blk.0.attn_k.weight"), Some(1));
            assert_eq!(split_axis(&compiled, "blk.1.attn_k.weight"), None);
        }
    }
}

#[test]
fn blocks_at_the_edge_are_held_by_both_neighbours() {
    let mut shared = Vec::new();
    for spec in [
        "llama:layers=1,embd=512,heads=8,kv_heads=2,head_dim=64,ff=512,vocab=32,ctx=32,type=q4_k",
        "llama:layers=1,embd=512,heads=6,kv_heads=3,head_dim=64,ff=768,vocab=32,ctx=32,type=mixed",
        "qwen3:layers=1,embd=256,heads=4,kv_heads=4,head_dim=64,ff=1024,vocab=32,ctx=32,type=q6_k",
        "qwen3:layers=1,embd=64,heads=10,kv_heads=2,head_dim=16,ff=96,vocab=32,ctx=32,type=q4_0",
    ] {
        let file = make(spec);
        let mut whole = None;
        for devices in [3, 5, 8] {
            let placement = fast_links(devices);
            let compiled = planned(&file, &placement);
            let what = format!("{spec} on {devices}");
            let whole = whole.get_or_insert_with(|| run(&compiled.model.graph, &file, &compiled));
            let got = run(&compiled.programs, &file, &compiled);
            assert_close(&what, whole, &got, EXACT);
            let ways = WAYS.map(|way| divided(&file, &placement, HEADS, way));
            for compiled in std::iter::once(compiled).chain(ways) {
                let got = run(&compiled.programs, &file, &compiled);
                assert_close(&what, whole, &got, EXACT);
                for stem in ["attn_output", "ffn_down"] {
                    let tensor = format!("blk.0.{stem}.weight");
                    let cover = sharding(&compiled.sharded, &tensor).granule;
                    shared.push((what.clone(), stem, cover));
                }
            }
        }
    }
    for stem in ["attn_output", "ffn_down"] {
        for block in [32, 256] {
            let found = shared
                .iter()
                .any(|(_, s, cover)| *s == stem && *cover == block);
            assert!(found, "{stem} shares no blocks of {block}: {shared:?}");
        }
    }
}

/// True if in some lookup each device reads its own rows.
fn looks_up_own_rows(graph: &Graph) -> bool {
    graph
        .insts()
        .any(|(_, i)| matches!(&i.op, Op::GetRows(g) if g.window.is_some()))
}

#[test]
fn large_vocabularies_are_divided() {
    for (arch, tied) in [("llama", 0), ("llama", 1), ("gemma3", 1), ("command-r", 1)] {
        let file = make(&format!(
            "{arch}:layers=1,embd=32,heads=4,kv_heads=2,ff=32,vocab=4099,ctx=32,type=f16,tied={tied}"
        ));
        for devices in [2, 3, 8] {
            let compiled = planned(&file, &fast_links(devices));
            let what = format!("{arch} tied={tied} on {devices}");
            let whole = run(&compiled.model.graph, &file, &compiled);
            assert_close(
                &what,
                &whole,
                &run(&compiled.programs, &file, &compiled),
                EXACT,
            );
            assert_eq!(
                split_axis(&compiled, "token_embd.weight"),
                Some(1),
                "{what}"
            );
            assert!(looks_up_own_rows(&compiled.programs), "{what}");
            if tied == 0 {
                assert_eq!(split_axis(&compiled, "output.weight"), Some(1), "{what}");
            }
        }
    }
}

const MOE: [(&str, Option<usize>); 3] = [
    ("ffn_gate_exps", Some(1)),
    ("ffn_up_exps", Some(1)),
    ("ffn_down_exps", Some(0)),
];

#[test]
fn experts_are_divided_by_width() {
    for arch in ["llama", "qwen3moe", "gpt-oss"] {
        for (experts, used) in [(4, 1), (4, 2), (8, 1), (8, 2)] {
            let file = make(&format!(
                "{arch}:{SMALL},heads=4,kv_heads=2,head_dim=4,experts={experts},experts_used={used}"
            ));
            for devices in [2, 3, 5, 8] {
                let compiled = planned(&file, &fast_links(devices));
                let what = format!("{arch} {used} of {experts} on {devices}");
                let whole = run(&compiled.model.graph, &file, &compiled);
                assert_close(
                    &what,
                    &whole,
                    &run(&compiled.programs, &file, &compiled),
                    EXACT,
                );
                for (stem, _) in MOE {
                    let tensor = format!("blk.0.{stem}.weight");
                    assert!(split_axis(&compiled, &tensor).is_some(), "{what}: {tensor}");
                }
            }
        }
    }
}

#[test]
fn experts_are_divided_among_devices() {
    for arch in ["llama", "qwen3moe", "gpt-oss"] {
        for (experts, used) in [(4, 1), (4, 2), (8, 1), (8, 2)] {
            let file = make(&format!(
                "{arch}:{SMALL},heads=4,kv_heads=2,head_dim=4,experts={experts},experts_used={used}"
            ));
            for devices in [2, 3, 5, 8] {
                let what = format!("{arch} {used} of {experts} on {devices}");
                let compiled = divided(&file, &fast_links(devices), ("_exps.", 2), 0);
                for (stem, _) in MOE {
                    let tensor = format!("blk.0.{stem}.weight");
                    assert_eq!(split_axis(&compiled, &tensor), Some(2), "{what}: {tensor}");
                }
                let whole = run(&compiled.model.graph, &file, &compiled);
                assert_close(
                    &what,
                    &whole,
                    &run(&compiled.programs, &file, &compiled),
                    EXACT,
                );
            }
        }
    }
}

#[test]
fn a_sliding_window_wraps_around_its_cache() {
    for (spec, window) in [
        (
            "gemma3:layers=2,gemma3.attention.sliding_window_pattern=2",
            3,
        ),
        ("gpt-oss:layers=2,experts=4", 5),
        ("phi3:layers=1", 4),
        ("olmo2:layers=4", 2),
    ] {
        let file = make(&format!(
            "{spec},embd=32,heads=4,kv_heads=2,ff=16,vocab=24,ctx=64,type=f32,window={window}"
        ));
        let tokens = tokens(19, 24);
        for devices in [1, 2, 3, 6] {
            let compiled = planned(&file, &fast_links(devices));
            let expected = tpc_ir::Window::Sliding(window as u64);
            assert_eq!(compiled.model.summary.window, Some(expected));
            let n = tokens.len();
            let what = format!("{spec} window {window} on {devices}");
            let whole = decode(
                &mut session(&compiled.model.graph, &file, &compiled, n, n),
                &Batch::sequence(&tokens, 0, 0),
            );
            let sessions = |cells| {
                [
                    session(&compiled.model.graph, &file, &compiled, n, cells),
                    session(&compiled.programs, &file, &compiled, n, cells),
                ]
            };
            for mut one_by_one in sessions(window + 1) {
                let mut got = Vec::new();
                for (i, t) in tokens.iter().enumerate() {
                    let batch = Batch::sequence(&[*t], i as u32, 0);
                    got.extend(decode(&mut one_by_one, &batch));
                }
                assert_close(&what, &whole, &got, EXACT);
            }
            // Run batches of uneven length, with exactly the needed number of cells.
            for mut batches in sessions(window + 4) {
                let mut got = Vec::new();
                let mut at = 0;
                for len in [4, 1, 3, 4, 2, 4, 1] {
                    let batch = Batch::sequence(&tokens[at..at + len], at as u32, 0);
                    got.extend(decode(&mut batches, &batch));
                    at += len;
                }
                assert_eq!(at, n);
                assert_close(&what, &whole, &got, EXACT);
            }
        }
    }
}

#[test]
fn interleaved_sequences_do_not_see_each_other() {
    for spec in ["llama:layers=2", "gpt-oss:layers=2,window=3"] {
        let file = make(&format!(
            "{spec},embd=32,heads=4,kv_heads=2,ff=16,vocab=24,ctx=64,type=f32"
        ));
        let a = tokens(9, 24);
        let b: Vec<u32> = tokens(9, 23).into_iter().rev().collect();
        for devices in [1, 2, 3, 5] {
            let compiled = planned(&file, &fast_links(devices));
            let alone = |tokens: &[u32]| {
                let mut session = session(&compiled.model.graph, &file, &compiled, 9, 9);
                decode(&mut session, &Batch::sequence(tokens, 0, 0))
            };
            let want = [alone(&a), alone(&b)];
            let n_vocab = compiled.model.summary.n_vocab as usize;
            let mut together = session(&compiled.programs, &file, &compiled, 18, 18);
            let mut got = [Vec::new(), Vec::new()];
            for i in (0..9).step_by(3) {
                // Three tokens of each sequence, alternating. All have logits, in another order.
                let mut batch = Batch::default();
                for pos in i..i + 3 {
                    for (seq, tokens) in [&a, &b].into_iter().enumerate() {
                        batch.tokens.push(tokens[pos]);
                        batch.positions.push(pos as u32);
                        batch.seq_ids.push(10 + seq as u32);
                    }
                }
                batch.output_rows = vec![0, 2, 4, 1, 3, 5];
                let logits = decode(&mut together, &batch);
                got[0].extend_from_slice(&logits[..3 * n_vocab]);
                got[1].extend_from_slice(&logits[3 * n_vocab..]);
            }
            for (want, got) in want.iter().zip(&got) {
                assert_close(&format!("{spec} on {devices}"), want, got, EXACT);
            }
        }
    }
}

#[test]
fn narrow_caches_round_alike_on_every_device() {
    for (k, v) in [
        (DType::F16, DType::F16),
        (DType::Q8_0, DType::Q8_0),
        (DType::F16, DType::Q4_0),
        (DType::Bf16, DType::Iq4Nl),
    ] {
        for heads in ["heads=4,kv_heads=2", "heads=6,kv_heads=3"] {
            let file = make(&format!("llama:{SMALL},{heads},head_dim=32"));
            let exact = planned(&file, &fast_links(1));
            let exact = run(&exact.model.graph, &file, &exact);
            for devices in [2, 3, 5, 8] {
                let placement = Placement {
                    cache_type_k: k,
                    cache_type_v: v,
                    ..fast_links(devices)
                };
                let compiled = divided(&file, &placement, HEADS, devices);
                let what = format!("caches {k} {v} {heads} on {devices}");
                let whole = run(&compiled.model.graph, &file, &compiled);
                assert_close(
                    &what,
                    &whole,
                    &run(&compiled.programs, &file, &compiled),
                    ROUNDED,
                );
                assert_split(
                    &what,
                    &compiled,
                    &[("attn_k", Some(1)), ("attn_v", Some(1))],
                );
                let rounded = distance(exact.iter().copied(), whole);
                assert!(rounded.nmse > ROUNDED, "{what}: nothing is rounded");
            }
        }
    }
}

#[test]
fn every_architecture_runs_on_any_number_of_devices() {
    for (a, arch) in ARCHS.iter().enumerate() {
        let changes = ["", "biases=1", "fused=1", "fused=0", "tied=1"];
        for (c, change) in changes.into_iter().enumerate() {
            if change.starts_with("fused") && one_form(arch) || change == "tied=1" && own_head(arch)
            {
                continue;
            }
            let file = make(&format!("{}-tiny:{change}", arch.name));
            let mut whole = None;
            // The unchanged preset, on more numbers of devices than its variants. A sample has two numbers of devices
            // and one change per architecture.
            let counts: &[usize] = match (change, Sweep::asked()) {
                ("", Sweep::Full) => &[1, 2, 3, 5, 8],
                ("", Sweep::Sample) => [&[1, 3], &[2, 5], &[3, 8]][a % 3],
                (_, Sweep::Full) => &[3],
                (_, Sweep::Sample) if c == 1 + a % 4 => &[3],
                (_, Sweep::Sample) => &[],
            };
            for &devices in counts {
                let compiled = planned(&file, &fast_links(devices));
                let what = format!("{}-tiny:{change} on {devices}", arch.name);
                assert_eq!(
                    compiled.model.summary.unused,
                    Vec::<String>::new(),
                    "{what}"
                );
                let whole =
                    whole.get_or_insert_with(|| run(&compiled.model.graph, &file, &compiled));
                let got = run(&compiled.programs, &file, &compiled);
                assert_close(&what, whole, &got, EXACT);
                let mut kinds: BTreeMap<bool, u32> = BTreeMap::new();
                for (v, data) in compiled.sharded.values() {
                    if matches!(compiled.sharded.def_op(v), Op::Weight(_))
                        && !data.ty.dims[1].is_one()
                    {
                        *kinds.entry(data.sharding.is_split()).or_default() += 1;
                    }
                }
                let split = kinds.get(&true).copied().unwrap_or(0);
                assert_eq!(split > 0, devices > 1, "{what}: {kinds:?}");
            }
        }
    }
}

#[test]
fn devices_without_a_share_have_none() {
    for (a, arch) in ARCHS.iter().enumerate() {
        for (c, change) in ["", "biases=1"].into_iter().enumerate() {
            if Sweep::asked() == Sweep::Sample && a % 2 != c {
                continue;
            }
            let file = make(&format!("{}-tiny:{change}", arch.name));
            let mut whole = None;
            for shares in ["0,1,1", "1,0,1", "1,1,0"] {
                let mut placement = fast_links(3);
                placement.tensor_split = parse_tensor_split(shares, 3).ok();
                let compiled = planned(&file, &placement);
                let whole =
                    whole.get_or_insert_with(|| run(&compiled.model.graph, &file, &compiled));
                let got = run(&compiled.programs, &file, &compiled);
                let what = format!("{}-tiny:{change} with {shares}", arch.name);
                assert_close(&what, whole, &got, EXACT);
            }
        }
    }
}

/// True if a model of the architecture may lack layers with projections of several forms.
fn one_form(arch: &Arch) -> bool {
    arch.recurrent.is_some() || arch.attention.latent.is_some()
}

/// True if every file has `output` besides the token embedding.
fn own_head(arch: &Arch) -> bool {
    arch.head.output == Presence::Required
}

fn random_spec(rng: &mut Rng) -> String {
    let arch = rng.pick(ARCHS);
    let layers = rng.range(1, 3);
    let per_layer = |rng: &mut Rng, f: &mut dyn FnMut(&mut Rng) -> u64| {
        let list: Vec<String> = (0..layers).map(|_| f(rng).to_string()).collect();
        list.join("/")
    };
    let groups = rng.range(1, 6);
    let heads: Vec<u64> = (0..layers).map(|_| groups * rng.range(1, 5)).collect();
    let kv_heads: Vec<String> = heads
        .iter()
        .map(|h| {
            let divisors: Vec<u64> = (1..=*h).filter(|k| h.is_multiple_of(*k)).collect();
            rng.pick(&divisors).to_string()
        })
        .collect();
    let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    let (heads, kv_heads) = (heads.join("/"), kv_heads.join("/"));
    let types = [
        "f32",
        "f16",
        "bf16",
        "q8_0",
        "q4_0",
        "q5_1",
        "iq4_nl",
        "mxfp4",
        "q4_k",
        "q6_k",
        "mixed",
        "mxfp4_moe",
    ];
    let dtype = *rng.pick(&types);
    let width = |rng: &mut Rng, max: u64| match rng.range(0, 3) {
        0 => 256 * rng.range(1, 2),
        1 => 32 * rng.range(1, 5),
        _ => rng.range(1, max),
    };
    let embd = 2 * width(rng, 40).div_ceil(2);
    let head_dim = *rng.pick(&[2, 4, 6, 16, 32, 64]);
    let ff = per_layer(rng, &mut |rng| width(rng, 70));
    let vocab = if rng.one_in(4) {
        rng.range(1000, 3000)
    } else {
        rng.range(1, 60)
    };
    let mut spec = format!(
        "{}:layers={layers},embd={embd},heads={heads},kv_heads={kv_heads},head_dim={head_dim},ff={ff},vocab={vocab},\
         ctx=64,type={dtype},seed={}",
        arch.name,
        rng.range(0, 1000)
    );
    if arch.ffn.experts.form().is_some() && rng.one_in(2) {
        let experts = rng.range(1, 9);
        spec += &format!(
            ",experts={experts},experts_used={}",
            rng.range(1, experts.min(3))
        );
    }
    if arch.attention.window != Window::None {
        spec += &format!(",window={}", rng.range(0, 6));
    }
    for choice in ["biases", "tied", "fused"] {
        if choice == "fused" && one_form(arch) {
            continue;
        }
        match rng.range(0, 3) {
            0 => spec += &format!(",{choice}=0"),
            1 if choice == "tied" && own_head(arch) => {}
            1 => spec += &format!(",{choice}=1"),
            _ => {}
        }
    }
    spec
}

#[test]
fn random_models_run_however_they_are_divided() {
    let mut rng = Rng::new(20);
    for _ in 0..RANDOM_MODELS {
        let mut spec = random_spec(&mut rng);
        if try_make(&spec).is_err() {
            let arch = spec.split(':').next().expect("an architecture").to_owned();
            for (key, value) in preset_keys(&arch) {
                spec.push_str(&format!(",{key}={value}"));
            }
            if try_make(&spec).is_err() {
                // Some keys fix the number of layers, so the model is the unchanged preset.
                spec = format!("{arch}-tiny:vocab=40");
            }
        }
        let file = make(&spec);
        let devices = rng.range(2, 9) as usize;
        let mut placement = linked(devices, *rng.pick(&[0.0, 10.0]));
        if rng.one_in(3) {
            let mut split: Vec<f64> = (0..devices).map(|_| rng.range(0, 4) as f64).collect();
            split[0] += 1.0;
            placement.tensor_split = Some(split);
        }
        let mut tolerance = EXACT;
        if rng.one_in(4) {
            placement.cache_type_k = *rng.pick(&[DType::F16, DType::Bf16]);
            placement.cache_type_v = *rng.pick(&[DType::F16, DType::F32]);
            tolerance = ROUNDED;
        }
        let compiled = planned(&file, &placement);
        let what = format!("{spec} on {devices} by {:?}", placement.tensor_split);
        let whole = run(&compiled.model.graph, &file, &compiled);
        assert_close(
            &what,
            &whole,
            &run(&compiled.programs, &file, &compiled),
            tolerance,
        );
        let first = *rng.pick(&[HEADS, ("attn_v.", 1), ("_exps.", 2), ("token_embd.", 1)]);
        let way = rng.range(0, 3) as usize;
        let compiled = divided(&file, &placement, first, way);
        let what = format!("{what}, {first:?} first in way {way}");
        assert_close(
            &what,
            &whole,
            &run(&compiled.programs, &file, &compiled),
            tolerance,
        );
    }
}

/// The number of random models; each takes about 40 ms.
const RANDOM_MODELS: u32 = 100;
