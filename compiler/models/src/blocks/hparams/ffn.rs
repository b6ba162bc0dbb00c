//! Hyper-parameters of the feed-forward half: which layers have experts, how many and how wide, and how tokens find
//! theirs.

use super::layers::{layer_width, width};
use crate::blocks::keys::Keys;
use crate::description::{
    Arch, ExpertForm, ExpertLayers, Experts, Gating, Halves, KeyUse, SharedForm, SharedWidth,
    Weights,
};
use crate::error::ArchError;
use crate::source::Size;

const DENSE: &str = "feed_forward_length";
const EXPERT: &str = "expert_feed_forward_length";
const SHARED: &str = "expert_shared_feed_forward_length";

/// A key that holds a width, and what messages call that width and twice that.
#[derive(Clone, Copy)]
struct WidthKey {
    key: &'static str,
    once: &'static str,
    twice: &'static str,
}

const OF_DENSE: WidthKey = WidthKey {
    key: DENSE,
    once: DENSE,
    twice: "2 × feed_forward_length",
};
const OF_EXPERT: WidthKey = WidthKey {
    key: EXPERT,
    once: EXPERT,
    twice: "2 × expert_feed_forward_length",
};
/// That of experts in files that give none.
const OF_EXPERT_AS_DENSE: WidthKey = WidthKey {
    key: DENSE,
    once: "feed_forward_length (no expert_feed_forward_length is given)",
    twice: "2 × feed_forward_length (no expert_feed_forward_length is given)",
};

/// A mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExpertHParams {
    pub(crate) count: u64,
    /// Experts that a token goes to.
    pub(crate) used: u64,
    /// Groups, where tokens go to experts of some groups only.
    pub(crate) groups: Option<Groups>,
    pub(crate) gating: Gating,
    /// Whether the weights of a token are divided by their sum.
    pub(crate) normalised: bool,
    /// Factor on the weights.
    pub(crate) scale: Option<f32>,
}

/// Groups of experts, of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    pub(crate) count: u64,
    /// Groups that a token's experts are in.
    pub(crate) used: u64,
}

/// The width of a feed-forward network, or of one expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FfnWidth {
    pub(crate) n: Size,
    /// That of gate and up in one matrix.
    pub(crate) gate_up: Size,
}

/// The feed-forward half of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerFfn {
    Dense(FfnWidth),
    Experts(ExpertWidths),
    /// Experts if there is a router.
    ByRouter {
        dense: FfnWidth,
        experts: ExpertWidths,
    },
}

/// The widths of a layer's experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpertWidths {
    /// That of one.
    pub(crate) each: FfnWidth,
    /// That of the shared one.
    pub(crate) shared: Option<Size>,
}

/// The experts, where there are some, and the feed-forward half of every layer that has one.
pub(super) fn read(
    keys: &Keys<'_>,
    arch: &Arch,
    n_layer: usize,
) -> Result<(Option<ExpertHParams>, Vec<Option<LayerFfn>>), ArchError> {
    let dense = || keys.require_count_per_layer(DENSE, n_layer);
    let has_one: Vec<bool> = match arch.halves {
        Halves::Both => vec![true; n_layer],
        Halves::Mixer => return Ok((None, vec![None; n_layer])),
        Halves::Either => dense()?.into_iter().map(|n| n > 0).collect(),
    };
    let Some(form) = counted(keys, &arch.ffn.experts)? else {
        let widths = dense()?.into_iter().enumerate();
        let layers = widths.map(|(il, n)| {
            let width = has_one[il].then(|| ffn_width(keys, il, n, OF_DENSE));
            Ok(width.transpose()?.map(LayerFfn::Dense))
        });
        return Ok((None, layers.collect::<Result<_, ArchError>>()?));
    };
    let expert = keys.count_per_layer(EXPERT, n_layer)?;
    let (expert, expert_key) = match expert.filter(|widths| widths.iter().any(|&n| n != 0)) {
        Some(widths) => (widths, OF_EXPERT),
        None => (dense()?, OF_EXPERT_AS_DENSE),
    };
    let of_expert = |il: usize| -> Result<ExpertWidths, ArchError> {
        let each = ffn_width(keys, il, expert[il], expert_key)?;
        let shared = match &form.shared {
            Some(shared) => shared_width(keys, shared, each.n, il, n_layer)?,
            None => None,
        };
        Ok(ExpertWidths { each, shared })
    };
    let of_dense = |il: usize| ffn_width(keys, il, dense()?[il], OF_DENSE);
    let layers = with_experts(keys, form.layers, n_layer)?;
    let layers = layers.into_iter().enumerate().map(|(il, kind)| {
        if !has_one[il] {
            return Ok(None);
        }
        Ok(Some(match kind {
            Kind::Dense => LayerFfn::Dense(of_dense(il)?),
            Kind::Experts => LayerFfn::Experts(of_expert(il)?),
            Kind::ByRouter => LayerFfn::ByRouter {
                dense: of_dense(il)?,
                experts: of_expert(il)?,
            },
        }))
    });
    let layers = layers.collect::<Result<_, ArchError>>()?;
    Ok((Some(expert_hparams(keys, form)?), layers))
}

