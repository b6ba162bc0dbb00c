//! Hyper-parameters: what the metadata say of a model, read by the description's rules and checked.
//!
//! Defaults and meanings are llama.cpp's, whose files these are: a 0 often stands for an absent value, `rope.scaling.*`
//! are read even where the scaling type is the default, and YaRN's factor on the rotated elements is stated without
//! the part that the op computes by itself.

use tpc_ir::op::{NormKind, Rope};

use super::keys::{Keys, Pattern};
use super::rope;
use crate::arch::description::{Arch, Experts, KeyUse, ScaleRule, Window};
use crate::arch::error::ArchError;
use crate::arch::source::Size;
use crate::gguf::{Header, Metadata};

/// More layers than any published model has, by an order of magnitude: what a hostile count can make us allocate.
const MAX_LAYERS: u64 = 2048;

/// The largest product of sizes that is believed, so that tensors of it can be counted in 63 bits.
const MAX_WIDTH: u64 = 1 << 40;

/// The hyper-parameters of a model.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::arch) struct HParams {
    pub(in crate::arch) name: Option<String>,
    pub(in crate::arch) n_embd: u64,
    pub(in crate::arch) n_vocab: u64,
    pub(in crate::arch) n_ctx_train: u64,
    pub(in crate::arch) n_ctx_orig: u64,
    /// Elements of a query or key head.
    pub(in crate::arch) dk: u64,
    /// Elements of a value head.
    pub(in crate::arch) dv: u64,
    /// Added under the root of every norm.
    pub(in crate::arch) eps: f32,
    /// The rotation of layers without and with a window.
    pub(in crate::arch) rope: Option<[Rope; 2]>,
    pub(in crate::arch) attention_scale: f32,
    /// 0 for none.
    pub(in crate::arch) attention_softcap: f32,
    /// Tokens that windowed layers attend to, the token itself included.
    pub(in crate::arch) window: Option<u64>,
    pub(in crate::arch) experts: Option<ExpertCounts>,
    pub(in crate::arch) logit_scale: Option<f32>,
    pub(in crate::arch) final_softcap: Option<f32>,
    pub(in crate::arch) layers: Vec<LayerHParams>,
}

/// The counts of a mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::arch) struct ExpertCounts {
    pub(in crate::arch) count: u64,
    pub(in crate::arch) used: u64,
}

/// What may differ between layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::arch) struct LayerHParams {
    pub(in crate::arch) index: u32,
    pub(in crate::arch) n_head: u64,
    pub(in crate::arch) n_head_kv: u64,
    /// Width of the feed-forward network, or of one expert.
    pub(in crate::arch) n_ff: Size,
    pub(in crate::arch) windowed: Windowed,
    /// Widths of all heads' queries, keys, values and outputs together.
    pub(in crate::arch) q_width: Size,
    pub(in crate::arch) k_width: Size,
    pub(in crate::arch) v_width: Size,
    pub(in crate::arch) out_width: Size,
    pub(in crate::arch) qkv_width: Size,
    pub(in crate::arch) gate_up_width: Size,
}

/// Whether a layer attends to a sliding window only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::arch) enum Windowed {
    No,
    Yes,
}

