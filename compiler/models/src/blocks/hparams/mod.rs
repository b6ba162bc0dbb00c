//! Hyper-parameters: what the metadata say of a model, read by the description's rules and checked.
//!
//! Defaults and meanings are llama.cpp's, whose files these are: a 0 often stands for an absent value, `rope.scaling.*`
//! are read even where the scaling type is the default, and YaRN's factor on the rotated elements is stated without
//! the part that the op computes by itself.

mod ffn;
mod layers;
mod mixers;
mod windows;

use std::ops::Range;

use tpc_ir::Window;
use tpc_ir::op::{NormKind, Rope, Temperature};

pub(crate) use ffn::{ExpertHParams, ExpertWidths, FfnWidth, Groups, LayerFfn};
pub(super) use layers::width;
pub(crate) use layers::{HeadElements, LayerHParams, Rotated};
pub(crate) use mixers::Mixer;
pub(crate) use windows::Windowed;

use super::keys::Keys;
use super::latent::{self, LatentHParams};
use super::recurrent::{self, RecurrentHParams};
use super::rope;
use crate::Drafting;
use crate::description::{
    Alibi, Arch, EmbeddingScale, KeyUse, LogitScale, Residual, ResidualScale, ScaleRule,
    TemperatureForm,
};
use crate::error::ArchError;
use crate::source::Size;
use layers::LayerSizes;
use tpc_gguf::{Header, Metadata};

/// More layers than any published model has, by an order of magnitude: what a hostile count can make us allocate.
const MAX_LAYERS: u64 = 2048;

/// The largest product of sizes that is believed, so that tensors of it can be counted in 63 bits.
const MAX_WIDTH: u64 = 1 << 40;

/// The hyper-parameters of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HParams {
    pub(crate) name: Option<String>,
    pub(crate) n_embd: u64,
    pub(crate) n_vocab: u64,
    /// Width of a layer's own embeddings, and of those of all layers.
    pub(crate) per_layer: Option<[Size; 2]>,
    pub(crate) n_ctx_train: u64,
    pub(crate) n_ctx_orig: u64,
    /// Added under the root of every norm.
    pub(crate) eps: f32,
    /// The rotation of layers without and with a window.
    pub(crate) rope: Option<[Rope; 2]>,
    /// The sizes of attention to latent vectors.
    pub(crate) latent: Option<LatentHParams>,
    /// ALiBi's bias, 0 for none.
    pub(crate) max_alibi_bias: f32,
    /// 0 for none.
    pub(crate) attention_softcap: f32,
    /// The largest element of a projected query, key or value.
    pub(crate) qkv_clamp: Option<f32>,
    /// A factor on the queries of layers that have one.
    pub(crate) temperature: Option<Temperature>,
    /// Factor on the output of attention.
    pub(crate) value_scale: Option<f32>,
    /// What windowed layers attend to.
    pub(crate) window: Option<Window>,
    pub(crate) experts: Option<ExpertHParams>,
    pub(crate) recurrent: Option<RecurrentHParams>,
    pub(crate) join: Join,
    pub(crate) embedding_scale: Option<f32>,
    /// Factor on what joins the residual stream.
    pub(crate) residual_scale: Option<f32>,
    pub(crate) logit_scale: Option<f32>,
    pub(crate) final_softcap: Option<f32>,
    /// The layers that logits depend on.
    pub(crate) layers: Vec<LayerHParams>,
    /// The blocks after them that guess further tokens ahead, where these are wanted.
    pub(crate) drafts: Vec<LayerHParams>,
    /// How many layers the file counts.
    pub(crate) n_layer_all: usize,
}

/// How a block's halves join the residual stream, as far as metadata can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    Sequential,
    Parallel,
    /// As [`Residual::ByFfnNorm`].
    ByFfnNorm,
}