/// The form of the experts, if the file has some.
fn counted<'a>(keys: &Keys<'_>, experts: &'a Experts) -> Result<Option<&'a ExpertForm>, ArchError> {
    const KEY: &str = "expert_count";
    match experts {
        Experts::Never => Ok(None),
        Experts::Refused => match keys.count(KEY)? {
            None => Ok(None),
            Some(n) => {
                let expected = "0: models with experts of this architecture are not supported";
                Err(keys.out_of_range(KEY, n, expected))
            }
        },
        Experts::IfCounted(form) => Ok(keys.count(KEY)?.map(|_| form)),
        Experts::Always(form) => Ok(Some(form)),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Dense,
    Experts,
    ByRouter,
}

fn with_experts(
    keys: &Keys<'_>,
    layers: ExpertLayers,
    n_layer: usize,
) -> Result<Vec<Kind>, ArchError> {
    let leading = || keys.count("leading_dense_block_count");
    let (leading, step) = match layers {
        ExpertLayers::All => (None, 1),
        ExpertLayers::AfterLeading => (leading()?, 1),
        ExpertLayers::Interleaved => (leading()?, keys.require_count("interleave_moe_layer_step")?),
        ExpertLayers::WithRouter => return Ok(vec![Kind::ByRouter; n_layer]),
    };
    let kind = |il: u64| {
        if il >= leading.unwrap_or(0) && (il + 1).is_multiple_of(step) {
            Kind::Experts
        } else {
            Kind::Dense
        }
    };
    Ok((0..n_layer as u64).map(kind).collect())
}

fn ffn_width(keys: &Keys<'_>, layer: usize, n: u64, of: WidthKey) -> Result<FfnWidth, ArchError> {
    let n = layer_width(keys, layer, n, of.key)?.n;
    Ok(FfnWidth {
        n: width(1, n, of.once)?,
        gate_up: width(2, n, of.twice)?,
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
        .map(|n| width(1, n, SHARED))
        .transpose()?;
    Ok(match form.width {
        SharedWidth::Given => given,
        SharedWidth::GivenOrDense => match given {
            Some(given) => Some(given),
            None => {
                let dense = keys.require_count_per_layer(DENSE, n_layer)?;
                Some(layer_width(keys, layer, dense[layer], DENSE)?)
            }
        },
        SharedWidth::GivenOrExpert => Some(given.unwrap_or(expert)),
        SharedWidth::Counted => match keys.count("expert_shared_count")? {
            Some(count) => Some(width(
                count,
                given.unwrap_or(expert).n,
                "expert_shared_count × the width of an expert",
            )?),
            None => None,
        },
        SharedWidth::AsExpert => Some(expert),
    })
}

fn expert_hparams(keys: &Keys<'_>, form: &ExpertForm) -> Result<ExpertHParams, ArchError> {
    const COUNT: &str = "expert_count";
    const USED: &str = "expert_used_count";
    let count = keys.require_count(COUNT)?;
    let used = keys.require_count(USED)?;
    if used > count {
        return Err(ArchError::Contradiction {
            key: keys.name(USED),
            found: used.to_string(),
            with: format!("{} = {count}", keys.name(COUNT)),
            expected: "no more than there are".into(),
        });
    }
    Ok(ExpertHParams {
        count,
        used,
        groups: groups(keys, count, used)?,
        gating: gating(keys, form)?,
        normalised: match form.weights {
            Weights::Kept => false,
            Weights::Normalised => true,
            Weights::Keyed => keys.flag("expert_weights_norm")?.unwrap_or(false),
        },
        scale: match form.weights_scale {
            KeyUse::Ignored => None,
            // A factor of 1 is as good as none.
            KeyUse::Obeyed | KeyUse::OrElse(_) => keys
                .positive("expert_weights_scale")?
                .filter(|&scale| scale != 1.0),
        },
    })
}

fn groups(keys: &Keys<'_>, experts: u64, used_experts: u64) -> Result<Option<Groups>, ArchError> {
    const COUNT: &str = "expert_group_count";
    const USED: &str = "expert_group_used_count";
    let contradiction = |key, found: u64, with, expected: &str| ArchError::Contradiction {
        key: keys.name(key),
        found: found.to_string(),
        with,
        expected: expected.into(),
    };
    let Some(count) = keys.count(COUNT)?.filter(|&n| n > 1) else {
        return Ok(None);
    };
    if !experts.is_multiple_of(count) {
        let with = format!("{} = {experts}", keys.name("expert_count"));
        return Err(contradiction(COUNT, count, with, "a divisor of it"));
    }
    let used = keys.require_count(USED)?;
    if used > count {
        let with = format!("{} = {count}", keys.name(COUNT));
        return Err(contradiction(USED, used, with, "no more than there are"));
    }
    if used * (experts / count) < used_experts {
        let with = format!("{} = {used_experts}", keys.name("expert_used_count"));
        return Err(contradiction(
            USED,
            used,
            with,
            "groups that hold as many experts",
        ));
    }
    // All groups are no restriction.
    Ok((used < count).then_some(Groups { count, used }))
}

fn gating(keys: &Keys<'_>, form: &ExpertForm) -> Result<Gating, ArchError> {
    const KEY: &str = "expert_gating_func";
    let given = match form.gating_key {
        KeyUse::Ignored => None,
        KeyUse::Obeyed | KeyUse::OrElse(_) => keys.count(KEY)?,
    };
    match given {
        None => Ok(form.gating),
        Some(1) => Ok(Gating::Softmax),
        Some(2) => Ok(Gating::Sigmoid),
        Some(3) => Ok(Gating::SoftmaxOfSelected),
        Some(other) => Err(keys.out_of_range(
            KEY,
            other,
            "1 (softmax), 2 (sigmoid) or 3 (softmax of the selected)",
        )),
    }
}
