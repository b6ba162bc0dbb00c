use super::ffn::LayerFfn;
use super::keys::{Keys, Pattern};
use crate::description::{Arch, RecurrentLayers, Sublayers};
use crate::error::ArchError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mixer {
    Attention,
    Recurrent,
    /// Attention and recurrence in parallel.
    Both,
    /// A matrix instead of attention.
    Matrix,
}

/// Returns every layer's token mixer, if any, given its heads, KV heads and feed-forward sublayer.
pub(super) fn mixers(
    keys: &Keys<'_>,
    arch: &Arch,
    [n_head, n_head_kv]: [&[u64]; 2],
    ffn: &[Option<LayerFfn>],
) -> Result<Vec<Option<Mixer>>, ArchError> {
    if arch.sublayers == Sublayers::ByCounts {
        let counts = n_head.iter().zip(n_head_kv);
        let mixers = counts.map(|counts| match counts {
            (0, _) => None,
            (_, 0) => Some(Mixer::Matrix),
            _ => Some(Mixer::Attention),
        });
        return Ok(mixers.collect());
    }
    let n_layer = n_head_kv.len();
    let mixers = match arch.recurrent.map(|form| form.layers) {
        None => vec![Mixer::Attention; n_layer],
        Some(RecurrentLayers::All) => vec![Mixer::Recurrent; n_layer],
        Some(RecurrentLayers::BesideAttention) => vec![Mixer::Both; n_layer],
        Some(RecurrentLayers::WithoutKvHeads) => {
            n_head_kv.iter().map(|&n| recurrent_if(n == 0)).collect()
        }
        Some(RecurrentLayers::AllButEvery(period)) => listed_mixers(keys, period, n_layer)?,
    };
    let layers = mixers.into_iter().zip(ffn);
    Ok(layers
        .map(|(mixer, ffn)| (arch.sublayers != Sublayers::Either || ffn.is_none()).then_some(mixer))
        .collect())
}

const fn recurrent_if(recurrent: bool) -> Mixer {
    if recurrent {
        Mixer::Recurrent
    } else {
        Mixer::Attention
    }
}

/// Returns the layers that `attention.recurrent_layers` lists, or else all but the last of every period.
fn listed_mixers(keys: &Keys<'_>, period: u32, n_layer: usize) -> Result<Vec<Mixer>, ArchError> {
    Ok(match keys.pattern("attention.recurrent_layers", n_layer)? {
        Some(Pattern::Layers(layers)) => layers.into_iter().map(recurrent_if).collect(),
        Some(Pattern::Period(all)) => vec![recurrent_if(all != 0); n_layer],
        None => {
            let period = match keys.count("full_attention_interval")? {
                Some(period) => usize::try_from(period).unwrap_or(usize::MAX),
                None => period as usize,
            };
            let layers = (1..=n_layer).map(|n| recurrent_if(!n.is_multiple_of(period)));
            layers.collect()
        }
    })
}