impl HParams {
    /// Reads the hyper-parameters of a model of this architecture. Its tensors, where it has some, say how large the
    /// vocabulary is if the metadata do not.
    pub(crate) fn read(
        arch: &Arch,
        metadata: &Metadata,
        tensors: Option<&Header>,
        drafting: Drafting,
    ) -> Result<HParams, ArchError> {
        let keys = Keys::new(metadata, arch.name);
        let n_layer = keys.require_count("block_count")?;
        if n_layer > MAX_LAYERS {
            let expected = format!("at most {MAX_LAYERS}");
            return Err(keys.out_of_range("block_count", n_layer, expected));
        }
        let n_layer = usize::try_from(n_layer).expect("invariant: at most MAX_LAYERS");
        let n_embd = keys.require_count("embedding_length")?;
        let n_ctx_train = keys.require_count("context_length")?;
        let n_ctx_orig = keys
            .count("rope.scaling.original_context_length")?
            .unwrap_or(n_ctx_train);
        let [n_head, n_head_kv] = layers::head_counts(&keys, arch, n_layer)?;
        // Layers without attention may have no heads.
        let some_heads = n_head.iter().copied().find(|&n| n > 0).unwrap_or(0);
        let heads = layers::head_elements(&keys, arch, n_embd, some_heads)?;
        let (experts, ffn) = ffn::read(&keys, arch, n_layer)?;
        let mixers = mixers::mixers(&keys, arch, &n_head_kv, &ffn)?;
        let (window, windowed) = windows::windows(&keys, &arch.attention, n_layer)?;
        let rotated = layers::rotated(&keys, arch, &windowed)?;
        let kv_from = layers::shared_kv(&keys, arch, &windowed, &n_head_kv)?;
        let main = main_layers(&keys, n_layer)?;
        let layer = |il: usize, mixer, kv_from| {
            let sizes = LayerSizes {
                index: il,
                mixer,
                n_head: n_head[il],
                n_head_kv: n_head_kv[il],
                heads: windowed[il].of(heads),
                ffn: ffn[il],
                windowed: windowed[il],
                rotated: rotated[il],
                kv_from,
            };
            sizes.check(&keys, arch, n_layer, n_embd)
        };
        let layers = (0..main).map(|il| layer(il, mixers[il], kv_from[il]));
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        // Whatever mixes the tokens of the layers, blocks that guess attend, and have caches of their own.
        let drafts = drafts(&keys, arch, drafting, main..n_layer)?;
        let drafts = drafts.map(|il| layer(il, Some(Mixer::Attention), None));
        let drafts = drafts.collect::<Result<Vec<_>, _>>()?;
        let rope = match &arch.attention.rope {
            Some(form) => {
                let dk = heads.map(|h| h.dk);
                let sizes = arch.attention.head_sizes;
                Some(rope::read(&keys, form, sizes, dk, n_ctx_train, n_ctx_orig)?)
            }
            None => None,
        };
        let latent = match (arch.attention.latent, &arch.attention.rope, &rope) {
            (Some(form), Some(rope_form), Some([rope, _])) => {
                let yarn = rope::logit_factor(&keys, rope_form, rope)?;
                Some(latent::read(&keys, form, rope, yarn)?)
            }
            _ => None,
        };
        Ok(HParams {
            name: metadata.get_str("general.name")?.map(str::to_owned),
            n_embd,
            per_layer: match arch.embedding.per_layer {
                KeyUse::Ignored => None,
                KeyUse::Obeyed | KeyUse::OrElse(_) => layers::own_embeddings(&keys, n_layer)?,
            },
            n_vocab: vocabulary(&keys, metadata, tensors)?,
            n_ctx_train,
            n_ctx_orig,
            eps: keys.require_epsilon(match arch.norm.kind {
                NormKind::Layer => "attention.layer_norm_epsilon",
                NormKind::Rms | NormKind::L2 => "attention.layer_norm_rms_epsilon",
            })?,
            rope,
            latent,
            max_alibi_bias: alibi(&keys, arch.attention.alibi, n_layer)?,
            attention_softcap: obeyed(&keys, arch.attention.softcap, "attn_logit_softcapping")?
                .unwrap_or(0.0),
            qkv_clamp: match arch.attention.clamp {
                KeyUse::Ignored => None,
                KeyUse::Obeyed | KeyUse::OrElse(_) => keys.positive("attention.clamp_kqv")?,
            },
            temperature: temperature(&keys, arch.attention.temperature, n_ctx_orig)?,
            value_scale: obeyed(&keys, arch.attention.value_scale, "attention.value_scale")?
                .filter(|&scale| scale != 1.0),
            window,
            experts,
            recurrent: match arch.recurrent {
                Some(form) => Some(recurrent::read(&keys, form.mixer, embd(n_embd))?),
                None => None,
            },
            join: join(&keys, arch.residual)?,
            embedding_scale: match arch.embedding.scale {
                EmbeddingScale::One => None,
                EmbeddingScale::RootOfWidth => Some((n_embd as f32).sqrt()),
                EmbeddingScale::Key => obeyed(&keys, KeyUse::Obeyed, "embedding_scale")?,
                EmbeddingScale::Fixed(scale) => Some(scale),
            },
            residual_scale: match arch.residual_scale {
                ResidualScale::One => None,
                ResidualScale::Key => obeyed(&keys, KeyUse::Obeyed, "residual_scale")?,
                ResidualScale::OverRootOfDepth(scale) => Some(scale / (n_layer as f32).sqrt()),
            },
            logit_scale: logit_scale(&keys, arch.head.logit_scale, n_embd)?,
            final_softcap: obeyed(&keys, arch.head.softcap, "final_logit_softcapping")?,
            layers,
            drafts,
            n_layer_all: n_layer,
        })
    }

