//! Zeros that mean an absent key. llama.cpp writes every key of its models, including keys that it did not read.

use super::*;
use crate::expected_tensors;
use tpc_gguf::Metadata;

/// Counts whose 0 means a missing key.
const COUNTS: [&str; 42] = [
    "embedding_length_out",
    "moe_every_n_layers",
    "rescale_every_n_layers",
    "attention.group_norm_groups",
    "attention.value_expert_count",
    "mudd.tap_count",
    "rope.dimension_count",
    "rope.dimension_count_swa",
    "rope.scaling.original_context_length",
    "attention.key_length",
    "attention.value_length",
    "attention.key_length_swa",
    "attention.value_length_swa",
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.q_lora_rank",
    "attention.kv_lora_rank_swa",
    "attn_res.block_size",
    "expert_latent_length",
    "attention.key_length_mla_swa",
    "attention.value_length_mla_swa",
    "attention.shared_kv_layers",
    "attention.temperature_length",
    "embedding_length_per_layer_input",
    "expert_count",
    "expert_used_count",
    "expert_feed_forward_length",
    "expert_chunk_feed_forward_length",
    "expert_shared_feed_forward_length",
    "expert_shared_count",
    "expert_group_count",
    "expert_group_used_count",
    "expert_gating_func",
    "full_attention_interval",
    "hash_layer_count",
    "leading_dense_block_count",
    "nextn_predict_layers",
    "num_loops",
    "vocab_size",
    "block_count",
    "context_length",
    "embedding_length",
];

/// Factors, bounds and parameters whose 0 means a missing key.
const REALS: [&str; 25] = [
    "attention.xsa_epsilon",
    "attention.scale",
    "attention.max_alibi_bias",
    "attention.output_scale",
    "attention.clamp_kqv",
    "attention.value_scale",
    "attention.temperature_scale",
    "embedding_scale",
    "residual_scale",
    "logit_scale",
    "expert_weights_scale",
    "activation.situ_linear_beta",
    "kda.gate_lower_bound",
    "swiglu_clamp_exp",
    "swiglu_clamp_shexp",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scale_linear",
    "rope.scaling.factor",
    "rope.scaling.alpha",
    "rope.scaling.attn_factor",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_log_multiplier",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
];

/// Optional lists whose zeros mean a missing key.
const LISTS: [&str; 1] = ["rope.dimension_sections"];

/// Architectures with their own default, which 0 switches off.
const DEFAULTS: [(&str, &str); 5] = [
    ("grok", "embedding_scale"),
    ("grok", "logit_scale"),
    ("minicpm", "embedding_scale"),
    ("minicpm", "residual_scale"),
    ("minicpm", "logit_scale"),
];

/// Returns the smallest model's graph; `None` if tpc refuses it.
fn graph(pairs: &[(String, MetaValue)]) -> Option<String> {
    let metadata = Metadata::from_pairs("test.gguf", pairs.to_vec()).ok()?;
    let list = expected_tensors(&metadata, &OPTIONS, |_| false).ok()?;
    let tensors: Vec<_> = list.into_iter().map(|t| (t.name, t.ne)).collect();
    let lowered = lower(&header(pairs, &tensors), &OPTIONS).ok()?;
    Some(lowered.graph.to_string())
}

#[test]
fn a_zero_is_an_absent_key() {
    let mut compared = 0;
    for arch in ARCHS.iter().map(|a| a.name) {
        let mut usual = metadata(arch);
        set(&mut usual, &format!("{arch}.rope.scaling.type"), "yarn");
        set(&mut usual, &format!("{arch}.rope.scaling.factor"), 2.0f32);
        let counts = COUNTS.map(|k| (k, MetaValue::U32(0)));
        let reals = REALS.map(|k| (k, MetaValue::F32(0.0)));
        let lists = LISTS.map(|k| (k, MetaValue::from(vec![0u32; 4])));
        for (key, zero) in counts.into_iter().chain(reals).chain(lists) {
            if DEFAULTS.contains(&(arch, key)) {
                continue;
            }
            let key = format!("{arch}.{key}");
            let mut with = usual.clone();
            set(&mut with, &key, zero);
            let mut without = usual.clone();
            without.retain(|(k, _)| *k != key);
            let (with, without) = (graph(&with), graph(&without));
            compared += usize::from(without.is_some());
            assert!(with == without, "{key} = 0 is not the same as no {key}");
        }
    }
    assert!(compared > 2500, "{compared} graphs");
}

