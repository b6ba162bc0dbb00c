//! Impossible metadata give errors, never panics.

use super::*;
use crate::ArchError;
use crate::expected_tensors;
use tpc_gguf::{MetaArray, Metadata};

fn list(pairs: Vec<(String, MetaValue)>) -> Result<usize, ArchError> {
    let metadata = Metadata::from_pairs("test.gguf", pairs)?;
    expected_tensors(&metadata, &OPTIONS, |_| true).map(|t| t.len())
}

/// Returns the error code for a small `llama` with one changed value.
fn code(key: &str, value: impl Into<MetaValue>) -> &'static str {
    let mut pairs = metadata("llama");
    set(&mut pairs, key, value);
    list(pairs).map_or_else(|e| e.code().id, |_| "none")
}

#[test]
fn hostile_values_have_their_codes() {
    assert_eq!(code("llama.block_count", 4_000_000_000u32), "TPC0151");
    assert_eq!(code("llama.block_count", 0u32), "TPC0151");
    assert_eq!(code("llama.block_count", -1i32), "TPC0132");
    assert_eq!(code("llama.embedding_length", u64::MAX), "TPC0151");
    assert_eq!(code("llama.attention.head_count", 0u32), "TPC0153");
    assert_eq!(code("llama.attention.head_count", u32::MAX), "TPC0151");
    assert_eq!(
        code("llama.attention.head_count_kv", vec![2u32, 0]),
        "TPC0153"
    );
    assert_eq!(
        code("llama.attention.head_count_kv", vec![2u32; 3]),
        "TPC0133"
    );
    assert_eq!(code("llama.attention.head_count_kv", 4u32), "TPC0152");
    assert_eq!(code("llama.attention.key_length", 0x7fff_fffeu32), "none");
    assert_eq!(code("llama.attention.key_length", "wide"), "TPC0131");
    assert_eq!(
        code("llama.attention.layer_norm_rms_epsilon", f32::NAN),
        "TPC0151"
    );
    assert_eq!(
        code("llama.attention.layer_norm_rms_epsilon", -1.0f32),
        "TPC0151"
    );
    assert_eq!(code("llama.attention.scale", f32::INFINITY), "TPC0151");
    assert_eq!(code("llama.expert_used_count", 6u32), "TPC0152");
    assert_eq!(code("llama.expert_used_count", 0u32), "TPC0151");
    assert_eq!(code("llama.expert_feed_forward_length", 0u32), "none");
    assert_eq!(code("llama.rope.dimension_count", 33u32), "TPC0152");
    assert_eq!(code("llama.rope.dimension_count", 64u32), "TPC0152");
    assert_eq!(code("llama.rope.freq_base", -1.0f32), "TPC0151");
    assert_eq!(code("llama.rope.scaling.factor", 1e-40f32), "TPC0151");
    assert_eq!(code("llama.rope.scaling.type", "dynamic"), "TPC0154");
    assert_eq!(code("llama.vocab_size", 0u32), "TPC0151");
    assert_eq!(code("general.architecture", 3u32), "TPC0131");
    let mut pairs = metadata("llama");
    set(&mut pairs, "llama.attention.head_count", 1u32 << 30);
    set(&mut pairs, "llama.attention.key_length", 1u32 << 30);
    assert_eq!(list(pairs).unwrap_err().code(), "TPC0155");
}