    /// `embedding_length`, with its key.
    pub(crate) fn embd(&self) -> Size {
        embd(self.n_embd)
    }
}

const fn embd(n: u64) -> Size {
    Size {
        n,
        from: "embedding_length",
    }
}

/// How many of the last blocks guess further tokens ahead.
const DRAFTS: &str = "nextn_predict_layers";

/// Of the blocks after the layers those that are wanted.
fn drafts(
    keys: &Keys<'_>,
    arch: &Arch,
    drafting: Drafting,
    blocks: Range<usize>,
) -> Result<Range<usize>, ArchError> {
    let reason = match drafting {
        Drafting::None => return Ok(blocks.start..blocks.start),
        Drafting::Mtp if arch.drafts.is_none() => {
            "how those of its files compute is not described".to_owned()
        }
        Drafting::Mtp if blocks.is_empty() => {
            format!("expected {} of at least 1", keys.name(DRAFTS))
        }
        Drafting::Mtp => return Ok(blocks),
    };
    let arch = arch.name;
    Err(ArchError::NoDrafts { arch, reason })
}

/// The layers that logits depend on: those before the blocks that guess further tokens ahead, of `n_layer` in all.
fn main_layers(keys: &Keys<'_>, n_layer: usize) -> Result<usize, ArchError> {
    let Some(n) = keys.count(DRAFTS)? else {
        return Ok(n_layer);
    };
    let main = usize::try_from(n).ok().and_then(|n| n_layer.checked_sub(n));
    main.filter(|&main| main > 0)
        .ok_or_else(|| ArchError::Contradiction {
            key: keys.name(DRAFTS),
            found: n.to_string(),
            with: format!("{} = {n_layer}", keys.name("block_count")),
            expected: "fewer layers than there are".into(),
        })
}

fn join(keys: &Keys<'_>, form: Residual) -> Result<Join, ArchError> {
    Ok(match form {
        Residual::Sequential => Join::Sequential,
        Residual::Parallel => Join::Parallel,
        Residual::ByFfnNorm => Join::ByFfnNorm,
        Residual::ByKey if keys.require_flag("use_parallel_residual")? => Join::Parallel,
        Residual::ByKey => Join::Sequential,
    })
}

