use tpc_ir::op::{FlashAttn, Op, Rope, State};
use tpc_ir::{Graph, Window};

use super::*;

fn ropes(graph: &Graph) -> Vec<(Option<u32>, &Rope)> {
    let ropes = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Rope(rope) => Some((i.layer, rope)),
        _ => None,
    });
    ropes.collect()
}

fn attentions(graph: &Graph) -> Vec<&FlashAttn> {
    let found = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::FlashAttn(op) => Some(op),
        _ => None,
    });
    found.collect()
}

fn states(graph: &Graph) -> Vec<String> {
    let states = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::State(State { name, .. }) => Some(format!("{name} {}", graph.value(i.results[0]).ty)),
        _ => None,
    });
    states.collect()
}

#[test]
fn windowed_layers_have_caches_of_their_own_length() {
    let lowered = lower_smallest(&metadata("gpt-oss"));
    assert_eq!(lowered.summary.window, Some(Window::Sliding(16)));
    assert_eq!(
        states(&lowered.graph),
        [
            "cache_k_l0 f16[32, 2, n_ctx_swa]",
            "cache_v_l0 f16[32, 2, n_ctx_swa]",
            "cache_k_l1 f16[32, 2, n_ctx]",
            "cache_v_l1 f16[32, 2, n_ctx]",
        ]
    );
}

#[test]
fn architectures_that_ignore_the_window_have_none() {
    let lowered = lower_smallest(&metadata("qwen3"));
    assert_eq!(lowered.summary.window, None);
}

#[test]
fn every_layer_of_phi_is_windowed_if_the_file_gives_a_window() {
    let mut pairs = metadata("phi3");
    let lowered = lower_smallest(&pairs);
    assert_eq!(lowered.summary.window, Some(Window::Sliding(16)));
    assert!(
        states(&lowered.graph)
            .iter()
            .all(|s| s.contains("n_ctx_swa"))
    );
    set(&mut pairs, "phi3.attention.sliding_window", 0u32);
    assert_eq!(lower_smallest(&pairs).summary.window, None);
}

#[test]
fn a_pattern_may_be_a_period_or_a_list() {
    let windowed = |value: MetaValue| {
        let mut pairs = metadata("gemma3");
        set(&mut pairs, "gemma3.block_count", 4u32);
        set(&mut pairs, "gemma3.attention.sliding_window_pattern", value);
        let lowered = lower_smallest(&pairs);
        let keys = states(&lowered.graph).into_iter().step_by(2);
        keys.map(|s| s.contains("n_ctx_swa")).collect::<Vec<_>>()
    };
    assert_eq!(windowed(2u32.into()), [true, false, true, false]);
    assert_eq!(windowed(0u32.into()), [true; 4]);
    let list = vec![false, true, true, false];
    assert_eq!(windowed(list.clone().into()), list);
    assert_eq!(windowed(vec![0u32, 1, 1, 0].into()), list);
}

#[test]
fn layers_may_differ_in_heads_and_width() {
    let mut pairs = metadata("qwen2");
    set(&mut pairs, "qwen2.attention.head_count", vec![6u32, 4]);
    set(&mut pairs, "qwen2.attention.head_count_kv", vec![3u32, 1]);
    set(&mut pairs, "qwen2.feed_forward_length", vec![160u32, 128]);
    let lowered = lower_smallest(&pairs);
    let states = states(&lowered.graph);
    assert_eq!(states[0], "cache_k_l0 f16[32, 3, n_ctx]");
    assert_eq!(states[2], "cache_k_l1 f16[32, 1, n_ctx]");
}

#[test]
fn gemma_rotates_windowed_layers_without_scaling() {
    let mut pairs = metadata("gemma3");
    set(&mut pairs, "gemma3.block_count", 6u32);
    set(&mut pairs, "gemma3.rope.freq_base", 1e6f32);
    set(&mut pairs, "gemma3.rope.scaling.type", "linear");
    set(&mut pairs, "gemma3.rope.scaling.factor", 8.0f32);
    let lowered = lower_smallest(&pairs);
    for (layer, rope) in ropes(&lowered.graph) {
        let expected = if layer == Some(5) {
            (1e6, 0.125)
        } else {
            (1e4, 1.0)
        };
        assert_eq!((rope.freq_base, rope.freq_scale), expected);
    }
}