/// Keys that are read as a count or number, with the reason why a list above omits them.
const NOT_IN_LIST: &[&str] = &[
    // Lists, required keys, and keys that count only with another key.
    "attention.kv_source_map",
    "attention.value_expert_used_count",
    "swin_norm",
    "post_norm_epsilon",
    "final_logit_sigmoid_capping",
    "mudd.tap_indices",
    "mudd.feed_forward_length",
    "xielu.alpha_n",
    "xielu.alpha_p",
    "xielu.beta",
    "xielu.eps",
    "adapters.count",
    "adapters.router_gain",
    "adapters.lora_rank",
    "adapters.token_ids_activate",
    "adapters.token_ids_substitute",
    // 0 switches the bound off, even if the model has a default bound.
    "attn_logit_softcapping",
    "final_logit_softcapping",
    // 0 means that layers lack KV heads, a network, or experts.
    "attention.head_count",
    "attention.head_count_kv",
    "feed_forward_length",
    "interleave_moe_layer_step",
    // 0 means that all layers lack windows, or that all layers have one.
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    // 0 means that all layers lack recurrence or rotation.
    "attention.recurrent_layers",
    "attention.rope_pattern",
    // 0 means that a layer shares another layer's indexer selection.
    "attention.indexer.types",
    // 0 is an ordinary number; a negative number means an absent key.
    "rope.scaling.yarn_ext_factor",
    // Required keys, refused when 0.
    "attention.kv_lora_rank",
    "ssm.conv_kernel",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.time_step_rank",
    "ssm.group_count",
    "shortconv.l_cache",
    "kda.head_dim",
    "activation.situ_beta",
    "attention.indexer.head_count",
    "attention.indexer.key_length",
    "attention.indexer.top_k",
    "experts_per_group",
    "expert_group_scale",
    "hrm.layers_per_stack",
    "hrm.h_cycles",
    "hrm.l_cycles",
    "hyper_connection.count",
    "hyper_connection.magnitude",
    "hyper_connection.low_rank",
    "hyper_connection.sinkhorn_iterations",
    "attention.indexer.kpool",
    "attention.indexer.block_size",
    "attention.compress_rope_freq_base",
    "attention.output_group_count",
    "attention.output_lora_rank",
    "ple.ngram_size",
    "ple.heads_per_ngram",
    "ple.conv_kernel",
    // 0 means that a layer attends to all tokens, or lacks blocks.
    "attention.compress_ratios",
    "ple.layers",
    "ple.layer_multipliers",
    "ple.head_offsets",
    "ple.head_vocab_sizes",
    // A token id.
    "ple.eos_token_id",
    // A required key that may be 0.
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "hyper_connection.epsilon",
    // Required keys of RWKV, refused when 0.
    "time_decay_extra_dim",
    "time_mix_extra_dim",
    "wkv.head_size",
    "attention.decay_lora_rank",
    "attention.iclr_lora_rank",
    // 0 means that layers lack a gate, or values of the first layer.
    "attention.gate_lora_rank",
    "attention.value_residual_mix_lora_rank",
    // Keys that are not numbers.
    "attention.causal",
    "hidden_activation",
    "gelu_accurate",
    "gelu_fast",
    "gelu_new",
    "gelu_python",
    "gelu_python_tanh",
    "gelu_pytorch_tanh",
    "skip_loop_final_norm",
    "attention.indexer.kpool_select_tail",
    "expert_weights_norm",
    "ssm.dt_b_c_rms",
    "rope.scaling.finetuned",
    "rope.scaling.type",
    "use_parallel_residual",
];

