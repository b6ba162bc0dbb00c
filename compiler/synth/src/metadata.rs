use tpc_ir::op::NormKind;

use super::spec::{PerLayer, Spec};
use tpc_gguf::{MetaArray, MetaValue};
use tpc_models::description::{
    Activation, Direction, ExpertLayers, ExpertWidth, Experts, LatentForm, LogitScale, ModelResult,
    Presence, RecurrentMixer, Residual, ScanHeads, Sections,
};

/// The factor of the logits, for architectures with a metadata key for it.
const LOGIT_SCALE: f32 = 0.0625;

/// Token types of models with vectors for them.
const TOKEN_TYPES: u32 = 2;

/// The number of pooling by the mean.
const MEAN: u32 = 1;

/// Returns a model's metadata, in the order of published files.
pub(super) fn pairs(spec: &Spec) -> Vec<(String, MetaValue)> {
    let arch = spec.arch;
    let mut out: Vec<(String, MetaValue)> = vec![
        ("general.architecture".to_owned(), arch.name.into()),
        ("general.name".to_owned(), spec.name.as_str().into()),
        ("general.quantization_version".to_owned(), 2_u32.into()),
    ];
    let mut put = |key: &str, value: MetaValue| out.push((format!("{}.{key}", arch.name), value));
    put("block_count", count(spec.layers + spec.drafts));
    if spec.drafts > 0 {
        put("nextn_predict_layers", count(spec.drafts));
    }
    put("context_length", count(spec.ctx));
    put("embedding_length", count(spec.embd));
    put("feed_forward_length", per_block(spec, &spec.ff));
    put("attention.head_count", per_block(spec, &spec.heads));
    for (key, n) in heads(spec) {
        put(key, n);
    }
    match arch.norm.kind {
        NormKind::Layer => put("attention.layer_norm_epsilon", 1e-5_f32.into()),
        NormKind::Rms | NormKind::L2 => put("attention.layer_norm_rms_epsilon", 1e-5_f32.into()),
    }
    for (key, value) in rotation(spec) {
        put(key, value);
    }
    for (key, n) in arch
        .recurrent
        .iter()
        .flat_map(|form| recurrent(spec, form.mixer))
    {
        put(key, count(n));
    }
    if let Some(window) = spec.window {
        put("attention.sliding_window", count(window));
    }
    for (key, n) in experts(spec) {
        put(key, count(n));
    }
    for (key, value) in embeddings(spec) {
        put(key, value);
    }
    match arch.head.logit_scale {
        LogitScale::None | LogitScale::OverWidth(_) | LogitScale::DivisorOrOverWidth(_) => {}
        LogitScale::Factor | LogitScale::FactorOr(_) => put("logit_scale", LOGIT_SCALE.into()),
        LogitScale::Divisor => put("logit_scale", (1.0 / LOGIT_SCALE).into()),
    }
    if arch.ffn.activation == Activation::Xielu {
        // The architecture's name does not precede these keys.
        for (key, numbers) in xielu(spec) {
            out.push((key.to_owned(), numbers.into()));
        }
    }
    let mut put = |key: &str, value: MetaValue| out.push((format!("{}.{key}", arch.name), value));
    if arch.residual == Residual::ByKey {
        put("use_parallel_residual", true.into());
    }
    put("vocab_size", count(spec.vocab));
    out.push(("tokenizer.ggml.model".to_owned(), "no_vocab".into()));
    if arch.embedding.types != Presence::Absent {
        let key = "tokenizer.ggml.token_type_count";
        out.push((key.to_owned(), TOKEN_TYPES.into()));
    }
    for (key, value) in &spec.metadata {
        let value = with_drafts(spec, key, value);
        match out.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value,
            None => out.push((key.clone(), value)),
        }
    }
    out
}

