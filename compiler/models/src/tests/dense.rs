use tpc_ir::op::{Clamp, FlashAttn, InputKind, NormKind, Op, RopeMode, Scale};
use tpc_ir::{Graph, Window};

use super::*;

pub(super) fn count(graph: &Graph, is: impl Fn(&Op) -> bool) -> usize {
    graph.insts().filter(|(_, i)| is(&i.op)).count()
}

fn rotated(graph: &Graph) -> Vec<u32> {
    let ropes = graph.insts().filter(|(_, i)| matches!(i.op, Op::Rope(_)));
    let mut layers: Vec<u32> = ropes.map(|(_, i)| i.layer.unwrap()).collect();
    layers.dedup();
    layers
}

pub(super) fn attentions(graph: &Graph) -> Vec<FlashAttn> {
    let found = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::FlashAttn(op) => Some(op.clone()),
        _ => None,
    });
    found.collect()
}

pub(super) fn states(graph: &Graph) -> Vec<String> {
    let states = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::State(s) => Some(format!("{} {}", s.name, graph.value(i.results[0]).ty)),
        _ => None,
    });
    states.collect()
}

fn scales(graph: &Graph) -> Vec<f32> {
    let found = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Scale(Scale { scale, .. }) => Some(*scale),
        _ => None,
    });
    found.collect()
}

pub(super) fn deep(arch: &str, layers: u32) -> Graph {
    let mut pairs = metadata(arch);
    set(&mut pairs, &format!("{arch}.block_count"), layers);
    lower_smallest(&pairs).graph
}

/// Returns the smallest model, with this value of this key.
fn with(arch: &str, key: &str, value: impl Into<MetaValue>) -> Graph {
    let mut pairs = metadata(arch);
    set(&mut pairs, &format!("{arch}.{key}"), value);
    lower_smallest(&pairs).graph
}

pub(super) fn refused(arch: &str, key: &str, value: impl Into<MetaValue>) -> String {
    let mut pairs = metadata(arch);
    set(&mut pairs, &format!("{arch}.{key}"), value);
    let error = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
    format!("{} {error}", error.code())
}

/// True if the first matrices of both sublayers read the same norm's result.
fn sublayers_share_their_input(graph: &Graph) -> bool {
    let input = |tensor: &str| {
        graph.insts().find_map(|(_, i)| {
            let reads = i.operands.first().map(|&w| &graph.value(w).name);
            (reads.is_some_and(|n| n == tensor)).then(|| i.operands[1])
        })
    };
    let attention = input("blk.0.attn_q.weight").or_else(|| input("blk.0.attn_qkv.weight"));
    attention == input("blk.0.ffn_up.weight")
}

#[test]
fn baichuan_rotates_or_has_alibi_by_its_depth() {
    let seven = deep("baichuan", 32);
    assert_eq!(rotated(&seven).len(), 32);
    assert!(attentions(&seven).iter().all(|a| a.max_bias == 0.0));
    let thirteen = deep("baichuan", 40);
    assert!(rotated(&thirteen).is_empty());
    assert!(attentions(&thirteen).iter().all(|a| a.max_bias == 8.0));
}

#[test]
fn alibi_has_a_key_or_a_value_of_the_architecture() {
    assert_eq!(attentions(&deep("bloom", 2))[0].max_bias, 8.0);
    assert_eq!(attentions(&deep("mpt", 2))[0].max_bias, 0.0);
    let mpt = with("mpt", "attention.max_alibi_bias", 4.0f32);
    assert_eq!(attentions(&mpt)[0].max_bias, 4.0);
    let negative = refused("mpt", "attention.max_alibi_bias", -1.0f32);
    assert!(negative.starts_with("TPC0151 "), "{negative}");
}

