//! The sizes of Mamba-2.

use super::conv::{self, ConvHParams, TapsShape};
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

/// The sizes of Mamba-2.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SsmHParams {
    pub(crate) conv: ConvHParams,
    /// Width of all heads together.
    pub(crate) inner: Size,
    pub(crate) heads: Size,
    /// Elements of a head.
    pub(crate) head_dim: u64,
    /// Groups of heads that share their input and output projections (B and C).
    pub(crate) groups: Size,
    pub(crate) d_state: u64,
    /// Width of all groups' B, and of their C.
    pub(crate) group_width: Size,
    /// Rows of the input projection: the gate, the input of the convolution, and the time steps.
    pub(crate) projected: Size,
    /// Width of the heads of a group, which are normalised together.
    pub(crate) normed: Size,
}

const INNER: &str = "ssm.inner_size";
const HEADS: &str = "ssm.time_step_rank";
const GROUPS: &str = "ssm.group_count";
const STATE: &str = "ssm.state_size";

impl SsmHParams {
    /// Reads the sizes.
    pub(super) fn read(keys: &Keys<'_>) -> Result<SsmHParams, ArchError> {
        let count = |from| keys.require_size(from);
        let (inner, heads, groups) = (count(INNER)?, count(HEADS)?, count(GROUPS)?);
        let d_state = count(STATE)?;
        keys.require_divisor(HEADS, heads.n, INNER, inner.n)?;
        keys.require_divisor(GROUPS, groups.n, HEADS, heads.n)?;
        let group_width = Size::product(groups.n, d_state.n, "ssm.group_count × ssm.state_size")?;
        Size::product(inner.n, d_state.n, "ssm.inner_size × ssm.state_size")?;
        // Sums of a few sizes do not overflow.
        let convolved = inner.n + 2 * group_width.n;
        Ok(SsmHParams {
            conv: ConvHParams {
                tensor: "ssm_conv1d",
                taps: conv::taps(keys, "ssm.conv_kernel")?,
                channels: Size::checked(
                    convolved,
                    "ssm.inner_size + 2 × ssm.group_count × ssm.state_size",
                )?,
                bias: Presence::Optional,
                shape: TapsShape::Matrix,
                state: conv::ONLY_STATE,
            },
            head_dim: inner.n / heads.n,
            d_state: d_state.n,
            projected: Size::checked(
                inner.n + convolved + heads.n,
                "2 × ssm.inner_size + 2 × ssm.group_count × ssm.state_size + ssm.time_step_rank",
            )?,
            normed: Size::checked(inner.n / groups.n, "ssm.inner_size / ssm.group_count")?,
            inner,
            heads,
            groups,
            group_width,
        })
    }
}
