//! Sizes that Mamba-2 and the gated delta rule read from the same keys: heads in groups with shared projections.

use super::conv::{self, ConvHParams, TapsShape};
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

const INNER: &str = "ssm.inner_size";
const HEADS: &str = "ssm.time_step_rank";
const GROUPS: &str = "ssm.group_count";
const STATE: &str = "ssm.state_size";

pub(super) struct GroupedSizes {
    pub(super) inner: Size,
    pub(super) heads: Size,
    pub(super) groups: Size,
    /// Size of a group's projection.
    pub(super) state: Size,
    /// Width of one projection of all groups.
    pub(super) group_width: Size,
    /// Width of the convolution: all heads, and two projections of all groups.
    pub(super) convolved: u64,
}

impl GroupedSizes {
    pub(super) fn read(keys: &Keys<'_>) -> Result<GroupedSizes, ArchError> {
        let count = |from| keys.require_size(from);
        let (inner, heads) = (count(INNER)?, count(HEADS)?);
        let (groups, state) = (count(GROUPS)?, count(STATE)?);
        keys.require_divisor(HEADS, heads.n, INNER, inner.n)?;
        keys.require_divisor(GROUPS, groups.n, HEADS, heads.n)?;
        let group_width = Size::product(groups.n, state.n, "ssm.group_count × ssm.state_size")?;
        Size::product(inner.n, state.n, "ssm.inner_size × ssm.state_size")?;
        Ok(GroupedSizes {
            inner,
            heads,
            groups,
            state,
            group_width,
            convolved: inner.n + 2 * group_width.n,
        })
    }

    pub(super) fn conv(&self, keys: &Keys<'_>, bias: Presence) -> Result<ConvHParams, ArchError> {
        Ok(ConvHParams {
            tensor: "ssm_conv1d",
            taps: conv::taps(keys, "ssm.conv_kernel")?,
            channels: Size::try_new(
                self.convolved,
                "ssm.inner_size + 2 × ssm.group_count × ssm.state_size",
            )?,
            bias,
            shape: TapsShape::Matrix,
            state: conv::ONLY_STATE,
        })
    }
}