#[test]
fn some_layers_do_not_rotate() {
    assert_eq!(rotated(&deep("smollm3", 8)), [0, 1, 2, 4, 5, 6]);
    assert_eq!(rotated(&deep("cohere2", 8)), [0, 1, 2, 4, 5, 6]);
    assert_eq!(rotated(&deep("exaone4", 4)), [0, 1, 2, 3]);
    let deep = rotated(&deep("exaone4", 64));
    assert!(deep.len() == 48 && deep.iter().all(|il| il % 4 != 3));
    let unrotated = with("granite", "rope.scaling.finetuned", false);
    assert!(rotated(&unrotated).is_empty());
    let flag = with("granite_swa", "rope.scaling.finetuned", false);
    assert_eq!(rotated(&flag), [0, 1]);
    let list = with("granite_swa", "attention.rope_pattern", vec![0u32, 1]);
    assert_eq!(rotated(&list), [1]);
}

#[test]
fn a_window_may_have_a_length_without_its_key() {
    let window = |arch: &str, layers: u32| {
        let mut pairs = metadata(arch);
        set(&mut pairs, &format!("{arch}.block_count"), layers);
        set(
            &mut pairs,
            &format!("{arch}.attention.sliding_window"),
            0u32,
        );
        lower_smallest(&pairs).summary.window
    };
    assert_eq!(window("gemma2", 2), Some(Window::Sliding(4096)));
    assert_eq!(window("exaone4", 64), Some(Window::Sliding(4096)));
    assert_eq!(window("exaone4", 30), None);
    assert_eq!(window("cohere2", 4), None);
}

#[test]
fn granite_multiplies_and_divides() {
    let mut pairs = metadata("granite");
    for (key, value) in [
        ("embedding_scale", 12.0f32),
        ("residual_scale", 0.22),
        ("attention.scale", 0.015),
        ("logit_scale", 8.0),
    ] {
        set(&mut pairs, &format!("granite.{key}"), value);
    }
    let graph = lower_smallest(&pairs).graph;
    assert_eq!(scales(&graph), [12.0, 0.22, 0.22, 0.22, 0.22, 0.125]);
    assert_eq!(attentions(&graph)[0].scale, 0.015);
    let no_inverse = refused("granite", "logit_scale", 1e-40f32);
    assert!(no_inverse.starts_with("TPC0151 "), "{no_inverse}");
}

#[test]
fn a_key_or_a_norm_decides_how_sublayers_join() {
    let normed = |graph: &Graph| {
        let reads = |i: &&tpc_ir::InstData| {
            let weight = i.operands.get(1).map(|&w| &graph.value(w).name);
            weight.is_some_and(|n| n == "blk.0.ffn_norm.weight")
        };
        let (_, mul) = graph.insts().find(|(_, i)| reads(i)).unwrap();
        let norm = graph.inst(graph.value(mul.operands[0]).def.0);
        graph.value(norm.operands[0]).name.clone()
    };
    assert_eq!(
        normed(&with("gptneox", "use_parallel_residual", true)),
        "embd"
    );
    let sequential = with("gptneox", "use_parallel_residual", false);
    assert_eq!(normed(&sequential), "ffn_inp-0");
    let mut pairs = metadata("gptneox");
    pairs.retain(|(k, _)| !k.contains("parallel"));
    let error = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
    assert_eq!(error.code(), "TPC0130");
    let pairs = metadata("stablelm");
    for keep in [false, true] {
        let tensors = expected::tensors(&pairs, |t| keep && t.name.contains("ffn_norm"));
        let graph = lower(&header(&pairs, &tensors), &OPTIONS).unwrap().graph;
        assert_eq!(sublayers_share_their_input(&graph), !keep);
    }
}

#[test]
fn falcon_may_have_a_norm_for_attention_alone() {
    let pairs = metadata("falcon");
    for keep in [false, true] {
        let tensors = expected::tensors(&pairs, |t| keep && t.name.contains("attn_norm_2"));
        let graph = lower(&header(&pairs, &tensors), &OPTIONS).unwrap().graph;
        assert_eq!(sublayers_share_their_input(&graph), !keep);
    }
}