/// Returns KV heads and head sizes. A latent vector is as wide as four heads; half of each key is rotated.
fn heads(spec: &Spec) -> Vec<(&'static str, MetaValue)> {
    let d = spec.head_dim;
    let (kv_heads, key, value) = match spec.arch.attention.latent {
        None => (per_block(spec, &spec.kv_heads), d, d),
        Some(LatentForm::Expanded) => (per_block(spec, &spec.heads), 2 * d, d),
        // With RoPE, a key has `d` rotated elements in addition to the latent vector of `4 d`.
        Some(LatentForm::Absorbed) if spec.arch.attention.rope.is_none() => {
            (latent_heads(spec), 4 * d, 4 * d)
        }
        Some(LatentForm::Absorbed) => (latent_heads(spec), 5 * d, 4 * d),
    };
    let mut out = vec![
        ("attention.head_count_kv", kv_heads),
        ("attention.key_length", count(key)),
        ("attention.value_length", count(value)),
    ];
    if spec.arch.attention.latent.is_some() {
        out.push(("attention.q_lora_rank", count(3 * d)));
        out.push(("attention.kv_lora_rank", count(4 * d)));
    }
    if spec.arch.attention.latent == Some(LatentForm::Absorbed) {
        out.push(("attention.key_length_mla", count(2 * d)));
        out.push(("attention.value_length_mla", count(d)));
    }
    out
}

/// Returns the KV heads of latent attention: 1 per layer, or 0 in layers without attention.
fn latent_heads(spec: &Spec) -> MetaValue {
    match &spec.kv_heads {
        PerLayer::Same(_) => count(1),
        PerLayer::Each(list) => per_block(
            spec,
            &PerLayer::Each(list.iter().map(|&n| n.min(1)).collect()),
        ),
    }
}

/// Repeats the last number of a list with a number per layer, for the draft blocks.
fn with_drafts(spec: &Spec, key: &str, value: &MetaValue) -> MetaValue {
    fn longer<T: Clone>(spec: &Spec, list: &[T]) -> Vec<T> {
        let last = list.last().into_iter().cycle().take(spec.drafts as usize);
        list.iter().chain(last).cloned().collect()
    }
    let by_layer = |n: usize| n as u64 == spec.layers && !key.ends_with("_sections");
    match value {
        MetaValue::Array(MetaArray::U32(list)) if by_layer(list.len()) => longer(spec, list).into(),
        MetaValue::Array(MetaArray::Bool(list)) if by_layer(list.len()) => {
            MetaValue::Array(MetaArray::Bool(longer(spec, list)))
        }
        _ => value.clone(),
    }
}

