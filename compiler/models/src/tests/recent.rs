//! Choices that few architectures make.

use tpc_ir::op::{InputKind, NormKind, Op, TemperatureCurve};
use tpc_ir::{Graph, Value};

use super::dense::{attentions, count, deep, refused, states};
use super::*;

/// Returns the smallest model with these keys.
fn with_keys<const N: usize>(arch: &str, keys: [(&str, MetaValue); N]) -> Graph {
    let mut pairs = metadata(arch);
    for (key, value) in keys {
        set(&mut pairs, &format!("{arch}.{key}"), value);
    }
    lower_smallest(&pairs).graph
}

fn windows(layers: &[u32]) -> (&'static str, MetaValue) {
    let list: Vec<u32> = layers.to_vec();
    ("attention.sliding_window_pattern", list.into())
}

fn rotations(graph: &Graph) -> Vec<(u32, u64)> {
    let ropes = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Rope(rope) => Some((i.layer.unwrap(), rope.n_dims)),
        _ => None,
    });
    let mut found: Vec<(u32, u64)> = ropes.collect();
    found.dedup();
    found
}

fn weights(graph: &Graph) -> Vec<&str> {
    let names = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Weight(w) => Some(w.tensor.as_str()),
        _ => None,
    });
    names.collect()
}

fn has(graph: &Graph, tensor: &str) -> bool {
    weights(graph).contains(&tensor)
}

/// Returns the op and operands that compute the first value of this name.
fn named<'g>(graph: &'g Graph, name: &str) -> (&'g Op, &'g [Value]) {
    let found = graph
        .insts()
        .find(|(_, i)| i.results.iter().any(|&r| graph.value(r).name == name));
    let (_, inst) = found.unwrap_or_else(|| panic!("no {name} in\n{graph}"));
    (&inst.op, &inst.operands)
}

#[test]
fn apertus_has_its_own_xielu_in_each_layer() {
    let mut pairs = metadata("apertus");
    set(&mut pairs, "xielu.beta", vec![0.5f32, 0.25]);
    let graph = lower_smallest(&pairs).graph;
    let curves: Vec<(f32, f32)> = graph
        .insts()
        .filter_map(|(_, i)| match &i.op {
            Op::Xielu(x) => Some((x.beta, x.alpha_n - x.alpha_p)),
            _ => None,
        })
        .collect();
    // Both factors are softplus(0.5); the lower one includes beta.
    assert_eq!(curves, [(0.5, 0.5), (0.25, 0.25)]);
}

#[test]
fn plm_ignores_a_rank_of_queries_and_an_output() {
    let graph = deep("plm", 2);
    assert!(has(&graph, "blk.0.attn_q.weight") && has(&graph, "blk.1.attn_kv_b.weight"));
    assert!(!has(&graph, "output.weight") && !has(&graph, "blk.0.attn_q_a.weight"));
    assert_eq!(count(&graph, |op| op.name() == "sqr"), 2);
}

#[test]
fn flint_lists_its_windows_and_rotations_separately() {
    let rotated = ("attention.rope_pattern", vec![0u32, 1].into());
    let graph = with_keys("flint", [windows(&[1, 0]), rotated]);
    assert_eq!(rotations(&graph), [(1, 32)]);
    assert!(states(&graph)[0].contains("n_ctx_swa") && !states(&graph)[2].contains("n_ctx_swa"));
    assert!(has(&graph, "blk.0.attn_sinks.weight"));
}

#[test]
fn kolibri_adds_the_bias_to_logits() {
    let graph = with_keys("kolibri1", [windows(&[1, 0])]);
    let (_, operands) = named(&graph, "ffn_moe_probs_biased-0");
    assert_eq!(graph.value(operands[0]).name, "ffn_moe_logits-0");
    assert_eq!(rotations(&graph), [(0, 32)]);
}

#[test]
fn maion_coder_routes_by_the_stream_and_computes_in_the_latent_vector() {
    let graph = with_keys("maion-coder", [windows(&[1, 1])]);
    let (_, operands) = named(&graph, "ffn_moe_logits-1");
    assert_eq!(graph.value(operands[1]).name, "ffn_norm-1");
    assert!(has(&graph, "blk.1.ffn_latent_up.weight") && has(&graph, "blk.0.ffn_up.weight"));
    let missing = refused("maion-coder", "moe_latent_size", 0u32);
    assert!(missing.contains("moe_latent_size"), "{missing}");
}

#[test]
fn muse_spark_weighs_its_sums_and_scales_before_norms() {
    let graph = with_keys("muse-spark", [windows(&[1, 0])]);
    let norms: Vec<f32> = graph
        .insts()
        .filter_map(|(_, i)| match &i.op {
            Op::Norm(n) if n.eps == 1e-4 => Some(n.eps),
            _ => None,
        })
        .collect();
    // Per layer: attention's output, each expert's output, the feed-forward output.
    assert_eq!(norms.len(), 6);
    let (op, operands) = named(&graph, "ffn_post_norm-0");
    assert!(matches!(op, Op::Norm(_)));
    assert_eq!(graph.value(operands[0]).name, "norm_inp-0");
    assert!(has(&graph, "blk.1.ffn_resid_beta.weight"));
    assert!(!has(&graph, "blk.0.post_attention_norm.weight"));
}