#[test]
fn mpt_bounds_its_projections() {
    let bounded = with("mpt", "attention.clamp_kqv", 6.0f32);
    let clamps =
        |op: &Op| matches!(op, Op::Clamp(Clamp { min, max }) if *min == -6.0 && *max == 6.0);
    assert_eq!(count(&bounded, clamps), 2);
    assert_eq!(count(&deep("mpt", 2), |op| matches!(op, Op::Clamp(_))), 0);
}

#[test]
fn glm_has_sections_if_the_file_gives_some() {
    let mode = |graph: &Graph| {
        graph.insts().find_map(|(_, i)| match &i.op {
            Op::Rope(rope) => Some(rope.mode),
            _ => None,
        })
    };
    assert_eq!(mode(&deep("glm4", 2)), Some(RopeMode::Norm));
    let none = with("glm4", "rope.dimension_sections", vec![0u32; 4]);
    assert_eq!(mode(&none), Some(RopeMode::Norm));
    let sections = [8, 4, 4, 0];
    let some = with("glm4", "rope.dimension_sections", vec![8u32, 4, 4, 0]);
    assert_eq!(mode(&some), Some(RopeMode::Mrope { sections }));
    let short = refused("glm4", "rope.dimension_sections", vec![8u32; 3]);
    assert!(short.contains("expected a list of 4"), "{short}");
}

#[test]
fn mistral_scales_queries_beyond_its_context() {
    let mut pairs = metadata("mistral3");
    let length = "mistral3.rope.scaling.original_context_length";
    set(&mut pairs, length, 16_384u32);
    set(&mut pairs, "mistral3.attention.temperature_scale", 0.1f32);
    let graph = lower_smallest(&pairs).graph;
    let temperature = graph.insts().find_map(|(_, i)| match &i.op {
        Op::Input(input) => match input.kind {
            InputKind::Temperature(t) => Some(t),
            _ => None,
        },
        _ => None,
    });
    let temperature = temperature.unwrap();
    assert_eq!(temperature.at(16_383), 1.0);
    assert_eq!(temperature.at(16_384), 1.0 + 0.1 * 2f32.ln());
    assert_eq!(
        temperature.at(40_000),
        (1.0 + 0.1f32 as f64 * 3f64.ln()) as f32
    );
}

/// Returns a small Gemma 4 of 8 layers, with full attention in the fourth and eighth.
fn gemma4() -> Vec<(String, MetaValue)> {
    let mut pairs = metadata("gemma4");
    set(&mut pairs, "gemma4.expert_count", 0u32);
    set(&mut pairs, "gemma4.block_count", 8u32);
    set(&mut pairs, "gemma4.attention.sliding_window_pattern", 4u32);
    set(&mut pairs, "gemma4.attention.key_length_swa", 16u32);
    set(&mut pairs, "gemma4.attention.value_length_swa", 16u32);
    pairs
}

#[test]
fn gemma_4_has_smaller_heads_in_windowed_layers() {
    let graph = lower_smallest(&gemma4()).graph;
    let states = states(&graph);
    assert_eq!(states[0], "cache_k_l0 f16[16, 2, n_ctx_swa]");
    assert_eq!(states[7], "cache_v_l3 f16[32, 2, n_ctx]");
    assert!(attentions(&graph).iter().all(|a| a.scale == 1.0));
    // Layers without a value projection use keys as values; the smallest model lacks value projections.
    assert!(graph.values().all(|(_, v)| !v.name.contains("attn_v")));
    let mut pairs = gemma4();
    set(&mut pairs, "gemma4.attention.value_length", 64u32);
    let tensors = expected::tensors(&pairs, |_| false);
    let values = |il: u32| {
        tensors
            .iter()
            .any(|t| t.0 == format!("blk.{il}.attn_v.weight"))
    };
    assert!(!values(0) && values(3));
}