/// Returns a layer's parameters of xIELU, which differ between layers.
fn xielu(spec: &Spec) -> [(&'static str, Vec<f32>); 4] {
    let rising = |first: f32, step: f32| {
        (0..spec.layers)
            .map(|il| first + step * il as f32)
            .collect()
    };
    [
        ("xielu.alpha_n", rising(0.5, 0.25)),
        ("xielu.alpha_p", rising(0.75, -0.25)),
        ("xielu.beta", rising(0.5, 0.125)),
        ("xielu.eps", rising(-1e-6, 0.0)),
    ]
}

fn rotation(spec: &Spec) -> Vec<(&'static str, MetaValue)> {
    let Some(rope) = &spec.arch.attention.rope else {
        return Vec::new();
    };
    let mut out = vec![
        ("rope.dimension_count", count(spec.head_dim)),
        ("rope.freq_base", 10_000.0_f32.into()),
    ];
    if rope.sections == Sections::Imrope {
        let share = u32::try_from(spec.head_dim / 6).unwrap_or(1).max(1);
        let sections = vec![share, share, share, 0];
        out.push(("rope.dimension_sections", sections.into()));
    }
    out
}

/// Returns the keys of models that compute embeddings.
fn embeddings(spec: &Spec) -> Vec<(&'static str, MetaValue)> {
    let mut out = Vec::new();
    if spec.arch.attention.direction == Direction::BidirectionalByKey {
        out.push(("attention.causal", false.into()));
    }
    if spec.arch.head.result != ModelResult::Logits {
        out.push(("pooling_type", MEAN.into()));
    }
    out
}

fn experts(spec: &Spec) -> Vec<(&'static str, u64)> {
    let Some(experts) = spec.experts else {
        return Vec::new();
    };
    let mut out = vec![
        ("expert_count", experts.count),
        ("expert_used_count", experts.used),
    ];
    let described = &spec.arch.ffn.experts;
    let form = described.form();
    let has_key = form.is_some_and(|form| form.width != ExpertWidth::AsDense)
        || matches!(described, Experts::Always(_));
    // Only the key of dense layers takes a width per layer. Experts without their own key use that key.
    if let (true, PerLayer::Same(n)) = (has_key, &spec.ff) {
        out.push(("expert_feed_forward_length", *n));
    }
    let interleaved = [ExpertLayers::Interleaved, ExpertLayers::InterleavedUnless0];
    if form.is_some_and(|form| interleaved.contains(&form.layers)) {
        out.push(("interleave_moe_layer_step", 1));
    }
    if form.is_some_and(|form| form.layers == ExpertLayers::SecondOfEvery) {
        out.push(("moe_every_n_layers", 2));
    }
    out
}

/// Returns the sizes of recurrent layers. Recurrent heads equal attention heads; groups and key heads equal KV heads.
fn recurrent(spec: &Spec, mixer: RecurrentMixer) -> Vec<(&'static str, u64)> {
    match mixer {
        RecurrentMixer::Mamba1(form) => {
            let [inner, steps] = match form.heads {
                ScanHeads::Channels => [2 * spec.embd, spec.embd.div_ceil(16)],
                ScanHeads::Given => [spec.heads.at(0) * spec.head_dim, spec.heads.at(0)],
            };
            vec![
                ("ssm.conv_kernel", 4),
                ("ssm.inner_size", inner),
                ("ssm.state_size", 16),
                ("ssm.time_step_rank", steps),
                ("ssm.group_count", 0),
            ]
        }
        RecurrentMixer::Mamba2 | RecurrentMixer::DeltaNet(_) => vec![
            ("ssm.conv_kernel", 4),
            ("ssm.inner_size", spec.heads.at(0) * spec.head_dim),
            ("ssm.state_size", spec.head_dim),
            ("ssm.time_step_rank", spec.heads.at(0)),
            ("ssm.group_count", some_kv_heads(spec)),
        ],
        RecurrentMixer::Kda(_) => vec![("ssm.conv_kernel", 4), ("kda.head_dim", spec.head_dim)],
        RecurrentMixer::Lightning => Vec::new(),
        RecurrentMixer::Rwkv6(_) => vec![
            ("wkv.head_size", spec.head_dim),
            ("time_mix_extra_dim", 32),
            ("time_decay_extra_dim", 64),
            ("token_shift_count", token_shifts(spec)),
        ],
        RecurrentMixer::Rwkv7(_) => vec![
            ("wkv.head_size", spec.head_dim),
            ("attention.decay_lora_rank", 64),
            ("attention.iclr_lora_rank", 32),
            ("attention.value_residual_mix_lora_rank", 48),
            ("attention.gate_lora_rank", 96),
            ("token_shift_count", token_shifts(spec)),
        ],
        RecurrentMixer::ShortConv => vec![("shortconv.l_cache", 3)],
    }
}

/// Returns the KV heads of the first layer with attention; without such a layer, the heads.
fn some_kv_heads(spec: &Spec) -> u64 {
    let mut all = (0..spec.layers).map(|layer| spec.kv_heads.at(layer));
    all.find(|&n| n > 0).unwrap_or_else(|| spec.heads.at(0))
}

/// Returns the number of sublayers that read the previous token.
fn token_shifts(spec: &Spec) -> u64 {
    1 + u64::from(spec.arch.ffn.channel_mix.is_some())
}

/// Encodes a count, which fits 31 bits.
fn count(n: u64) -> MetaValue {
    u32::try_from(n).map_or(MetaValue::U64(n), MetaValue::U32)
}

/// Encodes a number per block. Draft blocks get the last layer's number that is not 0.
fn per_block(spec: &Spec, n: &PerLayer) -> MetaValue {
    match n {
        PerLayer::Same(n) => count(*n),
        PerLayer::Each(list) => {
            let some = list.iter().rfind(|&&n| n > 0);
            let drafts = some.into_iter().cycle().take(spec.drafts as usize);
            let all = list.iter().chain(drafts);
            let all: Option<Vec<u32>> = all.map(|&n| u32::try_from(n).ok()).collect();
            all.unwrap_or_default().into()
        }
    }
}
