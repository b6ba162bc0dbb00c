use tpc_ir::op::{Op, TopK};
use tpc_ir::{Graph, Value};

use super::*;
use crate::expected_tensors;
use tpc_gguf::Metadata;

/// Returns the smallest model's tensor names, plus optional tensors whose name contains `kept`.
fn names(pairs: &[(String, MetaValue)], kept: &str) -> Vec<String> {
    let tensors = expected::tensors(pairs, |t| t.name.contains(kept));
    tensors.into_iter().map(|(name, _)| name).collect()
}

fn shape(pairs: &[(String, MetaValue)], name: &str) -> Option<[u64; 4]> {
    let tensors = expected::tensors(pairs, |_| true);
    tensors.into_iter().find(|t| t.0 == name).map(|t| t.1)
}

fn code(pairs: &[(String, MetaValue)]) -> &'static str {
    let metadata = Metadata::from_pairs("test.gguf", pairs.to_vec()).unwrap();
    expected_tensors(&metadata, &OPTIONS, |_| true).map_or_else(|e| e.code().id, |_| "none")
}

fn routed(pairs: &[(String, MetaValue)]) -> Vec<usize> {
    let names = names(pairs, "");
    (0..6)
        .filter(|il| names.contains(&format!("blk.{il}.ffn_gate_inp.weight")))
        .collect()
}

fn top_ks(graph: &Graph) -> Vec<u64> {
    let insts = graph.insts().filter_map(|(_, i)| match &i.op {
        Op::TopK(TopK { k }) => Some(*k),
        _ => None,
    });
    insts.collect()
}

#[test]
fn leading_and_interleaved_layers_are_dense() {
    let mut pairs = metadata("deepseek");
    set(&mut pairs, "deepseek.block_count", 6u32);
    set(&mut pairs, "deepseek.leading_dense_block_count", 2u32);
    assert_eq!(routed(&pairs), [2, 3, 4, 5]);
    let mut pairs = metadata("ernie4_5-moe");
    set(&mut pairs, "ernie4_5-moe.block_count", 6u32);
    set(&mut pairs, "ernie4_5-moe.leading_dense_block_count", 2u32);
    assert_eq!(routed(&pairs), [3, 5]);
    set(&mut pairs, "ernie4_5-moe.interleave_moe_layer_step", 1u32);
    assert_eq!(routed(&pairs), [2, 3, 4, 5]);
    set(&mut pairs, "ernie4_5-moe.interleave_moe_layer_step", 0u32);
    assert_eq!(code(&pairs), "TPC0151");
    set(&mut pairs, "ernie4_5-moe.leading_dense_block_count", "none");
    assert_eq!(code(&pairs), "TPC0131");
}

#[test]
fn dense_layers_and_experts_have_widths_of_their_own() {
    let pairs = metadata("deepseek");
    let up = |name: &str| shape(&pairs, name).unwrap();
    assert_eq!(up("blk.0.ffn_up.weight"), [96, 160, 1, 1]);
    assert_eq!(up("blk.1.ffn_up_exps.weight"), [96, 64, 5, 1]);
}

#[test]
fn shared_experts_are_as_wide_as_the_keys_say() {
    const KEY: &str = "expert_shared_feed_forward_length";
    let width = |arch: &str, changes: &[(&str, u32)]| {
        let mut pairs = metadata(arch);
        for &(key, n) in changes {
            set(&mut pairs, &format!("{arch}.{key}"), n);
        }
        shape(&pairs, "blk.1.ffn_up_shexp.weight").map(|ne| ne[1])
    };
    // The width is per shared expert.
    assert_eq!(width("bailingmoe2", &[]), Some(48));
    assert_eq!(width("bailingmoe2", &[(KEY, 0)]), Some(64));
    let twice = [(KEY, 0), ("expert_shared_count", 2)];
    assert_eq!(width("bailingmoe2", &twice), Some(128));
    assert_eq!(width("bailingmoe2", &[("expert_shared_count", 0)]), None);
    // The width counts all shared experts together.
    assert_eq!(width("ernie4_5-moe", &[]), Some(48));
    assert_eq!(width("ernie4_5-moe", &[(KEY, 0)]), None);
    assert_eq!(width("qwen2moe", &[]), Some(48));
    assert_eq!(width("qwen2moe", &[(KEY, 0)]), Some(160));
    assert_eq!(width("exaone-moe", &[]), Some(48));
    assert_eq!(width("exaone-moe", &[(KEY, 0)]), Some(64));
    assert_eq!(width("qwen3moe", &[]), None);
}

