//! The sizes of the gated delta rule.

use super::conv::{self, ConvHParams, TapsShape};
use crate::description::{DeltaNetForm, Presence};
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

/// The sizes of the gated delta rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeltaNetHParams {
    pub(crate) form: DeltaNetForm,
    pub(crate) conv: ConvHParams,
    /// Elements of a query or key head.
    pub(crate) key_dim: u64,
    /// Number of query heads, and of key heads.
    pub(crate) key_heads: u64,
    /// Elements of a value head.
    pub(crate) value_dim: Size,
    pub(crate) value_heads: Size,
    /// Width of all keys together.
    pub(crate) key_width: u64,
    /// Width of all values together.
    pub(crate) value_width: Size,
    /// Rows of the fused projection: queries, keys, values and the gate of the output.
    pub(crate) with_gate: Size,
    /// Rows of the fused projection to the decays and corrections of all value heads.
    pub(crate) both_gates: Size,
}

const INNER: &str = "ssm.inner_size";
const HEADS: &str = "ssm.time_step_rank";
const KEY_HEADS: &str = "ssm.group_count";
const KEY_DIM: &str = "ssm.state_size";

impl DeltaNetHParams {
    /// Reads the sizes.
    pub(super) fn read(keys: &Keys<'_>, form: DeltaNetForm) -> Result<DeltaNetHParams, ArchError> {
        let count = |from| keys.require_size(from);
        let (inner, heads) = (count(INNER)?, count(HEADS)?);
        let (key_heads, key_dim) = (count(KEY_HEADS)?, count(KEY_DIM)?);
        keys.require_divisor(HEADS, heads.n, INNER, inner.n)?;
        keys.require_divisor(KEY_HEADS, key_heads.n, HEADS, heads.n)?;
        let key_width =
            Size::product(key_heads.n, key_dim.n, "ssm.group_count × ssm.state_size")?.n;
        Size::product(inner.n, key_dim.n, "ssm.inner_size × ssm.state_size")?;
        // Sums of a few sizes do not overflow.
        let convolved = inner.n + 2 * key_width;
        let value_dim = Size::checked(inner.n / heads.n, "ssm.inner_size / ssm.time_step_rank")?;
        Ok(DeltaNetHParams {
            form,
            conv: ConvHParams {
                tensor: "ssm_conv1d",
                taps: conv::taps(keys, "ssm.conv_kernel")?,
                channels: Size::checked(
                    convolved,
                    "ssm.inner_size + 2 × ssm.group_count × ssm.state_size",
                )?,
                bias: Presence::Never,
                shape: TapsShape::Matrix,
                state: conv::ONLY_STATE,
            },
            key_dim: key_dim.n,
            key_heads: key_heads.n,
            value_dim,
            value_heads: heads,
            key_width,
            value_width: inner,
            with_gate: Size::checked(
                convolved + inner.n,
                "2 × ssm.inner_size + 2 × ssm.group_count × ssm.state_size",
            )?,
            both_gates: Size::product(2, heads.n, "2 × ssm.time_step_rank")?,
        })
    }
}
