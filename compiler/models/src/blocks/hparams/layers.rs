//! What may differ between layers: counts and sizes of heads, widths, windows, rotation.

use super::ffn::LayerFfn;
use super::mixers::Mixer;
use super::windows::Windowed;
use super::{MAX_WIDTH, attention_scale};
use crate::blocks::keys::Keys;
use crate::description::{Arch, HeadSizes, KeyUse, OutGate, RecurrentLayers, RotatedLayers};
use crate::error::ArchError;
use crate::source::Size;

/// What may differ between layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LayerHParams {
    pub(crate) index: u32,
    /// What mixes tokens, where something does.
    pub(crate) mixer: Option<Mixer>,
    pub(crate) n_head: u64,
    pub(crate) n_head_kv: u64,
    pub(crate) heads: HeadElements,
    /// Factor on the dot products.
    pub(crate) attention_scale: f32,
    /// The feed-forward half, where there is one.
    pub(crate) ffn: Option<LayerFfn>,
    pub(crate) windowed: Windowed,
    pub(crate) rotated: Rotated,
    /// The layer whose caches this one attends to, if it has none of its own.
    pub(crate) kv_from: Option<u32>,
    /// Widths of all heads' queries, keys, values and outputs together.
    pub(crate) q_width: Size,
    /// That of queries and of what their projection holds beside them.
    pub(crate) q_projected: Size,
    pub(crate) k_width: Size,
    pub(crate) v_width: Size,
    pub(crate) out_width: Size,
    pub(crate) qkv_width: Size,
}

/// Elements of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadElements {
    /// Of queries and keys.
    pub(crate) dk: u64,
    /// Of values.
    pub(crate) dv: u64,
}

/// Whether a layer rotates its queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotated {
    No,
    Yes,
}

/// Query heads and KV heads of every layer.
pub(super) fn head_counts(
    keys: &Keys<'_>,
    arch: &Arch,
    n_layer: usize,
) -> Result<[Vec<u64>; 2], ArchError> {
    if arch
        .recurrent
        .is_some_and(|form| form.layers == RecurrentLayers::All)
    {
        return Ok([vec![0; n_layer], vec![0; n_layer]]);
    }
    let n_head = keys.require_count_per_layer("attention.head_count", n_layer)?;
    let n_head_kv = keys.count_per_layer("attention.head_count_kv", n_layer)?;
    let n_head_kv = n_head_kv.unwrap_or_else(|| n_head.clone());
    Ok([n_head, n_head_kv])
}

