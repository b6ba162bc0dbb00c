use super::conv::ConvHParams;
use super::grouped::GroupedSizes;
use crate::description::{DeltaNetForm, Presence};
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeltaNetHParams {
    pub(crate) form: DeltaNetForm,
    pub(crate) conv: ConvHParams,
    pub(crate) key_dim: u64,
    /// Number of query heads and of key heads.
    pub(crate) key_heads: u64,
    pub(crate) value_dim: Size,
    pub(crate) value_heads: Size,
    pub(crate) key_width: u64,
    pub(crate) value_width: Size,
    /// Rows of the fused projection: queries, keys, values, output gate.
    pub(crate) with_gate: Size,
    /// Rows of the fused projection to decays and corrections.
    pub(crate) both_gates: Size,
}

impl DeltaNetHParams {
    pub(super) fn read(keys: &Keys<'_>, form: DeltaNetForm) -> Result<DeltaNetHParams, ArchError> {
        let sizes = GroupedSizes::read(keys)?;
        let (inner, heads) = (sizes.inner, sizes.heads);
        let value_dim = Size::try_new(inner.n / heads.n, "ssm.inner_size / ssm.time_step_rank")?;
        Ok(DeltaNetHParams {
            form,
            conv: sizes.conv(keys, Presence::Absent)?,
            key_dim: sizes.state.n,
            key_heads: sizes.groups.n,
            value_dim,
            value_heads: heads,
            key_width: sizes.group_width.n,
            value_width: inner,
            with_gate: Size::try_new(
                sizes.convolved + inner.n,
                "2 × ssm.inner_size + 2 × ssm.group_count × ssm.state_size",
            )?,
            both_gates: Size::product(2, heads.n, "2 × ssm.time_step_rank")?,
        })
    }
}