impl HParams {
    /// Reads the hyper-parameters of a model of this architecture. Its tensors, where it has some, say how large the
    /// vocabulary is if the metadata do not.
    pub(in crate::arch) fn read(
        arch: &Arch,
        metadata: &Metadata,
        tensors: Option<&Header>,
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
        let n_head = keys.require_count_per_layer("attention.head_count", n_layer)?;
        let n_head_kv = keys
            .count_per_layer("attention.head_count_kv", n_layer)?
            .unwrap_or_else(|| n_head.clone());
        let head_size = |key| match keys.count(key)? {
            Some(d) => Ok(d),
            None => divided(&keys, n_embd, n_head[0]),
        };
        let dk = head_size("attention.key_length")?;
        let dv = head_size("attention.value_length")?;
        let (n_ff, ff_key) = widths(&keys, arch, n_layer)?;
        let (window, windowed) = windows(&keys, arch.attention.window, n_layer)?;
        let layers = (0..n_layer)
            .map(|il| {
                let sizes = LayerSizes {
                    index: il,
                    n_head: n_head[il],
                    n_head_kv: n_head_kv[il],
                    n_ff: n_ff[il],
                    ff_key,
                    windowed: windowed[il],
                };
                sizes.check(&keys, dk, dv)
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(HParams {
            name: metadata.get_str("general.name")?.map(str::to_owned),
            n_embd,
            n_vocab: vocabulary(&keys, metadata, tensors)?,
            n_ctx_train,
            n_ctx_orig,
            dk,
            dv,
            eps: keys.require_epsilon(match arch.norm.kind {
                NormKind::Layer => "attention.layer_norm_epsilon",
                NormKind::Rms | NormKind::L2 => "attention.layer_norm_rms_epsilon",
            })?,
            rope: match &arch.attention.rope {
                Some(form) => Some(rope::read(&keys, form, dk, n_ctx_train, n_ctx_orig)?),
                None => None,
            },
            attention_scale: attention_scale(&keys, arch, n_layer, dk, n_embd, n_head[0])?,
            attention_softcap: obeyed(&keys, arch.attention.softcap, "attn_logit_softcapping")?
                .unwrap_or(0.0),
            window,
            experts: experts(&keys, &arch.ffn.experts)?,
            logit_scale: obeyed(&keys, arch.head.logit_scale, "logit_scale")?,
            final_softcap: obeyed(&keys, arch.head.softcap, "final_logit_softcapping")?,
            layers,
        })
    }

    /// `embedding_length`, with its key.
    pub(in crate::arch) fn embd(&self) -> Size {
        Size {
            n: self.n_embd,
            from: "embedding_length",
        }
    }
}

/// One layer's values before they are checked.
struct LayerSizes {
    index: usize,
    n_head: u64,
    n_head_kv: u64,
    n_ff: u64,
    ff_key: &'static str,
    windowed: Windowed,
}

impl LayerSizes {
    fn check(&self, keys: &Keys<'_>, dk: u64, dv: u64) -> Result<LayerHParams, ArchError> {
        let index = u32::try_from(self.index).expect("invariant: at most MAX_LAYERS");
        for (n, key) in [
            (self.n_head, "attention.head_count"),
            (self.n_head_kv, "attention.head_count_kv"),
            (self.n_ff, self.ff_key),
        ] {
            if n == 0 {
                let key = keys.name(key);
                return Err(ArchError::EmptyLayer { layer: index, key });
            }
        }
        if !self.n_head.is_multiple_of(self.n_head_kv) {
            return Err(ArchError::Contradiction {
                key: keys.name("attention.head_count_kv"),
                found: self.n_head_kv.to_string(),
                with: format!(
                    "{} = {} in layer {index}",
                    keys.name("attention.head_count"),
                    self.n_head
                ),
                expected: "a divisor of it".into(),
            });
        }
        let (h, hk) = (self.n_head, self.n_head_kv);
        let q_width = width(h, dk, "attention.head_count × attention.key_length")?;
        let k_width = width(hk, dk, "attention.head_count_kv × attention.key_length")?;
        let v_width = width(hk, dv, "attention.head_count_kv × attention.value_length")?;
        let n_ff = width(1, self.n_ff, self.ff_key)?;
        Ok(LayerHParams {
            index,
            n_head: h,
            n_head_kv: hk,
            n_ff,
            windowed: self.windowed,
            q_width,
            k_width,
            v_width,
            out_width: width(h, dv, "attention.head_count × attention.value_length")?,
            // The three are below MAX_WIDTH each, so the sum does not overflow.
            qkv_width: width(
                1,
                q_width.n + k_width.n + v_width.n,
                "the heads of queries, keys and values",
            )?,
            gate_up_width: width(2, self.n_ff, "2 × feed_forward_length")?,
        })
    }
}

/// `a · b`, when that is a size tensors can have.
fn width(a: u64, b: u64, from: &'static str) -> Result<Size, ArchError> {
    match a.checked_mul(b) {
        Some(n) if n <= MAX_WIDTH => Ok(Size { n, from }),
        _ => Err(ArchError::Overflow {
            what: from,
            of: format!("{a} × {b}"),
        }),
    }
}

fn divided(keys: &Keys<'_>, n_embd: u64, n_head: u64) -> Result<u64, ArchError> {
    match n_embd.checked_div(n_head) {
        // A layer without heads has its own error.
        None => Ok(1),
        Some(d) if d > 0 && d * n_head == n_embd => Ok(d),
        Some(_) => Err(ArchError::Contradiction {
            key: keys.name("embedding_length"),
            found: n_embd.to_string(),
            with: format!("{} = {n_head}", keys.name("attention.head_count")),
            expected: "a multiple of it, without attention.key_length".into(),
        }),
    }
}

/// The feed-forward width of every layer, and its key.
fn widths(
    keys: &Keys<'_>,
    arch: &Arch,
    n_layer: usize,
) -> Result<(Vec<u64>, &'static str), ArchError> {
    let has_experts = match &arch.ffn.experts {
        Experts::Never => false,
        Experts::IfCounted(_) => keys.count("expert_count")?.is_some(),
        Experts::Always(_) => true,
    };
    const EXPERT: &str = "expert_feed_forward_length";
    const DENSE: &str = "feed_forward_length";
    if has_experts && let Some(n) = keys.count(EXPERT)? {
        return Ok((vec![n; n_layer], EXPERT));
    }
    Ok((keys.require_count_per_layer(DENSE, n_layer)?, DENSE))
}

fn windows(
    keys: &Keys<'_>,
    form: Window,
    n_layer: usize,
) -> Result<(Option<u64>, Vec<Windowed>), ArchError> {
    let none = (None, vec![Windowed::No; n_layer]);
    let period = match form {
        Window::None => return Ok(none),
        // No layer is the last of every none.
        Window::All => 0,
        Window::AllButEvery(n) => n,
    };
    let Some(window) = keys.count("attention.sliding_window")? else {
        return Ok(none);
    };
    let yes = |windowed| {
        if windowed {
            Windowed::Yes
        } else {
            Windowed::No
        }
    };
    let every = |period: u32| {
        (0..n_layer)
            .map(|il| {
                let period = period as usize;
                yes(period == 0 || il % period < period - 1)
            })
            .collect()
    };
    let layers: Vec<Windowed> = match keys.pattern("attention.sliding_window_pattern", n_layer)? {
        None => every(period),
        Some(Pattern::Period(period)) => every(period),
        Some(Pattern::Layers(layers)) => layers.into_iter().map(yes).collect(),
    };
    let window = layers.contains(&Windowed::Yes).then_some(window);
    Ok((window, layers))
}

fn experts(keys: &Keys<'_>, form: &Experts) -> Result<Option<ExpertCounts>, ArchError> {
    let count = match form {
        Experts::Never => return Ok(None),
        Experts::IfCounted(_) => match keys.count("expert_count")? {
            Some(n) => n,
            None => return Ok(None),
        },
        Experts::Always(_) => keys.require_count("expert_count")?,
    };
    let used = keys.require_count("expert_used_count")?;
    if used > count {
        return Err(ArchError::Contradiction {
            key: keys.name("expert_used_count"),
            found: used.to_string(),
            with: format!("{} = {count}", keys.name("expert_count")),
            expected: "no more than there are".into(),
        });
    }
    Ok(Some(ExpertCounts { count, used }))
}

fn obeyed(keys: &Keys<'_>, used: KeyUse, key: &str) -> Result<Option<f32>, ArchError> {
    match used {
        KeyUse::Ignored => Ok(None),
        KeyUse::Obeyed => Ok(keys.float(key)?.filter(|&x| x != 0.0)),
    }
}

fn attention_scale(
    keys: &Keys<'_>,
    arch: &Arch,
    n_layer: usize,
    dk: u64,
    n_embd: u64,
    n_head: u64,
) -> Result<f32, ArchError> {
    if let Some(scale) = keys.positive("attention.scale")? {
        return Ok(scale);
    }
    let size = match arch.attention.scale {
        ScaleRule::WidthAtLayers(n) if n as usize == n_layer => n_embd / n_head.max(1),
        ScaleRule::Head | ScaleRule::WidthAtLayers(_) => dk,
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