/// The sizes of heads in layers without and with a window.
pub(super) fn head_elements(
    keys: &Keys<'_>,
    arch: &Arch,
    n_embd: u64,
    n_head: u64,
) -> Result<[HeadElements; 2], ArchError> {
    let head_size = |key| match keys.count(key)? {
        Some(d) => Ok(d),
        None => divided(keys, n_embd, n_head),
    };
    let full = HeadElements {
        dk: head_size("attention.key_length")?,
        dv: head_size("attention.value_length")?,
    };
    let windowed = match arch.attention.head_sizes {
        HeadSizes::Same => full,
        HeadSizes::WindowedOwn => HeadElements {
            dk: keys.count("attention.key_length_swa")?.unwrap_or(full.dk),
            dv: keys.count("attention.value_length_swa")?.unwrap_or(full.dv),
        },
    };
    Ok([full, windowed])
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

/// Which layers rotate.
pub(super) fn rotated(
    keys: &Keys<'_>,
    arch: &Arch,
    windowed: &[Windowed],
) -> Result<Vec<Rotated>, ArchError> {
    let n_layer = windowed.len();
    let yes = |rotated| {
        if rotated { Rotated::Yes } else { Rotated::No }
    };
    let all_but_every = |period: u32| {
        let layers = (1..=n_layer).map(|n| yes(!n.is_multiple_of(period as usize)));
        layers.collect()
    };
    let Some(rope) = &arch.attention.rope else {
        return Ok(vec![Rotated::No; n_layer]);
    };
    Ok(match rope.layers {
        RotatedLayers::All => vec![Rotated::Yes; n_layer],
        RotatedLayers::AllIn(models) => vec![yes(models.include(n_layer)); n_layer],
        RotatedLayers::AllButEvery(period) => all_but_every(period),
        RotatedLayers::AllButEveryIfWindowed(period) if windowed.contains(&Windowed::Yes) => {
            all_but_every(period)
        }
        RotatedLayers::AllButEveryIfWindowed(_) => vec![Rotated::Yes; n_layer],
        RotatedLayers::Windowed if windowed.contains(&Windowed::Yes) => {
            windowed.iter().map(|&w| yes(w == Windowed::Yes)).collect()
        }
        RotatedLayers::Windowed => vec![Rotated::Yes; n_layer],
        RotatedLayers::AllIfFinetuned => {
            let finetuned = keys.flag("rope.scaling.finetuned")?.unwrap_or(true);
            vec![yes(finetuned); n_layer]
        }
    })
}

/// For each layer the one whose caches it attends to, if it has none of its own.
pub(super) fn shared_kv(
    keys: &Keys<'_>,
    arch: &Arch,
    windowed: &[Windowed],
    n_head_kv: &[u64],
) -> Result<Vec<Option<u32>>, ArchError> {
    const KEY: &str = "attention.shared_kv_layers";
    let n_layer = windowed.len();
    let shared = match arch.attention.shared_kv {
        KeyUse::Ignored => None,
        KeyUse::Obeyed | KeyUse::OrElse(_) => keys.count(KEY)?,
    };
    let mut out = vec![None; n_layer];
    let Some(shared) = shared else {
        return Ok(out);
    };
    let own = usize::try_from(shared).map_or(0, |shared| n_layer.saturating_sub(shared));
    for il in own..n_layer {
        let alike = |&j: &usize| windowed[j] == windowed[il] && n_head_kv[j] == n_head_kv[il];
        let from = (0..own)
            .rfind(alike)
            .ok_or_else(|| ArchError::Contradiction {
                key: keys.name(KEY),
                found: shared.to_string(),
                with: format!("layer {il} of {n_layer}"),
                expected:
                    "a layer before those, of as many KV heads and with a window if it has one"
                        .into(),
            })?;
        out[il] = Some(u32::try_from(from).expect("invariant: at most MAX_LAYERS"));
    }
    Ok(out)
}

/// The width of a layer's own embeddings, and that of all layers', where layers have some.
pub(super) fn own_embeddings(
    keys: &Keys<'_>,
    n_layer: usize,
) -> Result<Option<[Size; 2]>, ArchError> {
    const KEY: &str = "embedding_length_per_layer_input";
    let Some(n) = keys.count(KEY)? else {
        return Ok(None);
    };
    let all = width(
        n,
        n_layer as u64,
        "embedding_length_per_layer_input × block_count",
    )?;
    Ok(Some([width(1, n, KEY)?, all]))
}

/// One layer's values before they are checked.
pub(super) struct LayerSizes {
    pub(super) index: usize,
    pub(super) mixer: Option<Mixer>,
    pub(super) n_head: u64,
    pub(super) n_head_kv: u64,
    pub(super) heads: HeadElements,
    pub(super) ffn: Option<LayerFfn>,
    pub(super) windowed: Windowed,
    pub(super) rotated: Rotated,
    pub(super) kv_from: Option<u32>,
}

impl LayerSizes {
    pub(super) fn check(
        &self,
        keys: &Keys<'_>,
        arch: &Arch,
        n_layer: usize,
        n_embd: u64,
    ) -> Result<LayerHParams, ArchError> {
        let index = u32::try_from(self.index).expect("invariant: at most MAX_LAYERS");
        let attends = matches!(self.mixer, Some(Mixer::Attention | Mixer::Both));
        for (n, key) in [
            (self.n_head, "attention.head_count"),
            (self.n_head_kv, "attention.head_count_kv"),
        ] {
            if attends {
                layer_width(keys, self.index, n, key)?;
            }
        }
        if attends && !self.n_head.is_multiple_of(self.n_head_kv) {
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
        // What a layer without attention has of heads means nothing.
        let (h, hk) = if attends {
            (self.n_head, self.n_head_kv)
        } else {
            (0, 0)
        };
        let HeadElements { dk, dv } = self.heads;
        let q_width = width(h, dk, "attention.head_count × attention.key_length")?;
        let q_projected = match arch.attention.out_gate {
            OutGate::None => q_width,
            OutGate::WithQueries => width(
                h,
                dk + dv,
                "attention.head_count × (attention.key_length + attention.value_length)",
            )?,
        };
        let k_width = width(hk, dk, "attention.head_count_kv × attention.key_length")?;
        let v_width = width(hk, dv, "attention.head_count_kv × attention.value_length")?;
        Ok(LayerHParams {
            index,
            mixer: self.mixer,
            n_head: h,
            n_head_kv: hk,
            heads: self.heads,
            attention_scale: attention_scale(
                keys,
                arch,
                n_layer,
                dk,
                n_embd.checked_div(h).unwrap_or(dk),
            )?,
            ffn: self.ffn,
            windowed: self.windowed,
            rotated: self.rotated,
            kv_from: self.kv_from,
            q_width,
            q_projected,
            k_width,
            v_width,
            out_width: width(h, dv, "attention.head_count × attention.value_length")?,
            // The three are below MAX_WIDTH each, so the sum does not overflow.
            qkv_width: width(
                1,
                q_projected.n + k_width.n + v_width.n,
                "the heads of queries, keys and values",
            )?,
        })
    }
}

/// A size that every layer must have, 0 being that of layers without the part.
pub(super) fn layer_width(
    keys: &Keys<'_>,
    layer: usize,
    n: u64,
    key: &'static str,
) -> Result<Size, ArchError> {
    if n == 0 {
        return Err(ArchError::EmptyLayer {
            layer: u32::try_from(layer).expect("invariant: at most MAX_LAYERS"),
            key: keys.name(key),
        });
    }
    width(1, n, key)
}

/// `a · b`, when that is a size tensors can have.
pub(crate) fn width(a: u64, b: u64, from: &'static str) -> Result<Size, ArchError> {
    match a.checked_mul(b) {
        Some(n) if n <= MAX_WIDTH => Ok(Size { n, from }),
        _ => Err(ArchError::Overflow {
            what: from,
            of: format!("{a} × {b}"),
        }),
    }
}
