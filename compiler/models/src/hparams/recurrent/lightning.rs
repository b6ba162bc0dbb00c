use super::Heads;
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LightningHParams {
    pub(crate) heads: u64,
    pub(crate) head_dim: u64,
    pub(crate) width: Size,
    pub(crate) projected: Size,
}

impl LightningHParams {
    pub(super) fn read(keys: &Keys<'_>, heads: Heads) -> Result<LightningHParams, ArchError> {
        const WIDTH: &str = "attention.head_count × attention.key_length";
        keys.require_in_layer(0, heads.count, "attention.head_count")?;
        let width = Size::product(heads.count, heads.dim, WIDTH)?;
        Size::product(
            width.n,
            heads.dim,
            "attention.head_count × attention.key_length²",
        )?;
        Ok(LightningHParams {
            heads: heads.count,
            head_dim: heads.dim,
            width,
            projected: Size::product(
                3,
                width.n,
                "3 × attention.head_count × attention.key_length",
            )?,
        })
    }
}