#[test]
fn sensenova_rotates_half_of_a_head_without_scaling() {
    let graph = with_keys("sensenova_u1", [("rope.scaling.factor", 4.0f32.into())]);
    assert_eq!(rotations(&graph), [(0, 16), (1, 16)]);
    let unscaled =
        |op: &Op| matches!(op, Op::Rope(r) if r.freq_scale == 1.0 && r.ext_factor == 0.0);
    assert_eq!(count(&graph, unscaled), 4);
    let odd = refused("sensenova_u1", "attention.key_length", 30u32);
    assert!(odd.contains("a multiple of 4"), "{odd}");
}

#[test]
fn beam_scales_its_sums_by_depth_and_unrotated_queries_by_a_power() {
    let graph = with_keys("beam", [windows(&[1, 0])]);
    let scales: Vec<f32> = graph
        .insts()
        .filter_map(|(_, i)| match &i.op {
            Op::Scale(s) => Some(s.scale),
            _ => None,
        })
        .collect();
    let of = |n: f64| [((n - 1.0) / n).sqrt() as f32, (1.0 / n.sqrt()) as f32];
    let expected: Vec<f32> = [2.0, 3.0, 4.0, 5.0].into_iter().flat_map(of).collect();
    let found: Vec<f32> = scales
        .into_iter()
        .filter(|s| expected.contains(s))
        .collect();
    assert_eq!(found, expected);
    let temperatures = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Input(input) => match &input.kind {
            InputKind::Temperature(t) => Some(*t),
            _ => None,
        },
        _ => None,
    });
    let [temperature] = temperatures.collect::<Vec<_>>()[..] else {
        panic!("one temperature");
    };
    assert_eq!(temperature.curve, TemperatureCurve::Power);
    assert!((temperature.at(2047) - 2f32.powf(0.1)).abs() < 1e-6);
    assert_eq!(count(&graph, |op| op.name() == "rope"), 2);
}

#[test]
fn step_rotates_half_as_many_elements_in_full_layers() {
    let graph = with_keys("step35", [windows(&[0, 1])]);
    assert_eq!(rotations(&graph), [(0, 16), (1, 32)]);
    let bases = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::Rope(rope) => Some(rope.freq_base),
        _ => None,
    });
    assert!(bases.into_iter().all(|base| base == 10_000.0));
    let odd = refused("step35", "rope.dimension_count", 30u32);
    assert!(odd.contains("a multiple of 4"), "{odd}");
}

#[test]
fn lfm3_has_both_output_norms_or_neither() {
    let mut pairs = metadata("lfm3");
    set(&mut pairs, "lfm3.block_count", 1u32);
    set(&mut pairs, "lfm3.attention.head_count_kv", vec![2u32]);
    let tensors = expected::tensors(&pairs, |t| t.name.contains("post_"));
    let both = lower(&header(&pairs, &tensors), &OPTIONS).unwrap();
    assert!(has(&both.graph, "blk.0.post_ffw_norm.weight"));
    let mut one = tensors;
    one.retain(|(name, _)| name != "blk.0.post_ffw_norm.weight");
    let error = lower(&header(&pairs, &one), &OPTIONS).unwrap_err();
    assert!(error.to_string().contains("post_ffw_norm"), "{error}");
    let neither = lower_smallest(&pairs).graph;
    assert!(!has(&neither, "blk.0.post_attention_norm.weight"));
    assert!(has(&neither, "rope_freqs.weight"));
    let both_ways = refused("lfm3", "attention.causal", false);
    assert!(both_ways.contains("attention.causal"), "{both_ways}");
}

#[test]
fn k2_horizon_routes_values_beside_experts() {
    let counts = [
        ("attention.value_expert_count", 4u32.into()),
        ("attention.value_expert_used_count", 2u32.into()),
        ("attention.group_norm_groups", 3u32.into()),
    ];
    let graph = with_keys("k2-horizon", counts);
    assert!(has(&graph, "blk.0.attn_v.weight") && has(&graph, "blk.1.attn_v_exps.weight"));
    assert!(!has(&graph, "blk.1.attn_v.weight"));
    let by_groups = |op: &Op| matches!(op, Op::Reshape(r) if r.dims[0].as_const() == Some(32) && r.dims[1].as_const() == Some(3));
    // Two norms per layer, and the output norm.
    assert_eq!(count(&graph, by_groups), 5);
    let uneven = refused("k2-horizon", "attention.group_norm_groups", 7u32);
    assert!(uneven.contains("group_norm_groups"), "{uneven}");
}