#[test]
fn every_key_of_a_count_is_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hparams");
    let mut text = String::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                text += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    let is_key = |s: &&str| {
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c);
        s.len() > 4 && s.chars().all(known) && s.contains(['.', '_'])
    };
    let mut missing: Vec<&str> = text.split('"').filter(is_key).collect();
    missing.retain(|k| {
        let listed = COUNTS.contains(k) || REALS.contains(k) || LISTS.contains(k);
        let other = k.starts_with("general.") || k.starts_with("tokenizer.");
        // Names of tensors and states, not keys.
        let tensor = [
            "ssm_conv1d",
            "shortconv.conv",
            "token_embd.weight",
            "cache_r",
        ];
        let tensor =
            tensor.contains(k) || k.starts_with("ssm_conv1d_") || k.starts_with("cache_r_");
        !listed && !NOT_IN_LIST.contains(k) && !other && !tensor
    });
    assert!(
        missing.is_empty(),
        "neither in a list nor excused: {missing:?}"
    );
}

#[test]
fn experts_without_a_width_share_that_of_a_dense_network() {
    for (arch, width) in [
        ("qwen2moe", 53),
        ("qwen3moe", 53),
        ("qwen3next", 53),
        ("olmoe", 160),
    ] {
        for zero in [true, false] {
            let mut pairs = metadata(arch);
            let key = format!("{arch}.expert_feed_forward_length");
            match zero {
                true => set(&mut pairs, &key, 0u32),
                false => pairs.retain(|(k, _)| *k != key),
            }
            let tensors = expected::tensors(&pairs, |_| false);
            let up = tensors
                .iter()
                .find(|(n, _)| n.ends_with("ffn_up_exps.weight"));
            assert_eq!(up.map(|(_, ne)| ne[1]), Some(width), "{arch}");
        }
    }
}

#[test]
fn a_step_of_0_leaves_every_layer_dense() {
    let mut pairs = metadata("llama4");
    set(&mut pairs, "llama4.interleave_moe_layer_step", 0u32);
    let tensors = expected::tensors(&pairs, |_| true);
    assert!(!tensors.iter().any(|(n, _)| n.contains("_exps")));
    assert!(tensors.iter().any(|(n, _)| n.ends_with("ffn_up.weight")));
}

#[test]
fn the_pattern_of_rotations_counts_before_the_flag() {
    let rotations = |arch: &str, flag: Option<bool>, pattern: Option<MetaValue>| {
        let mut pairs = metadata(arch);
        if let Some(flag) = flag {
            set(&mut pairs, &format!("{arch}.rope.scaling.finetuned"), flag);
        }
        if let Some(pattern) = pattern {
            set(
                &mut pairs,
                &format!("{arch}.attention.rope_pattern"),
                pattern,
            );
        }
        let graph = lower_smallest(&pairs).graph;
        let rotates = |i: &tpc_ir::InstData| matches!(i.op, tpc_ir::Op::Rope(_));
        let mut layers: Vec<_> = graph.insts().filter(|(_, i)| rotates(i)).collect();
        layers.dedup_by_key(|(_, i)| i.layer);
        layers
            .iter()
            .filter_map(|(_, i)| i.layer)
            .collect::<Vec<_>>()
    };
    for arch in ["granite", "granitemoe"] {
        assert_eq!(rotations(arch, None, None), [0, 1]);
        assert_eq!(rotations(arch, Some(true), None), [0, 1]);
        assert_eq!(rotations(arch, Some(false), None), [0u32; 0]);
        // llama.cpp writes both keys, and writes the flag as `false` if it did not read it.
        assert_eq!(rotations(arch, Some(false), Some(1u32.into())), [0, 1]);
        assert_eq!(rotations(arch, Some(false), Some(0u32.into())), [0u32; 0]);
        let second = MetaValue::from(vec![0u32, 1]);
        assert_eq!(rotations(arch, Some(true), Some(second)), [1]);
    }
}
