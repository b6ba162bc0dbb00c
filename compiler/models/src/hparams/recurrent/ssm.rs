use super::conv::ConvHParams;
use super::grouped::GroupedSizes;
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SsmHParams {
    pub(crate) conv: ConvHParams,
    pub(crate) inner: Size,
    pub(crate) heads: Size,
    pub(crate) head_dim: u64,
    /// Number of head groups; heads of a group share `B` and `C`.
    pub(crate) groups: Size,
    pub(crate) d_state: u64,
    /// Width of all groups' `B`, and of their `C`.
    pub(crate) group_width: Size,
    /// Rows of the input projection: gate, convolution input, time steps.
    pub(crate) projected: Size,
    /// Width of a group's heads, which are normalised together.
    pub(crate) normed: Size,
}

impl SsmHParams {
    pub(super) fn read(keys: &Keys<'_>) -> Result<SsmHParams, ArchError> {
        let sizes = GroupedSizes::read(keys)?;
        let (inner, heads, groups) = (sizes.inner, sizes.heads, sizes.groups);
        Ok(SsmHParams {
            conv: sizes.conv(keys, Presence::Optional)?,
            head_dim: inner.n / heads.n,
            d_state: sizes.state.n,
            projected: Size::try_new(
                inner.n + sizes.convolved + heads.n,
                "2 × ssm.inner_size + 2 × ssm.group_count × ssm.state_size + ssm.time_step_rank",
            )?,
            normed: Size::try_new(inner.n / groups.n, "ssm.inner_size / ssm.group_count")?,
            inner,
            heads,
            groups,
            group_width: sizes.group_width,
        })
    }
}
