use tpc_ir::op::{InputKind, Op};
use tpc_ir::{Graph, Window};

use super::*;

fn layers(graph: &Graph, is: impl Fn(&Op) -> bool) -> Vec<u32> {
    let mut out: Vec<u32> = graph
        .insts()
        .filter(|(_, i)| is(&i.op))
        .filter_map(|(_, i)| i.layer)
        .collect();
    out.dedup();
    out
}

fn windowed(graph: &Graph) -> Vec<u32> {
    let states = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::State(_) => Some((i.layer.unwrap(), i.results[0])),
        _ => None,
    });
    let swa = |&(_, v): &(u32, _)| graph.value(v).ty.to_string().contains("n_ctx_swa");
    let mut out: Vec<u32> = states.filter(swa).map(|(layer, _)| layer).collect();
    out.dedup();
    out
}

#[test]
fn every_fourth_layer_of_llama_4_has_full_attention_and_does_not_rotate() {
    let mut pairs = metadata("llama4");
    set(&mut pairs, "llama4.block_count", 8u32);
    pairs.retain(|(key, _)| key != "llama4.attention.sliding_window");
    for window in [None, Some(1u32), Some(8192)] {
        let mut pairs = pairs.clone();
        if let Some(window) = window {
            set(&mut pairs, "llama4.attention.sliding_window", window);
        }
        let lowered = lower_smallest(&pairs);
        let graph = &lowered.graph;
        assert_eq!(lowered.summary.window, Some(Window::Chunks(8192)));
        assert_eq!(windowed(graph), [0, 1, 2, 4, 5, 6]);
        assert_eq!(
            layers(graph, |op| matches!(op, Op::Rope(_))),
            [0, 1, 2, 4, 5, 6]
        );
        let temperature = graph.insts().find_map(|(_, i)| match &i.op {
            Op::Input(i) => match &i.kind {
                InputKind::Temperature(t) => Some(*t),
                _ => None,
            },
            _ => None,
        });
        let temperature = temperature.unwrap();
        assert_eq!(temperature.at(8190), 1.0);
        assert_eq!(temperature.at(8191), 1.0 + 0.1 * 2f32.ln());
        let scaled = graph.insts().filter(|(_, i)| {
            i.results
                .iter()
                .any(|&v| graph.value(v).name.starts_with("Qcur_tempered"))
        });
        let scaled: Vec<_> = scaled.filter_map(|(_, i)| i.layer).collect();
        assert_eq!(scaled, [3, 7]);
    }
    set(&mut pairs, "llama4.attention.sliding_window", 0u32);
    let lowered = lower_smallest(&pairs);
    assert_eq!(lowered.summary.window, None);
    assert_eq!(
        layers(&lowered.graph, |op| matches!(op, Op::Rope(_))).len(),
        8
    );
}

#[test]
fn maverick_does_not_normalise_heads() {
    let norms = |experts: u32| {
        let mut pairs = metadata("llama4");
        set(&mut pairs, "llama4.expert_count", experts);
        let graph = lower_smallest(&pairs).graph;
        let norms = graph.insts().filter(|(_, i)| matches!(i.op, Op::Norm(_)));
        norms.count()
    };
    // Each layer has two norms, the end has one; queries and keys of two layers have four more.
    assert_eq!(norms(16), 9);
    assert_eq!(norms(128), 5);
}

#[test]
fn mimo_has_a_window_in_the_layers_that_the_file_lists() {
    let mut pairs = metadata("mimo2");
    assert_eq!(lower_smallest(&pairs).summary.window, None);
    let list = vec![0u32, 1];
    set(&mut pairs, "mimo2.attention.sliding_window_pattern", list);
    let lowered = lower_smallest(&pairs);
    assert_eq!(lowered.summary.window, Some(Window::Sliding(16)));
    assert_eq!(windowed(&lowered.graph), [1]);
}

#[test]
fn values_are_scaled_if_a_key_says_so() {
    let scales = |scale: f32| {
        let mut pairs = metadata("mimo2");
        set(&mut pairs, "mimo2.attention.value_scale", scale);
        let graph = lower_smallest(&pairs).graph;
        layers(&graph, |op| matches!(op, Op::Scale(s) if s.scale == scale))
    };
    assert_eq!(scales(0.707), [0, 1]);
    assert_eq!(scales(1.0), [0; 0]);
}

#[test]
fn some_normalise_after_the_rotation() {
    for arch in ["hunyuan-moe", "hunyuan_vl", "maincoder"] {
        let graph = lower_smallest(&metadata(arch)).graph;
        for (_, inst) in graph.insts() {
            if matches!(inst.op, Op::Rope(_)) {
                let name = &graph.value(inst.operands[0]).name;
                assert!(!name.contains("normed"), "{name}");
            }
        }
    }
}

#[test]
fn every_fourth_layer_of_k_exaone_has_full_attention_and_does_not_rotate() {
    let mut pairs = metadata("exaone-moe");
    set(&mut pairs, "exaone-moe.block_count", 8u32);
    let lowered = lower_smallest(&pairs);
    assert_eq!(lowered.summary.window, Some(Window::Sliding(16)));
    assert_eq!(windowed(&lowered.graph), [0, 1, 2, 4, 5, 6]);
    let rotates = |op: &Op| matches!(op, Op::Rope(_));
    assert_eq!(layers(&lowered.graph, rotates), [0, 1, 2, 4, 5, 6]);
}

