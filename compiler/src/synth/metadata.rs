//! The metadata that a specification amounts to.

use tpc_ir::op::NormKind;

use super::spec::{PerLayer, Spec};
use crate::arch::description::{ExpertLayers, Experts, LogitScale, Residual};
use crate::gguf::MetaValue;

/// What logits are multiplied by where the architecture has a key for it.
const LOGIT_SCALE: f32 = 0.0625;

/// The metadata of a model, in the order in which files have them.
pub(super) fn pairs(spec: &Spec) -> Vec<(String, MetaValue)> {
    let arch = spec.arch;
    let mut out: Vec<(String, MetaValue)> = vec![
        ("general.architecture".to_owned(), arch.name.into()),
        ("general.name".to_owned(), spec.name.as_str().into()),
        ("general.quantization_version".to_owned(), 2_u32.into()),
    ];
    let mut put = |key: &str, value: MetaValue| out.push((format!("{}.{key}", arch.name), value));
    put("block_count", count(spec.layers));
    put("context_length", count(spec.ctx));
    put("embedding_length", count(spec.embd));
    put("feed_forward_length", per_layer(&spec.ff));
    put("attention.head_count", per_layer(&spec.heads));
    put("attention.head_count_kv", per_layer(&spec.kv_heads));
    put("attention.key_length", count(spec.head_dim));
    put("attention.value_length", count(spec.head_dim));
    match arch.norm.kind {
        NormKind::Layer => put("attention.layer_norm_epsilon", 1e-5_f32.into()),
        NormKind::Rms | NormKind::L2 => put("attention.layer_norm_rms_epsilon", 1e-5_f32.into()),
    }
    if arch.attention.rope.is_some() {
        put("rope.dimension_count", count(spec.head_dim));
        put("rope.freq_base", 10_000.0_f32.into());
    }
    if let Some(window) = spec.window {
        put("attention.sliding_window", count(window));
    }
    if let Some(experts) = spec.experts {
        put("expert_count", count(experts.count));
        put("expert_used_count", count(experts.used));
        // A width per layer has no other place than the key of dense layers, which experts read where there is no
        // other.
        if let (Experts::Always(_), PerLayer::Same(n)) = (&arch.ffn.experts, &spec.ff) {
            put("expert_feed_forward_length", count(*n));
        }
        let form = arch.ffn.experts.form();
        if form.is_some_and(|form| form.layers == ExpertLayers::Interleaved) {
            put("interleave_moe_layer_step", count(1));
        }
    }
    match arch.head.logit_scale {
        LogitScale::None => {}
        LogitScale::Factor => put("logit_scale", LOGIT_SCALE.into()),
        LogitScale::Divisor => put("logit_scale", (1.0 / LOGIT_SCALE).into()),
    }
    if arch.residual == Residual::ByKey {
        put("use_parallel_residual", true.into());
    }
    put("vocab_size", count(spec.vocab));
    out.push(("tokenizer.ggml.model".to_owned(), "no_vocab".into()));
    for (key, value) in &spec.metadata {
        match out.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => old.clone_from(value),
            None => out.push((key.clone(), value.clone())),
        }
    }
    out
}

/// A count; those of a specification fit 31 bits.
fn count(n: u64) -> MetaValue {
    u32::try_from(n).map_or(MetaValue::U64(n), MetaValue::U32)
}

fn per_layer(n: &PerLayer) -> MetaValue {
    match n {
        PerLayer::Same(n) => count(*n),
        PerLayer::Each(list) => {
            let list: Option<Vec<u32>> = list.iter().map(|&n| u32::try_from(n).ok()).collect();
            list.unwrap_or_default().into()
        }
    }
}