#[test]
fn the_last_layers_may_share_caches() {
    let mut pairs = gemma4();
    set(&mut pairs, "gemma4.attention.shared_kv_layers", 4u32);
    let lowered = lower_smallest(&pairs);
    let states = states(&lowered.graph);
    assert_eq!(states.len(), 8);
    assert_eq!(states[7], "cache_v_l3 f16[32, 2, n_ctx]");
    let graph = &lowered.graph;
    let keys: Vec<_> = graph
        .insts()
        .filter(|(_, i)| matches!(i.op, Op::FlashAttn(_)))
        .map(|(_, i)| graph.value(i.operands[1]).name.clone())
        .collect();
    let expected = [0, 1, 2, 3, 2, 2, 2, 3].map(|il| format!("cache_k-{il}"));
    assert_eq!(keys, expected);
    for shared in [5u32, 8, 100] {
        set(&mut pairs, "gemma4.attention.shared_kv_layers", shared);
        let error = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
        assert_eq!(error.code(), "TPC0152", "{error}");
    }
}

#[test]
fn layers_may_have_embeddings_of_their_own() {
    let mut pairs = gemma4();
    set(&mut pairs, "gemma4.embedding_length_per_layer_input", 24u32);
    let tensors = expected::tensors(&pairs, |_| false);
    let shape = |name: &str| tensors.iter().find(|t| t.0 == name).unwrap().1;
    assert_eq!(shape("per_layer_token_embd.weight"), [192, 40, 1, 1]);
    assert_eq!(shape("per_layer_model_proj.weight"), [96, 192, 1, 1]);
    assert_eq!(shape("blk.7.inp_gate.weight"), [96, 24, 1, 1]);
    assert_eq!(shape("blk.7.proj.weight"), [24, 96, 1, 1]);
    let lowered = lower_smallest(&pairs);
    assert!(lowered.summary.unused.is_empty());
    let gelu = |op: &Op| op.name() == "gelu";
    assert_eq!(count(&lowered.graph, gelu), 8);
}

#[test]
fn arcee_has_squared_relu_and_no_gate() {
    let graph = deep("arcee", 2);
    assert_eq!(count(&graph, |op| op.name() == "relu"), 2);
    assert_eq!(count(&graph, |op| op.name() == "sqr"), 2);
    assert!(graph.values().all(|(_, v)| !v.name.contains("ffn_gate")));
}

#[test]
fn the_norms_of_olmo_have_no_weights() {
    let graph = deep("olmo", 2);
    assert_eq!(count(&graph, |op| matches!(op, Op::Norm(_))), 5);
    let weights = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Weight(w) => Some(w.tensor.clone()),
        _ => None,
    });
    assert!(weights.into_iter().all(|name| !name.contains("norm")));
}

#[test]
fn the_width_of_the_first_qwen_counts_gate_and_up() {
    let tensors = expected::tensors(&metadata("qwen"), |_| false);
    let shape = |name: &str| tensors.iter().find(|t| t.0 == name).unwrap().1;
    assert_eq!(shape("blk.0.ffn_gate.weight"), [96, 80, 1, 1]);
    assert_eq!(shape("blk.1.ffn_down.weight"), [80, 96, 1, 1]);
}

#[test]
fn codeshell_may_have_one_matrix_under_the_name_of_the_output() {
    let pairs = metadata("codeshell");
    let table = |keep: bool| {
        let tensors = expected::tensors(&pairs, |t| keep && t.name == "token_embd.weight");
        let graph = lower(&header(&pairs, &tensors), &OPTIONS).unwrap().graph;
        let mut rows = graph
            .insts()
            .filter(|(_, i)| matches!(i.op, Op::GetRows(_)));
        let (_, first) = rows.next().unwrap();
        graph.value(first.operands[0]).name.clone()
    };
    assert_eq!(table(true), "token_embd.weight");
    assert_eq!(table(false), "output.weight");
}