#[test]
fn chameleon_may_normalise_outputs_and_hides_images() {
    let before = deep("chameleon", 1);
    let after = with_keys(
        "chameleon",
        [("swin_norm", true.into()), ("block_count", 1u32.into())],
    );
    let input = |graph: &Graph| {
        let (_, operands) = named(graph, "ffn_up-0");
        graph.value(operands[1]).name.clone()
    };
    assert_eq!(
        [input(&before), input(&after)],
        ["ffn_norm-0", "attn_norm-0"]
    );
    let layer_norms =
        |op: &Op| matches!(op, Op::Norm(n) if n.kind == NormKind::Layer && n.eps == 1e-5);
    assert_eq!(count(&before, layer_norms), 2);
    let hidden = |op: &Op| matches!(op, Op::Fill(f) if f.value == f32::MIN);
    assert_eq!(count(&before, hidden), 1);
}

#[test]
fn limite_mixes_inputs_of_earlier_layers() {
    let taps = [
        ("mudd.tap_count", 2u32.into()),
        ("mudd.feed_forward_length", 8u32.into()),
        (
            "mudd.tap_indices",
            MetaValue::Array(tpc_gguf::MetaArray::I32(vec![-1, -1, 0, 1])),
        ),
    ];
    let graph = with_keys("limite", taps.clone());
    assert!(has(&graph, "blk.1.mudd_up.bias") && !has(&graph, "blk.0.mudd_up.bias"));
    let (_, operands) = named(&graph, "mudd_resid-1");
    assert_eq!(graph.value(operands[0]).name, "inp_norm");
    assert!(has(&graph, "blk.0.attn_resid_scale.weight"));
    let mut pairs = metadata("limite");
    for (key, value) in taps {
        set(&mut pairs, &format!("limite.{key}"), value);
    }
    let late = MetaValue::Array(tpc_gguf::MetaArray::I32(vec![1, 0, 0, 1]));
    set(&mut pairs, "limite.mudd.tap_indices", late);
    let error = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
    assert!(error.to_string().contains("0 to 0 in layer 0"), "{error}");
}

#[test]
fn granite_switches_add_an_adapter_to_every_product() {
    let graph = deep("graniteswitch", 1);
    let adapted = weights(&graph)
        .into_iter()
        .filter(|w| w.ends_with(".lora_b"));
    assert_eq!(adapted.count(), 7);
    // The router's attention and the layer's.
    assert_eq!(attentions(&graph).len(), 2);
    let none = with_keys(
        "graniteswitch",
        [
            ("adapters.count", 0u32.into()),
            ("adapters.token_ids_activate", Vec::<u32>::new().into()),
            ("adapters.token_ids_substitute", Vec::<u32>::new().into()),
        ],
    );
    assert_eq!(attentions(&none).len(), 2);
    let far = refused(
        "graniteswitch",
        "adapters.token_ids_substitute",
        vec![40u32],
    );
    assert!(far.contains("ids below 40"), "{far}");
}

#[test]
fn mistral_large_4_shares_caches_of_layers_that_rotate_alike() {
    let keys = |map: [u32; 2], rotated: [u32; 2]| {
        [
            ("attention.kv_source_map", map.to_vec().into()),
            ("attention.rope_pattern", rotated.to_vec().into()),
        ]
    };
    let graph = with_keys("mistral-large4", keys([0, 0], [1, 1]));
    assert!(!has(&graph, "blk.1.attn_kv_a_mqa.weight"));
    let caches = states(&graph);
    assert_eq!(
        caches.iter().filter(|s| s.starts_with("cache_k_l")).count(),
        1
    );
    let plain = with_keys("mistral-large4", keys([0, 1], [1, 0]));
    let widths: Vec<String> = states(&plain)
        .into_iter()
        .filter(|s| s.starts_with("cache_k_l"))
        .collect();
    // 64 latent elements, and 32 rotated ones only in the first layer.
    assert!(
        widths[0].contains("[96,") && widths[1].contains("[64,"),
        "{widths:?}"
    );
    let mut pairs = metadata("mistral-large4");
    for (key, value) in keys([0, 0], [1, 0]) {
        set(&mut pairs, &format!("mistral-large4.{key}"), value);
    }
    let error = lower(&header(&pairs, &[]), &OPTIONS).unwrap_err();
    assert!(
        error.to_string().contains("rotates like this one"),
        "{error}"
    );
}

#[test]
fn names_without_a_description_are_refused_with_a_reason() {
    for (name, reason) in [
        ("gptj", "does not compute such models"),
        ("vllm-decision2", "has no logits"),
        ("deepseek41", "a map of the vocabulary"),
    ] {
        let error = crate::find(name).unwrap_err();
        assert_eq!(error.code().id, "TPC0150");
        assert!(error.to_string().ends_with(reason), "{error}");
    }
}
