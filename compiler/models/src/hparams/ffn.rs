use super::experts::ExpertHParams;
use super::ffn_width::FfnWidth;
use super::keys::Keys;
use crate::description::{
    Arch, DenseWidth, ExpertForm, ExpertLayers, ExpertWidth, Experts, SharedForm, SharedWidth,
    Sublayers, SwigluLimits,
};
use crate::error::ArchError;
use crate::size::Size;

const WIDTH: &str = "embedding_length";
const DENSE: &str = "feed_forward_length";
const EXPERT: &str = "expert_feed_forward_length";
const STEP: &str = "interleave_moe_layer_step";
const SHARED: &str = "expert_shared_feed_forward_length";

/// A width's metadata key, with the names of the width and of twice the width in messages.
#[derive(Clone, Copy)]
struct WidthKey {
    key: &'static str,
    once: &'static str,
    twice: &'static str,
}

const DENSE_WIDTH: WidthKey = WidthKey {
    key: DENSE,
    once: DENSE,
    twice: "2 × feed_forward_length",
};
const HALF_OF_DENSE: WidthKey = WidthKey {
    key: DENSE,
    once: "feed_forward_length / 2",
    twice: DENSE,
};
const AS_EMBEDDING: WidthKey = WidthKey {
    key: WIDTH,
    once: WIDTH,
    twice: "2 × embedding_length",
};
const EXPERT_WIDTH: WidthKey = WidthKey {
    key: EXPERT,
    once: EXPERT,
    twice: "2 × expert_feed_forward_length",
};
/// Default width of experts if `feed_forward_length` counts all experts of a token.
const EXPERT_WIDTH_OF_DENSE: WidthKey = WidthKey {
    key: DENSE,
    once: "feed_forward_length / expert_used_count (no expert_feed_forward_length is given)",
    twice: "2 × feed_forward_length / expert_used_count (no expert_feed_forward_length is given)",
};
/// Default width of experts in other architectures.
const EXPERT_WIDTH_AS_DENSE: WidthKey = WidthKey {
    key: DENSE,
    once: "feed_forward_length (no expert_feed_forward_length is given)",
    twice: "2 × feed_forward_length (no expert_feed_forward_length is given)",
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LayerFfn {
    Dense(FfnWidth),
    Experts(ExpertWidths),
    ByRouter {
        dense: FfnWidth,
        experts: ExpertWidths,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExpertWidths {
    pub(crate) each: FfnWidth,
    /// Dense network in parallel with the experts.
    pub(crate) dense: Option<FfnWidth>,
    pub(crate) shared: Option<Size>,
}

/// Reads the experts and each layer's feed-forward sublayer. The layers from `n_main` are draft blocks, which always
/// have this sublayer.
pub(super) fn read(
    keys: &Keys<'_>,
    arch: &Arch,
    [n_main, n_layer]: [usize; 2],
) -> Result<(Option<ExpertHParams>, Vec<Option<LayerFfn>>), ArchError> {
    let dense = || dense_widths(keys, arch, n_layer);
    let Some(has_ffn) = layers_with_ffn(keys, arch, [n_main, n_layer])? else {
        return Ok((None, vec![None; n_layer]));
    };
    let Some(form) = expert_form(keys, &arch.ffn.experts)? else {
        let widths = dense()?.into_iter().enumerate();
        let layers = widths.map(|(il, n)| {
            let width = has_ffn[il].then(|| ffn_width(keys, il, n, key_of(arch.ffn.width)));
            Ok(width.transpose()?.map(LayerFfn::Dense))
        });
        return Ok((None, layers.collect::<Result<_, ArchError>>()?));
    };
    let expert = match form.width {
        ExpertWidth::AsDense => None,
        ExpertWidth::GivenOrDense | ExpertWidth::GivenOrShareOfDense => {
            keys.count_per_layer(EXPERT, n_layer)?
        }
    };
    let (expert, expert_key) = match expert.filter(|widths| widths.iter().any(|&n| n != 0)) {
        Some(widths) => (widths, EXPERT_WIDTH),
        None => match form.width {
            ExpertWidth::AsDense => (given_widths(keys, n_layer)?, DENSE_WIDTH),
            ExpertWidth::GivenOrDense => (given_widths(keys, n_layer)?, EXPERT_WIDTH_AS_DENSE),
            ExpertWidth::GivenOrShareOfDense => {
                let used = keys.require_count("expert_used_count")?;
                let shares = given_widths(keys, n_layer)?
                    .into_iter()
                    .map(|n| n / used)
                    .collect();
                (shares, EXPERT_WIDTH_OF_DENSE)
            }
        },
    };
    let of_dense = |il: usize| ffn_width(keys, il, dense()?[il], key_of(arch.ffn.width));
    let of_expert = |il: usize| -> Result<ExpertWidths, ArchError> {
        let each = ffn_width(keys, il, expert[il], expert_key)?;
        let shared = match &form.shared {
            Some(shared) => shared_width(keys, shared, each.n, il, n_layer)?,
            None => None,
        };
        let dense = match form.dense {
            Some(_) => Some(of_dense(il)?),
            None => None,
        };
        Ok(ExpertWidths {
            each,
            dense,
            shared,
        })
    };
    let layers = layer_kinds(keys, form.layers, n_layer)?;
    let layers = layers.into_iter().enumerate().map(|(il, kind)| {
        if !has_ffn[il] {
            return Ok(None);
        }
        Ok(Some(match kind {
            LayerKind::Dense => LayerFfn::Dense(of_dense(il)?),
            LayerKind::Experts => LayerFfn::Experts(of_expert(il)?),
            LayerKind::ByRouter => LayerFfn::ByRouter {
                dense: of_dense(il)?,
                experts: of_expert(il)?,
            },
        }))
    });
    let layers = layers.collect::<Result<_, ArchError>>()?;
    Ok((Some(ExpertHParams::read(keys, form, n_layer)?), layers))
}

/// Returns whether each layer has a network; `None` if no layer has one.
fn layers_with_ffn(
    keys: &Keys<'_>,
    arch: &Arch,
    [n_main, n_layer]: [usize; 2],
) -> Result<Option<Vec<bool>>, ArchError> {
    Ok(match arch.sublayers {
        Sublayers::Both => Some(vec![true; n_layer]),
        Sublayers::Mixer => None,
        Sublayers::Either | Sublayers::ByCounts => {
            let widths = dense_widths(keys, arch, n_layer)?.into_iter().enumerate();
            let drafts = if arch.drafts.is_some() {
                n_main
            } else {
                n_layer
            };
            Some(widths.map(|(il, n)| n > 0 || il >= drafts).collect())
        }
    })
}

fn given_widths(keys: &Keys<'_>, n_layer: usize) -> Result<Vec<u64>, ArchError> {
    keys.require_count_per_layer(DENSE, n_layer)
}

fn dense_widths(keys: &Keys<'_>, arch: &Arch, n_layer: usize) -> Result<Vec<u64>, ArchError> {
    Ok(match arch.ffn.width {
        DenseWidth::Given => given_widths(keys, n_layer)?,
        DenseWidth::Half => {
            let both = given_widths(keys, n_layer)?;
            both.into_iter().map(|n| n / 2).collect()
        }
        DenseWidth::Embedding => vec![keys.require_count(WIDTH)?; n_layer],
    })
}

const fn key_of(form: DenseWidth) -> WidthKey {
    match form {
        DenseWidth::Given => DENSE_WIDTH,
        DenseWidth::Half => HALF_OF_DENSE,
        DenseWidth::Embedding => AS_EMBEDDING,
    }
}

fn expert_form<'a>(
    keys: &Keys<'_>,
    experts: &'a Experts,
) -> Result<Option<&'a ExpertForm>, ArchError> {
    const KEY: &str = "expert_count";
    match experts {
        Experts::None => Ok(None),
        Experts::IfCounted(form) => Ok(keys.count(KEY)?.map(|_| form)),
        Experts::Always(form) => Ok(Some(form)),
    }
}

#[derive(Clone, Copy)]
enum LayerKind {
    Dense,
    Experts,
    ByRouter,
}

fn layer_kinds(
    keys: &Keys<'_>,
    layers: ExpertLayers,
    n_layer: usize,
) -> Result<Vec<LayerKind>, ArchError> {
    let leading = || keys.count("leading_dense_block_count");
    let (leading, step) = match layers {
        ExpertLayers::All => (None, 1),
        ExpertLayers::AfterLeading => (leading()?, 1),
        ExpertLayers::Interleaved => (leading()?, keys.require_count(STEP)?),
        ExpertLayers::InterleavedUnless0 if keys.is_zero(STEP)? => (leading()?, 0),
        ExpertLayers::InterleavedUnless0 => (leading()?, keys.require_count(STEP)?),
        ExpertLayers::SecondOfEvery => {
            let period = keys.count("moe_every_n_layers")?.unwrap_or(0);
            let kind = |il: u64| match il.checked_rem(period) {
                Some(1) => LayerKind::Experts,
                _ => LayerKind::Dense,
            };
            return Ok((0..n_layer as u64).map(kind).collect());
        }
        ExpertLayers::WithRouter => return Ok(vec![LayerKind::ByRouter; n_layer]),
    };
    let kind = |il: u64| {
        if il >= leading.unwrap_or(0) && (il + 1).is_multiple_of(step) {
            LayerKind::Experts
        } else {
            LayerKind::Dense
        }
    };
    Ok((0..n_layer as u64).map(kind).collect())
}

fn ffn_width(keys: &Keys<'_>, layer: usize, n: u64, of: WidthKey) -> Result<FfnWidth, ArchError> {
    let n = keys.require_in_layer(layer, n, of.key)?.n;
    Ok(FfnWidth {
        n: Size::try_new(n, of.once)?,
        gate_up: Size::product(2, n, of.twice)?,
    })
}

fn shared_width(
    keys: &Keys<'_>,
    form: &SharedForm,
    expert: Size,
    layer: usize,
    n_layer: usize,
) -> Result<Option<Size>, ArchError> {
    let given = keys
        .count(SHARED)?
        .map(|n| Size::try_new(n, SHARED))
        .transpose()?;
    let count = || keys.count("expert_shared_count");
    let times = |count: Option<u64>, each: Size| {
        let of = "expert_shared_count × the width of an expert";
        count.map(|n| Size::product(n, each.n, of)).transpose()
    };
    Ok(match form.width {
        SharedWidth::Given => given,
        SharedWidth::GivenOrDense => match given {
            Some(given) => Some(given),
            None => {
                let dense = keys.require_count_per_layer(DENSE, n_layer)?;
                Some(keys.require_in_layer(layer, dense[layer], DENSE)?)
            }
        },
        SharedWidth::GivenOrExpert => Some(given.unwrap_or(expert)),
        SharedWidth::Counted => times(count()?, given.unwrap_or(expert))?,
        SharedWidth::CountedAsExpert => times(count()?, expert)?,
        SharedWidth::GivenIfCounted => match (count()?, given) {
            (None, _) => None,
            (_, Some(given)) => Some(given),
            (count, None) => times(count, expert)?,
        },
        SharedWidth::GivenOrCounted => match given {
            Some(given) => Some(given),
            None => times(Some(count()?.unwrap_or(1)), expert)?,
        },
        SharedWidth::CountedFromOne => times(Some(count()?.unwrap_or(1)), expert)?,
        SharedWidth::AsExpert => Some(expert),
    })
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Bound of the experts.
    pub(crate) experts: Option<f32>,
    /// Bound of dense networks and the shared expert.
    pub(crate) dense: Option<f32>,
}

/// Bounds below this number have no effect.
const LEAST_LIMIT: f32 = 1e-6;

pub(super) fn limits(
    keys: &Keys<'_>,
    form: SwigluLimits,
    n_layer: usize,
) -> Result<Vec<Limits>, ArchError> {
    let read = |key| -> Result<Vec<Option<f32>>, ArchError> {
        let given = match form {
            SwigluLimits::Ignored => None,
            SwigluLimits::OnGate | SwigluLimits::OnGateOfAll | SwigluLimits::OnActivated => {
                keys.float_per_layer(key, n_layer)?
            }
        };
        let given = given.unwrap_or_else(|| vec![0.0; n_layer]);
        Ok(given
            .into_iter()
            .map(|x| (x > LEAST_LIMIT).then_some(x))
            .collect())
    };
    let experts = read("swiglu_clamp_exp")?;
    let dense = match keys.float_per_layer("swiglu_clamp_shexp", n_layer)? {
        None if form == SwigluLimits::OnGateOfAll => experts.clone(),
        Some(_) | None => read("swiglu_clamp_shexp")?,
    };
    let both = experts.into_iter().zip(dense);
    Ok(both
        .map(|(experts, dense)| Limits { experts, dense })
        .collect())
}