#[test]
fn gemma_of_62_layers_scales_by_its_width() {
    let mut pairs = metadata("gemma3");
    let scale = |pairs: &[(String, MetaValue)]| {
        let lowered = lower_smallest(pairs);
        let scale = lowered.graph.insts().find_map(|(_, i)| match &i.op {
            Op::Scale(s) if i.layer.is_some() => Some(s.scale),
            _ => None,
        });
        assert_eq!(attentions(&lowered.graph)[0].scale, 1.0);
        scale.unwrap()
    };
    assert_eq!(scale(&pairs), 1.0 / 32f32.sqrt());
    set(&mut pairs, "gemma3.block_count", 62u32);
    assert_eq!(scale(&pairs), 1.0 / 16f32.sqrt());
    set(&mut pairs, "gemma3.attention.scale", 0.5f32);
    assert_eq!(scale(&pairs), 0.5);
}

#[test]
fn yarn_leaves_its_own_factor_to_the_op() {
    let mut pairs = metadata("gpt-oss");
    set(&mut pairs, "gpt-oss.rope.scaling.type", "yarn");
    set(&mut pairs, "gpt-oss.rope.scaling.factor", 32.0f32);
    set(
        &mut pairs,
        "gpt-oss.rope.scaling.original_context_length",
        4096u32,
    );
    let lowered = lower_smallest(&pairs);
    for (_, rope) in ropes(&lowered.graph) {
        assert_eq!(rope.freq_scale, 1.0 / 32.0);
        assert_eq!(rope.ext_factor, 1.0);
        assert_eq!(rope.n_ctx_orig, 4096);
        assert!((rope.attn_factor - 1.0).abs() < 1e-6);
    }
}

#[test]
fn a_scaling_type_of_none_scales_nothing() {
    let mut pairs = metadata("llama");
    set(&mut pairs, "llama.rope.scaling.type", "none");
    set(&mut pairs, "llama.rope.scaling.factor", 4.0f32);
    let lowered = lower_smallest(&pairs);
    assert!(
        ropes(&lowered.graph)
            .iter()
            .all(|(_, r)| r.freq_scale == 1.0)
    );
}

#[test]
fn long_contexts_have_their_own_frequency_factors() {
    let mut pairs = metadata("phi3");
    set(&mut pairs, "phi3.rope.scaling.type", "longrope");
    set(&mut pairs, "phi3.context_length", 4096u32);
    set(
        &mut pairs,
        "phi3.rope.scaling.original_context_length",
        1024u32,
    );
    let tensors = expected::tensors(&pairs, |_| true);
    let header = header(&pairs, &tensors);
    for (ctx_size, factors) in [
        (1024, "rope_factors_short.weight"),
        (1025, "rope_factors_long.weight"),
    ] {
        let lowered = lower(
            &header,
            &LowerOptions {
                ctx_size,
                ..OPTIONS
            },
        )
        .unwrap();
        assert!(lowered.summary.unused.is_empty());
        let graph = &lowered.graph;
        for (_, inst) in graph.insts() {
            if let Op::Rope(rope) = &inst.op {
                assert_eq!(graph.value(inst.operands[2]).name, factors);
                let expected = (1.0 + 4f32.ln() / 1024f32.ln()).sqrt();
                assert_eq!(rope.attn_factor, expected);
            }
        }
    }
    let tensors: Vec<_> = tensors
        .into_iter()
        .filter(|(name, _)| !name.contains("factors_short"))
        .collect();
    let error = lower(&super::header(&pairs, &tensors), &OPTIONS).unwrap_err();
    assert_eq!(error.code(), "TPC0159");
}