fn alibi(keys: &Keys<'_>, form: Alibi, n_layer: usize) -> Result<f32, ArchError> {
    const KEY: &str = "attention.max_alibi_bias";
    let default = match form {
        Alibi::None => return Ok(0.0),
        Alibi::Key => 0.0,
        Alibi::In(models, bias) if models.include(n_layer) => bias,
        Alibi::In(..) => 0.0,
    };
    Ok(keys.positive(KEY)?.unwrap_or(default))
}

fn temperature(
    keys: &Keys<'_>,
    form: TemperatureForm,
    n_ctx_orig: u64,
) -> Result<Option<Temperature>, ArchError> {
    let length = match form {
        TemperatureForm::None => None,
        TemperatureForm::PerContext => Some(n_ctx_orig),
        TemperatureForm::PerLength => keys.count("attention.temperature_length")?,
        TemperatureForm::Unrotated { scale, length } => {
            return Ok(Some(Temperature {
                scale,
                length,
                offset: 1.0,
            }));
        }
    };
    let Some(length) = length else {
        return Ok(None);
    };
    let scale = obeyed(keys, KeyUse::Obeyed, "attention.temperature_scale")?;
    Ok(scale.map(|scale| Temperature {
        scale,
        length,
        offset: 0.0,
    }))
}

fn obeyed(keys: &Keys<'_>, used: KeyUse, key: &str) -> Result<Option<f32>, ArchError> {
    let given = match used {
        KeyUse::Ignored => return Ok(None),
        KeyUse::Obeyed => keys.float(key)?,
        KeyUse::OrElse(default) => Some(keys.float(key)?.unwrap_or(default)),
    };
    Ok(given.filter(|&x| x != 0.0))
}

fn logit_scale(keys: &Keys<'_>, form: LogitScale, n_embd: u64) -> Result<Option<f32>, ArchError> {
    const KEY: &str = "logit_scale";
    match form {
        LogitScale::None => Ok(None),
        LogitScale::Factor => obeyed(keys, KeyUse::Obeyed, KEY),
        LogitScale::Divisor => match obeyed(keys, KeyUse::Obeyed, KEY)? {
            None => Ok(None),
            Some(x) if (1.0 / x).is_finite() => Ok(Some(1.0 / x)),
            Some(x) => Err(keys.out_of_range(KEY, x, "a number with an inverse")),
        },
        LogitScale::OverWidth(scale) => Ok(Some(scale / n_embd as f32)),
    }
}

/// The factor on the dot products of heads of `dk` elements, where an equal share of the width is `share`.
fn attention_scale(
    keys: &Keys<'_>,
    arch: &Arch,
    n_layer: usize,
    dk: u64,
    share: u64,
) -> Result<f32, ArchError> {
    if let Some(scale) = keys.positive("attention.scale")? {
        return Ok(scale);
    }
    let size = match arch.attention.scale {
        ScaleRule::One => 1,
        ScaleRule::WidthIn(models) if models.include(n_layer) => share,
        ScaleRule::Head | ScaleRule::WidthIn(_) => dk,
    };
    Ok(1.0 / (size.max(1) as f32).sqrt())
}

/// The size of the vocabulary: that of the token list, else the key, else what the embedding has.
fn vocabulary(
    keys: &Keys<'_>,
    metadata: &Metadata,
    tensors: Option<&Header>,
) -> Result<u64, ArchError> {
    if let Some(tokens) = metadata.get_array_str("tokenizer.ggml.tokens")?
        && !tokens.is_empty()
    {
        return Ok(tokens.len() as u64);
    }
    let embedding = || tensors?.tensor("token_embd.weight").map(|t| t.ne[1]);
    match keys.count("vocab_size")? {
        Some(n) => Ok(n),
        None => match embedding() {
            Some(n) => Ok(n),
            None => keys.require_count("vocab_size"),
        },
    }
}