#[test]
fn no_single_change_of_metadata_panics() {
    let nested = MetaValue::Array(MetaArray::Array(Vec::new()));
    let values: [MetaValue; 16] = [
        0u32.into(),
        1u32.into(),
        3u32.into(),
        u32::MAX.into(),
        u64::MAX.into(),
        (-7i32).into(),
        0.0f32.into(),
        f32::NAN.into(),
        f32::NEG_INFINITY.into(),
        f32::MIN_POSITIVE.into(),
        f32::MAX.into(),
        true.into(),
        "".into(),
        vec![0u32, 7].into(),
        vec![true, false].into(),
        nested,
    ];
    let more = [
        "attention.clamp_kqv",
        "attention.key_length_swa",
        "attention.max_alibi_bias",
        "attention.scale",
        "attention.shared_kv_layers",
        "attention.sliding_window_pattern",
        "attention.value_scale",
        "attention.temperature_scale",
        "embedding_length_per_layer_input",
        "embedding_scale",
        "expert_gating_func",
        "expert_group_count",
        "expert_group_used_count",
        "expert_weights_norm",
        "expert_weights_scale",
        "final_logit_softcapping",
        "residual_scale",
        "rope.dimension_count",
        "rope.dimension_count_swa",
        "rope.dimension_sections",
        "rope.freq_base",
        "rope.freq_base_swa",
        "rope.scaling.attn_factor",
        "rope.scaling.factor",
        "rope.scaling.finetuned",
        "rope.scaling.original_context_length",
        "rope.scaling.type",
        "rope.scaling.yarn_attn_factor",
        "rope.scaling.yarn_ext_factor",
        "rope.scaling.yarn_log_multiplier",
    ];
    for arch in ARCHS {
        let pairs = metadata(arch.name);
        let mut keys: Vec<String> = pairs.iter().map(|(k, _)| k.clone()).collect();
        keys.extend(more.map(|k| format!("{}.{k}", arch.name)));
        for key in keys {
            for value in &values {
                let mut pairs = pairs.clone();
                set(&mut pairs, &key, value.clone());
                if let Err(error) = list(pairs) {
                    assert_ne!(error.code(), "TPC0162", "{key} = {value:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_file_without_its_tensors_says_which() {
    let error = lower(&header(&metadata("llama"), &[]), &OPTIONS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensor token_embd.weight is missing: expected one of shape [96, 40]"
    );
}

#[test]
fn one_tensor_per_expert_is_recognised() {
    let pairs = metadata("llama");
    let mut tensors = expected::tensors(&pairs, |_| false);
    tensors.retain(|(name, _)| !name.contains("_exps"));
    tensors.push(("blk.0.ffn_gate.0.weight".into(), [96, 64, 1, 1]));
    let error = lower(&header(&pairs, &tensors), &OPTIONS).unwrap_err();
    assert!(error.help().contains("one tensor per expert"), "{error}");
}

#[test]
fn cache_types_must_fit_the_heads() {
    let metadata = Metadata::from_pairs("test.gguf", metadata("llama")).unwrap();
    let with = |cache_type_k, cache_type_v| {
        let options = LowerOptions {
            cache_type_k,
            cache_type_v,
            ..OPTIONS
        };
        expected_tensors(&metadata, &options, |_| true).map_or_else(|e| e.code().id, |_| "none")
    };
    assert_eq!(with(DType::Q8_0, DType::Iq4Nl), "none");
    assert_eq!(with(DType::Q4K, DType::F16), "TPC0160");
    assert_eq!(with(DType::F16, DType::I32), "TPC0160");
}

#[test]
fn blocks_of_a_cache_stay_within_heads_of_keys_and_of_values() {
    let with = |key: &str, cache_type_k, cache_type_v| {
        let mut pairs = metadata("llama");
        set(&mut pairs, key, 48u32);
        let options = LowerOptions {
            cache_type_k,
            cache_type_v,
            ..OPTIONS
        };
        let metadata = Metadata::from_pairs("test.gguf", pairs).unwrap();
        expected_tensors(&metadata, &options, |_| true).map_err(|e| (e.to_string(), e.help()))
    };
    let (k, v) = ("llama.attention.key_length", "llama.attention.value_length");
    assert!(with(k, DType::F16, DType::Q8_0).is_ok());
    assert!(with(v, DType::Q8_0, DType::F16).is_ok());
    let (message, help) = with(k, DType::Q5_1, DType::F16).unwrap_err();
    assert_eq!(
        message,
        "a cache of q5_1 cannot hold the key heads of layer 0, 48 elements each: its blocks would run across heads"
    );
    assert!(help.contains("--cache-type-k"), "{help}");
    let (message, help) = with(v, DType::F16, DType::Iq4Nl).unwrap_err();
    assert!(message.contains("value heads of layer 0, 48"), "{message}");
    assert!(help.contains("--cache-type-v"), "{help}");
}

#[test]
fn learned_positions_bound_the_context() {
    let mut pairs = metadata("gpt2");
    set(&mut pairs, "gpt2.context_length", 511u32);
    assert_eq!(list(pairs).unwrap_err().code(), "TPC0161");
}