#[test]
fn minicpm_has_multipliers_where_no_key_holds_them() {
    let mut pairs = metadata("minicpm");
    pairs.retain(|(key, _)| key != "minicpm.logit_scale");
    let root = 1.4 / 2f32.sqrt();
    let graph = lower_smallest(&pairs).graph;
    assert_eq!(
        scales(&graph),
        [12.0, root, root, root, root, 1.0 / (256.0 / 96.0)]
    );
    for (key, value) in [
        ("embedding_scale", 3.0f32),
        ("residual_scale", 0.5),
        ("logit_scale", 4.0),
    ] {
        set(&mut pairs, &format!("minicpm.{key}"), value);
    }
    let graph = lower_smallest(&pairs).graph;
    assert_eq!(scales(&graph), [3.0, 0.5, 0.5, 0.5, 0.5, 0.25]);
}

#[test]
fn a_key_stretches_the_rotation_of_hunyuan_vl() {
    let base = |graph: &Graph| {
        let ropes = graph.insts().find_map(|(_, i)| match &i.op {
            Op::Rope(rope) => Some(rope.freq_base),
            _ => None,
        });
        ropes.unwrap()
    };
    assert_eq!(base(&deep("hunyuan_vl", 2)), 10_000.0);
    let none = with("hunyuan_vl", "rope.scaling.alpha", -1.0f32);
    assert_eq!(base(&none), 10_000.0);
    let stretched = with("hunyuan_vl", "rope.scaling.alpha", 1000.0f32);
    assert_eq!(base(&stretched), 10_000.0 * 1000f32.powf(32.0 / 30.0));
    let endless = refused("hunyuan_vl", "rope.scaling.alpha", 1e38f32);
    assert!(endless.starts_with("TPC0151 "), "{endless}");
}

#[test]
fn gates_have_a_number_per_head_or_per_element() {
    let gate = |arch: &str, columns: Option<u64>| {
        let pairs = metadata(arch);
        let mut tensors = expected::tensors(&pairs, |_| false);
        for (name, ne) in &mut tensors {
            if let (true, Some(n)) = (name.contains("attn_gate"), columns) {
                ne[1] = n;
            }
        }
        let lowered = lower(&header(&pairs, &tensors), &OPTIONS);
        lowered.map(|l| {
            let gate = l.graph.values().find(|(_, v)| v.name == "attn_gate-0");
            gate.unwrap().1.ty.dims[0].to_string()
        })
    };
    assert_eq!(gate("afmoe", None).unwrap(), "192");
    assert_eq!(gate("spark2_5", None).unwrap(), "6");
    assert_eq!(gate("laguna", None).unwrap(), "6");
    assert_eq!(gate("laguna", Some(192)).unwrap(), "192");
    assert_eq!(gate("laguna", Some(7)).unwrap_err().code(), "TPC0157");
    assert_eq!(gate("spark2_5", Some(192)).unwrap_err().code(), "TPC0157");
}

#[test]
fn attention_of_grok_and_jais_has_factors_of_its_own() {
    let grok = deep("grok", 2);
    let [first, ..] = &attentions(&grok)[..] else {
        panic!("attention")
    };
    assert_eq!((first.scale, first.softcap), (0.088_388_346, 30.0));
    let given = with("grok", "attention.output_scale", 0.5f32);
    assert_eq!(attentions(&given)[0].scale, 0.5);
    let ignored = with("grok", "attention.scale", 0.25f32);
    assert_eq!(attentions(&ignored)[0].scale, 0.088_388_346);
    assert_eq!(attentions(&deep("jais", 2))[0].scale, 1.0 / 32.0);
}

#[test]
fn cohere2moe_has_the_norms_whose_epsilon_the_file_gives() {
    let kind = |pairs: &[_]| {
        let graph = lower_smallest(pairs).graph;
        let mut norms = graph.insts().filter_map(|(_, i)| match &i.op {
            Op::Norm(n) => Some((n.kind, n.eps)),
            _ => None,
        });
        norms.next().unwrap()
    };
    let mut pairs = metadata("cohere2moe");
    assert_eq!(kind(&pairs), (NormKind::Rms, 1e-6));
    pairs.retain(|(key, _)| !key.contains("rms"));
    assert_eq!(kind(&pairs), (NormKind::Layer, 1e-5));
}