#[test]
fn windowed_layers_of_mellum_do_not_scale_their_rotation() {
    let mut pairs = metadata("mellum");
    set(&mut pairs, "mellum.block_count", 4u32);
    set(&mut pairs, "mellum.rope.scaling.type", "yarn");
    set(&mut pairs, "mellum.rope.scaling.factor", 4.0f32);
    let graph = lower_smallest(&pairs).graph;
    assert_eq!(windowed(&graph), [0, 1, 2]);
    let scaled = |op: &Op| matches!(op, Op::Rope(rope) if rope.freq_scale != 1.0);
    assert_eq!(layers(&graph, scaled), [3]);
}

#[test]
fn a_list_gives_layers_of_granite_a_window() {
    let mut pairs = metadata("granite_swa");
    let list = vec![1u32, 0];
    set(
        &mut pairs,
        "granite_swa.attention.sliding_window_pattern",
        list,
    );
    let lowered = lower_smallest(&pairs);
    assert_eq!(windowed(&lowered.graph), [0]);
    let with_sinks =
        |i: &tpc_ir::InstData| matches!(i.op, Op::FlashAttn(_)) && i.operands.len() == 5;
    let graph = &lowered.graph;
    assert_eq!(graph.insts().filter(|(_, i)| with_sinks(i)).count(), 2);
}

/// Returns the layers with a window, and the rotating layers, of a model of eight layers.
fn of_eight(arch: &str, more: &[(&str, MetaValue)]) -> [Vec<u32>; 2] {
    let mut pairs = metadata(arch);
    set(&mut pairs, &format!("{arch}.block_count"), 8u32);
    for (key, value) in more {
        set(&mut pairs, &format!("{arch}.{key}"), value.clone());
    }
    let graph = lower_smallest(&pairs).graph;
    let rotates = |op: &Op| matches!(op, Op::Rope(_));
    [windowed(&graph), layers(&graph, rotates)]
}

#[test]
fn full_attention_comes_first_or_last_and_may_not_rotate() {
    let (last, first) = (vec![0, 1, 2, 4, 5, 6], vec![1, 2, 3, 5, 6, 7]);
    let all: Vec<u32> = (0..8).collect();
    assert_eq!(of_eight("afmoe", &[]), [last.clone(), last]);
    assert_eq!(of_eight("laguna", &[]), [first.clone(), all.clone()]);
    assert_eq!(
        of_eight("smallthinker", &[]),
        [first.clone(), first.clone()]
    );
    let rotated = vec![0, 1, 2, 3, 5, 6, 7];
    assert_eq!(of_eight("cohere2moe", &[]), [first, rotated]);
    let none = [("attention.sliding_window", 0u32.into())];
    assert_eq!(of_eight("smallthinker", &none), [vec![], all]);
    let list: MetaValue = vec![0u32, 1, 0, 0, 0, 0, 0, 1].into();
    let list = [("attention.sliding_window_pattern", list)];
    assert_eq!(of_eight("maple", &list), [vec![1, 7], vec![1, 7]]);
    assert_eq!(of_eight("maple", &[]), [vec![0u32; 0], vec![0u32; 0]]);
}

#[test]
fn smallthinker_has_a_window_of_fixed_length() {
    let lowered = lower_smallest(&metadata("smallthinker"));
    assert_eq!(lowered.summary.window, Some(Window::Sliding(4096)));
}

#[test]
fn windowed_layers_may_have_a_rotation_of_their_own() {
    let bases = |arch: &str, more: &[(&str, MetaValue)]| {
        let mut pairs = metadata(arch);
        let list: MetaValue = vec![0u32, 1].into();
        set(
            &mut pairs,
            &format!("{arch}.attention.sliding_window_pattern"),
            list,
        );
        set(&mut pairs, &format!("{arch}.rope.scaling.factor"), 2.0f32);
        for (key, value) in more {
            set(&mut pairs, &format!("{arch}.{key}"), value.clone());
        }
        let graph = lower_smallest(&pairs).graph;
        let ropes = graph.insts().filter_map(|(_, i)| match &i.op {
            Op::Rope(r) => Some((i.layer?, r.freq_base, r.freq_scale, r.n_dims)),
            _ => None,
        });
        let mut ropes: Vec<_> = ropes.collect();
        ropes.dedup();
        ropes
    };
    let own = [
        ("rope.freq_base_swa", 500.0f32.into()),
        ("rope.dimension_count_swa", 16u32.into()),
    ];
    let full = (0, 10_000.0, 0.5, 32);
    assert_eq!(bases("spark2_5", &[]), [full, (1, 10_000.0, 0.5, 32)]);
    assert_eq!(bases("spark2_5", &own), [full, (1, 500.0, 0.5, 16)]);
    assert_eq!(bases("laguna", &own), [full, (1, 500.0, 1.0, 16)]);
    assert_eq!(bases("afmoe", &own), [full, (1, 500.0, 0.5, 32)][..]);
    assert_eq!(bases("gemma2", &own), [full, (1, 500.0, 0.5, 32)][..]);
    let windows = MetaValue::from(vec![1u32, 0]);
    let first = [
        own.to_vec(),
        vec![("attention.sliding_window_pattern", windows)],
    ];
    let found = bases("gemma2", &first.concat());
    assert_eq!(found, [(0, 500.0, 0.5, 16), (1, 10_000.0, 0.5, 16)]);
}