#[test]
fn a_width_that_is_not_given_is_named() {
    let mut pairs = metadata("exaone-moe");
    let tensors = expected::tensors(&pairs, |_| false);
    pairs.retain(|(key, _)| key != "exaone-moe.expert_feed_forward_length");
    let error = lower(&header(&pairs, &tensors), &OPTIONS).unwrap_err();
    let says = "axis 1 is feed_forward_length (no expert_feed_forward_length is given)";
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn the_gating_function_is_the_files_if_the_architecture_reads_its_key() {
    let gating = |n: u32| {
        let mut pairs = metadata("minimax-m2");
        set(&mut pairs, "minimax-m2.expert_gating_func", n);
        if code(&pairs) != "none" {
            return code(&pairs);
        }
        let lowered = lower_smallest(&pairs);
        let mut ops = lowered.graph.insts().map(|(_, i)| i.op.name());
        let found = ops.find(|name| ["sigmoid", "soft_max", "softplus"].contains(name));
        found.unwrap()
    };
    assert_eq!(gating(0), "sigmoid");
    assert_eq!(gating(1), "soft_max");
    assert_eq!(gating(2), "sigmoid");
    assert_eq!(gating(3), "soft_max");
    assert_eq!(gating(4), "softplus");
    assert_eq!(gating(5), "TPC0151");
}

#[test]
fn tokens_have_experts_of_their_own_in_the_first_layers() {
    let mut pairs = metadata("deepseek4");
    set(&mut pairs, "deepseek4.hash_layer_count", 1u32);
    let model = |dtype| {
        let mut writer = GgufWriter::new("test.gguf");
        for (key, value) in &pairs {
            writer.meta(key, value.clone());
        }
        for (name, ne) in expected::tensors(&pairs, |_| false) {
            let is_table = name == "blk.0.ffn_gate_tid2eid.weight";
            writer.tensor(&name, if is_table { dtype } else { DType::F32 }, &ne);
        }
        lower(&writer.header().unwrap(), &OPTIONS)
    };
    let graph = model(DType::I32).unwrap().graph;
    let top = graph.insts().filter(|(_, i)| i.op.name() == "top_k");
    assert_eq!(top.map(|(_, i)| i.layer).collect::<Vec<_>>(), [Some(1)]);
    let biases = graph
        .values()
        .filter(|(_, v)| v.name.contains("exp_probs_b"));
    let biases: Vec<_> = biases.map(|(_, v)| v.name.as_str()).collect();
    assert_eq!(biases, ["blk.1.exp_probs_b.bias"]);
    let error = model(DType::F32).unwrap_err();
    assert_eq!(error.code(), "TPC0158");
    assert!(error.to_string().contains("32-bit integers"), "{error}");
}

#[test]
fn weights_are_normalised_and_scaled_if_keys_say_so() {
    let ops = |norm: bool, scale: f32| {
        let mut pairs = metadata("bailingmoe2");
        set(&mut pairs, "bailingmoe2.expert_weights_norm", norm);
        set(&mut pairs, "bailingmoe2.expert_weights_scale", scale);
        let lowered = lower_smallest(&pairs);
        let ops = lowered.graph.insts().map(|(_, i)| i.op.name());
        let ops = ops.filter(|name| ["div", "scale"].contains(name));
        ops.collect::<Vec<_>>()
    };
    assert_eq!(ops(false, 0.0), [""; 0]);
    assert_eq!(ops(false, 1.0), [""; 0]);
    assert_eq!(ops(true, 1.0), ["div"]);
    assert_eq!(ops(true, 2.5), ["div", "scale"]);
}

#[test]
fn groups_must_hold_the_experts_and_be_chosen_from() {
    let with = |experts: u32, groups: u32, used: u32| {
        let mut pairs = metadata("bailingmoe2");
        set(&mut pairs, "bailingmoe2.expert_count", experts);
        set(&mut pairs, "bailingmoe2.expert_group_count", groups);
        set(&mut pairs, "bailingmoe2.expert_group_used_count", used);
        pairs
    };
    assert_eq!(code(&with(12, 4, 2)), "none");
    assert_eq!(code(&with(12, 5, 2)), "TPC0152");
    assert_eq!(code(&with(12, 4, 5)), "TPC0152");
    assert_eq!(code(&with(12, 4, 0)), "TPC0151");
    // Three experts are chosen, and one group holds two.
    assert_eq!(code(&with(12, 6, 1)), "TPC0152");
    let ks = |pairs: &[_]| top_ks(&lower_smallest(pairs).graph);
    assert_eq!(ks(&with(12, 4, 2)), [2, 2, 3]);
    assert_eq!(ks(&with(12, 4, 4)), [3]);
    assert_eq!(ks(&with(12, 1, 1)), [3]);
    assert_eq!(ks(&with(5, 5, 3)), [1, 3, 3]);
}

#[test]
fn a_file_decides_by_its_routers() {
    let pairs = metadata("mimo2");
    let mut tensors = expected::tensors(&pairs, |_| false);
    let gone = |name: &str| name.starts_with("blk.0.ffn_") && !name.contains("norm");
    tensors.retain(|(name, _)| !gone(name));
    for (stem, ne) in [
        ("ffn_gate", [96, 160, 1, 1]),
        ("ffn_up", [96, 160, 1, 1]),
        ("ffn_down", [160, 96, 1, 1]),
    ] {
        tensors.push((format!("blk.0.{stem}.weight"), ne));
    }
    let lowered = lower(&header(&pairs, &tensors), &OPTIONS).unwrap();
    assert!(lowered.summary.unused.is_empty());
    assert_eq!(top_ks(&lowered.graph), [3]);
}

#[test]
fn draft_blocks_are_ignored_by_default() {
    let mut pairs = metadata("glm4moe");
    set(&mut pairs, "glm4moe.block_count", 3u32);
    let mut tensors = expected::tensors(&pairs, |_| false);
    tensors.push(("blk.2.nextn.eh_proj.weight".into(), [192, 96, 1, 1]));
    set(&mut pairs, "glm4moe.nextn_predict_layers", 1u32);
    let lowered = lower(&header(&pairs, &tensors), &OPTIONS).unwrap();
    assert_eq!(lowered.summary.n_layer, 2);
    assert!(lowered.summary.unused.is_empty());
    let guesses = |name: &&String| name.starts_with("blk.2.");
    let expected: Vec<&String> = tensors.iter().map(|t| &t.0).filter(guesses).collect();
    assert!(expected.len() > 10);
    assert_eq!(lowered.summary.ignored.iter().collect::<Vec<_>>(), expected);
    set(&mut pairs, "glm4moe.nextn_predict_layers", 3u32);
    assert_eq!(code(&pairs), "TPC0152");
}

#[test]
fn glm_normalises_heads_if_the_file_has_both_norms() {
    let pairs = metadata("glm4moe");
    let mut tensors = expected::tensors(&pairs, |t| t.name.contains("_norm"));
    let lowered = lower(&header(&pairs, &tensors), &OPTIONS).unwrap();
    let norms = |graph: &Graph| {
        let norms = graph.insts().filter(|(_, i)| matches!(i.op, Op::Norm(_)));
        norms.count()
    };
    assert_eq!(norms(&lowered.graph), 9);
    assert_eq!(norms(&lower_smallest(&pairs).graph), 5);
    tensors.retain(|(name, _)| !name.contains("attn_k_norm"));
    let error = lower(&header(&pairs, &tensors), &OPTIONS).unwrap_err();
    assert_eq!(error.code(), "TPC0159");
}

#[test]
fn some_take_the_dense_width_for_their_experts() {
    let up = |arch: &str| shape(&metadata(arch), "blk.0.ffn_up_exps.weight").unwrap()[1];
    for arch in [
        "granite",
        "granitemoe",
        "granite_swa",
        "minicpm",
        "llama",
        "hunyuan-moe",
        "minimax-m2",
    ] {
        assert_eq!(up(arch), 160, "{arch}");
    }
    assert_eq!(up("qwen3moe"), 64);
}

#[test]
fn the_shared_expert_of_granite_swa_has_gate_and_up_in_one_matrix() {
    let pairs = metadata("granite_swa");
    let together = shape(&pairs, "blk.0.ffn_up_shexp.weight");
    assert_eq!(together, Some([96, 96, 1, 1]));
    assert_eq!(shape(&pairs, "blk.0.ffn_gate_shexp.weight"), None);
    let separate = shape(&metadata("granitemoe"), "blk.0.ffn_up_shexp.weight");
    assert_eq!(separate, Some([96, 48, 1, 1]));
}

#[test]
fn lfm_has_dense_layers_first_and_a_bias_for_the_selection() {
    let pairs = metadata("lfm2moe");
    assert_eq!(routed(&pairs), [1]);
    assert!(names(&pairs, "").contains(&"blk.1.exp_probs_b.bias".to_owned()));
    let graph = lower_smallest(&pairs).graph;
    assert!(graph.insts().any(|(_, i)| i.op.name() == "sigmoid"));
}

#[test]
fn refact_has_experts_only_if_they_are_counted() {
    let mut pairs = metadata("refact");
    set(&mut pairs, "refact.expert_count", 8u32);
    let count = |pairs: &[(String, MetaValue)]| {
        let graph = lower_smallest(pairs).graph;
        let insts = graph.insts();
        insts.filter(|(_, i)| i.op.name() == "mul_mat_id").count()
    };
    // Gate, up and down of two layers.
    assert_eq!(count(&pairs), 6);
    set(&mut pairs, "refact.expert_count", 0u32);
    assert_eq!(count(&pairs), 0);
}

/// Returns the tensors that ops multiply `name` by, or that multiply it.
fn factors(graph: &Graph, name: &str) -> Vec<String> {
    let named = |v: &Value| graph.value(*v).name == name;
    let products = graph.insts().filter(|(_, i)| i.results.iter().any(named));
    let operands = products.flat_map(|(_, i)| i.operands.iter());
    let names = operands.map(|&v| graph.value(v).name.clone());
    names.filter(|n| n.starts_with("blk.")).collect()
}

#[test]
fn gemma_4_normalises_its_dense_network_and_its_experts_apart() {
    let pairs = metadata("gemma4");
    let graph = lower_smallest(&pairs).graph;
    for (value, weight) in [
        ("ffn_norm-0", "blk.0.ffn_norm.weight"),
        ("pre_ffw_norm_2-0", "blk.0.pre_ffw_norm_2.weight"),
        ("post_ffw_norm_1-0", "blk.0.post_ffw_norm_1.weight"),
        ("post_ffw_norm_2-0", "blk.0.post_ffw_norm_2.weight"),
        ("ffn_moe_router_in-0", "blk.0.ffn_gate_inp.scale"),
    ] {
        assert_eq!(factors(&graph, value), [weight], "{value}");
    }
    assert_eq!(
        reads(&graph, "blk.0.ffn_gate_inp.weight"),
        "ffn_moe_router_in-0"
    );
    assert_eq!(reads(&graph, "blk.0.ffn_up.weight"), "ffn_norm-0");
    let all = names(&pairs, "");
    let scale = "blk.0.ffn_down_exps.scale".to_owned();
    assert!(!graph.values().any(|(_, v)| v.name == scale));
    let tensors = expected::tensors(&pairs, |t| t.name.ends_with("ffn_down_exps.scale"));
    let scaled = lower(&header(&pairs, &tensors), &OPTIONS).unwrap().graph;
    assert!(scaled.values().any(|(_, v)| v.name == scale));
    assert!(all.contains(&"blk.1.post_ffw_norm.weight".to_owned()));
}

/// Returns the operand that the first op with this tensor multiplies.
fn reads(graph: &Graph, tensor: &str) -> String {
    let op = graph.insts().find_map(|(_, i)| {
        let weight = i.operands.first().map(|&w| &graph.value(w).name);
        weight.is_some_and(|n| n == tensor).then(|| i.operands[1])
    });
    graph.value(op.unwrap()).name.clone()
}

#[test]
fn routers_and_experts_may_read_the_input_of_the_layer() {
    let graph = lower_smallest(&metadata("smallthinker")).graph;
    assert_eq!(reads(&graph, "blk.0.ffn_gate_inp.weight"), "embd");
    assert_eq!(reads(&graph, "blk.1.ffn_gate_inp.weight"), "l_out-0");
    let graph = lower_smallest(&metadata("arctic")).graph;
    let name = reads(&graph, "blk.0.ffn_gate_inp.weight");
    assert_eq!(name, "ffn_norm_exps-0");
    assert_eq!(reads(&graph, "blk.0.ffn_up.weight"), "ffn_norm-0");
    assert_eq!(
        shape(&metadata("arctic"), "blk.0.ffn_up.weight"),
        Some([96, 96, 1, 1])
    );
}

#[test]
fn sums_with_experts_may_be_scaled() {
    let scales = |graph: &Graph| {
        let found = graph.insts().filter_map(|(_, i)| match &i.op {
            Op::Scale(s) => Some((i.layer?, s.scale)),
            _ => None,
        });
        found.collect::<Vec<_>>()
    };
    assert_eq!(
        scales(&lower_smallest(&metadata("cohere2moe")).graph),
        [(1, 0.5)]
    );
    let mut pairs = metadata("cohere2moe");
    set(&mut pairs, "cohere2moe.expert_shared_count", 0u32);
    assert_eq!(scales(&lower_smallest(&pairs).graph), []);
    let pairs = metadata("grok");
    let mut tensors = expected::tensors(&pairs, |_| false);
    assert_eq!(scales(&lower_smallest(&pairs).graph), []);
    for (stem, ne) in [
        ("ffn_gate", [96, 160, 1, 1]),
        ("ffn_up", [96, 160, 1, 1]),
        ("ffn_down", [160, 96, 1, 1]),
    ] {
        tensors.push((format!("blk.1.{stem}.weight"), ne));
    }
    let graph = lower(&header(&pairs, &tensors), &OPTIONS).unwrap().graph;
    assert_eq!(scales(&graph), [(1, std::f32::consts::FRAC_1_SQRT_2)]);
}

#[test]
fn a_bound_per_layer_limits_the_activation() {
    let mut pairs = metadata("maple");
    set(&mut pairs, "maple.swiglu_clamp_exp", vec![0.0f32, 7.0]);
    let graph = lower_smallest(&pairs).graph;
    let names = graph.insts().map(|(_, i)| i.op.name());
    let glus = names.filter(|n| n.starts_with("swiglu"));
    assert_eq!(glus.collect::<Vec<_>>(), ["swiglu", "swiglu_clamp"]);
}

#[test]
fn shared_experts_are_as_wide_as_their_count_says() {
    const KEY: &str = "expert_shared_feed_forward_length";
    let width = |arch: &str, changes: &[(&str, u32)]| {
        let mut pairs = metadata(arch);
        for &(key, n) in changes {
            set(&mut pairs, &format!("{arch}.{key}"), n);
        }
        shape(&pairs, "blk.1.ffn_up_shexp.weight").map(|ne| ne[1])
    };
    let count = ("expert_shared_count", 2);
    assert_eq!(width("afmoe", &[count]), Some(128));
    assert_eq!(width("laguna", &[count]), Some(48));
    assert_eq!(width("laguna", &[count, (KEY, 0)]), Some(128));
    assert_eq!(
        width("laguna", &[("expert_shared_count", 0), (KEY, 0)]),
        Some(64)
    );
    assert_eq!(width("cohere2moe", &[count]), Some(48));
    assert_eq!(width("cohere2moe", &[count, (KEY, 0)]), Some(128));
    assert_eq!(width("cohere2moe", &[("expert_shared_count", 0)]), None);
}

#[test]
fn the_bias_of_hunyuan_3_has_a_name_of_its_own() {
    let names = names(&metadata("hy_v3"), "exp_probs");
    assert!(names.contains(&"blk.0.exp_probs_b".to_owned()));
}