#[test]
fn fused_and_separate_forms_are_both_read() {
    let pairs = metadata("phi3");
    let fused = expected::tensors(&pairs, |_| false);
    let mut separate = fused.clone();
    separate.retain(|(name, _)| !name.contains("attn_qkv") && !name.contains("ffn_up"));
    for il in 0..2 {
        let mut add = |stem: &str, columns| {
            separate.push((format!("blk.{il}.{stem}.weight"), [96, columns, 1, 1]));
        };
        add("attn_q", 192);
        add("attn_k", 64);
        add("attn_v", 64);
        add("ffn_gate", 160);
        add("ffn_up", 160);
    }
    let slices = |tensors: &[_]| {
        let lowered = lower(&header(&pairs, tensors), &OPTIONS).unwrap();
        assert!(lowered.summary.unused.is_empty());
        let graph = lowered.graph;
        let axis_0 = |op: &Op| matches!(op, Op::Slice(s) if s.axis == 0);
        graph.insts().filter(|(_, i)| axis_0(&i.op)).count()
    };
    assert_eq!(slices(&fused), 6);
    assert_eq!(slices(&separate), 0);
}

#[test]
fn command_r_plus_needs_both_norms_of_heads() {
    let pairs = metadata("command-r");
    let mut tensors = expected::tensors(&pairs, |t| t.name.contains("_norm"));
    let shape = |name: &str| tensors.iter().find(|t| t.0 == name).unwrap().1;
    assert_eq!(shape("blk.1.attn_q_norm.weight"), [32, 6, 1, 1]);
    assert_eq!(shape("blk.1.attn_k_norm.weight"), [32, 2, 1, 1]);
    tensors.retain(|(name, _)| !name.contains("attn_q_norm"));
    let error = lower(&header(&pairs, &tensors), &OPTIONS).unwrap_err();
    assert_eq!(error.code(), "TPC0159");
    assert_eq!(
        error.to_string(),
        "tensor blk.0.attn_q_norm.weight is missing, though the file has blk.0.attn_k_norm.weight"
    );
}

#[test]
fn a_tied_head_is_the_token_embedding() {
    let lowered = lower_smallest(&metadata("qwen2"));
    let graph = &lowered.graph;
    let head = graph.value(graph.outputs[0].value()).def.0;
    let weight = graph.inst(head).operands[0];
    assert_eq!(graph.value(weight).name, "token_embd.weight");
}

fn head_ops(pairs: &[(String, MetaValue)]) -> Vec<&'static str> {
    let lowered = lower_smallest(pairs);
    let graph = &lowered.graph;
    let last = graph.insts().rposition(|(_, i)| i.layer.is_some()).unwrap();
    let head = graph.insts().skip(last + 1);
    head.filter(|(_, i)| !i.op.is_leaf())
        .map(|(_, i)| i.op.name())
        .collect()
}

#[test]
fn logits_are_scaled_and_bounded_where_the_architecture_says_so() {
    let cap = |arch: &str| {
        let mut pairs = metadata(arch);
        set(
            &mut pairs,
            &format!("{arch}.final_logit_softcapping"),
            30.0f32,
        );
        pairs
    };
    let plain = ["get_rows", "rms_norm", "mul", "mul_mat"];
    assert_eq!(head_ops(&cap("llama")), plain);
    assert_eq!(head_ops(&cap("gemma3"))[4..], ["scale", "tanh", "scale"]);
    let scaled = ["get_rows", "norm", "mul", "mul_mat", "scale"];
    assert_eq!(head_ops(&metadata("command-r")), scaled);
}

#[test]
fn experts_may_hold_gate_and_up_fused() {
    let pairs = metadata("qwen3moe");
    let mut tensors = expected::tensors(&pairs, |_| false);
    tensors.retain(|(name, _)| !name.contains("ffn_gate_exps") && !name.contains("ffn_up_exps"));
    for il in 0..2 {
        tensors.push((format!("blk.{il}.ffn_gate_up_exps.weight"), [96, 128, 5, 1]));
    }
    let lowered = lower(&header(&pairs, &tensors), &OPTIONS).unwrap();
    assert!(lowered.summary.unused.is_empty());
}
