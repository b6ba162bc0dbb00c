use super::ffn_width::FfnWidth;
use super::heads;
use super::keys::Keys;
use super::windows::Reach;
use crate::description::{ExpertForm, ExpertWeights, Gating, HeadSizes, KeyUse, SelectedBy};
use crate::error::ArchError;
use crate::size::Size;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExpertHParams {
    pub(crate) count: u64,
    pub(crate) used: u64,
    /// Size of the vector that selected experts read and write; `None` for the residual stream.
    pub(crate) latent: Option<Size>,
    /// Groups, if a token uses only experts of some groups.
    pub(crate) groups: Option<Groups>,
    pub(crate) gating: Gating,
    /// Number of first layers with fixed experts per vocabulary token.
    pub(crate) by_token: u64,
    /// True if a token's weights are divided by their sum.
    pub(crate) normalised: bool,
    pub(crate) scale: Option<f32>,
    pub(crate) of_groups: Option<GroupExperts>,
}

/// Group experts, one per group of `size` experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GroupExperts {
    pub(crate) count: Size,
    pub(crate) size: u64,
    /// Group experts that a token uses.
    pub(crate) used: u64,
    pub(crate) width: FfnWidth,
    pub(crate) scale: f32,
}

/// Number of expert groups of equal size, and number that a token uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    pub(crate) count: u64,
    pub(crate) used: u64,
}

impl ExpertHParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        form: &ExpertForm,
        n_layer: usize,
    ) -> Result<ExpertHParams, ArchError> {
        const COUNT: &str = "expert_count";
        const USED: &str = "expert_used_count";
        let count = keys.require_count(COUNT)?;
        let used = keys.require_count(USED)?;
        if used > count {
            return Err(ArchError::Contradiction {
                key: keys.name(USED),
                found: used.to_string(),
                with: format!("{} = {count}", keys.name(COUNT)),
                expected: format!("at most {count}"),
            });
        }
        Ok(ExpertHParams {
            count,
            used,
            latent: match form.latent {
                None => None,
                Some(latent) if latent.required => Some(keys.require_size(latent.length)?),
                Some(latent) => match keys.count(latent.length)? {
                    None => None,
                    Some(n) => Some(Size::try_new(n, latent.length)?),
                },
            },
            groups: match form.selected_by {
                SelectedBy::Weights => groups(keys, count, used)?,
                SelectedBy::Logits => None,
            },
            gating: gating(keys, form)?,
            by_token: match form.by_token {
                KeyUse::Ignored => 0,
                KeyUse::Read | KeyUse::ReadOr(_) => keys.count("hash_layer_count")?.unwrap_or(0),
            },
            normalised: match form.weights {
                ExpertWeights::AsGiven => false,
                ExpertWeights::SumToOne => true,
                ExpertWeights::ByKey => keys.flag("expert_weights_norm")?.unwrap_or(false),
            },
            scale: match form.weights_scale {
                KeyUse::Ignored => None,
                KeyUse::Read | KeyUse::ReadOr(_) => keys
                    .positive("expert_weights_scale")?
                    .filter(|&scale| scale != 1.0),
            },
            of_groups: match form.groups {
                KeyUse::Ignored => None,
                KeyUse::Read | KeyUse::ReadOr(_) => {
                    Some(GroupExperts::read(keys, count, used, n_layer)?)
                }
            },
        })
    }
}

impl GroupExperts {
    /// Reads the sizes for `experts` experts with `used_experts` per token. The default width is a head's size.
    fn read(
        keys: &Keys<'_>,
        experts: u64,
        used_experts: u64,
        n_layer: usize,
    ) -> Result<GroupExperts, ArchError> {
        const SIZE: &str = "experts_per_group";
        const WIDTH: &str = "expert_chunk_feed_forward_length";
        let size = keys.require_count(SIZE)?;
        keys.require_divisor(SIZE, size, "expert_count", experts)?;
        let count = Size::try_new(experts / size, "expert_count / experts_per_group")?;
        let width = match keys.count(WIDTH)? {
            Some(n) => n,
            None => {
                let n_head = keys.require_count_per_layer("attention.head_count", n_layer)?;
                let n_head = n_head.first().copied().unwrap_or(1);
                let n_embd = keys.require_count("embedding_length")?;
                heads::elements(keys, HeadSizes::Same, Reach::Full, n_embd, n_head)?[0].dk
            }
        };
        Ok(GroupExperts {
            count,
            size,
            used: used_experts.min(count.n),
            width: FfnWidth {
                n: Size::try_new(width, WIDTH)?,
                gate_up: Size::product(2, width, "2 × expert_chunk_feed_forward_length")?,
            },
            scale: keys.require_above_0("expert_group_scale")?,
        })
    }
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
        return Err(contradiction(
            COUNT,
            count,
            with,
            "a divisor of that number",
        ));
    }
    let used = keys.require_count(USED)?;
    if used > count {
        let with = format!("{} = {count}", keys.name(COUNT));
        return Err(contradiction(USED, used, with, &format!("at most {count}")));
    }
    if used * (experts / count) < used_experts {
        let with = format!("{} = {used_experts}", keys.name("expert_used_count"));
        return Err(contradiction(
            USED,
            used,
            with,
            "enough groups for these experts",
        ));
    }
    Ok((used < count).then_some(Groups { count, used }))
}

fn gating(keys: &Keys<'_>, form: &ExpertForm) -> Result<Gating, ArchError> {
    const KEY: &str = "expert_gating_func";
    let given = match form.gating_key {
        KeyUse::Ignored => None,
        KeyUse::Read | KeyUse::ReadOr(_) => keys.count(KEY)?,
    };
    match given {
        None => Ok(form.gating),
        Some(1) => Ok(Gating::Softmax),
        Some(2) => Ok(Gating::Sigmoid),
        Some(3) => Ok(Gating::SoftmaxOfSelected),
        Some(4) => Ok(Gating::RootSoftplus),
        Some(other) => Err(keys.out_of_range(
            KEY,
            other,
            "1 (softmax), 2 (sigmoid), 3 (softmax of the selected) or 4 (root of softplus)",
        )),
    }
}
