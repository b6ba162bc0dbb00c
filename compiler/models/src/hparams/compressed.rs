use super::heads::HeadElements;
use super::keys::Keys;
use crate::description::CompressedForm;
use crate::error::ArchError;
use crate::size::Size;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CompressedHParams {
    pub(crate) form: CompressedForm,
    /// Size of the latent vector of queries.
    pub(crate) q_rank: Size,
    pub(crate) row: Size,
    /// Number of head groups, each with its own output projection.
    pub(crate) groups: Size,
    /// Size of a group's projection.
    pub(crate) out_rank: Size,
    /// Size of all groups' projections together.
    pub(crate) out_width: Size,
    /// Tokens per block of each layer; 0 without blocks.
    blocks: Vec<u64>,
}

impl CompressedHParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        form: CompressedForm,
        heads: HeadElements,
        n_layer: usize,
    ) -> Result<CompressedHParams, ArchError> {
        const RATIOS: &str = "attention.compress_ratios";
        const VALUES: &str = "attention.value_length";
        if heads.dk != heads.dv {
            return Err(ArchError::Contradiction {
                key: keys.name(VALUES),
                found: heads.dv.to_string(),
                with: format!("{} = {}", keys.name("attention.key_length"), heads.dk),
                expected: "the same number".into(),
            });
        }
        let blocks = keys.require_counts_from_first(RATIOS, n_layer)?;
        let known = [0, form.indexed, form.plain];
        if let Some(other) = blocks.iter().find(|n| !known.contains(n)) {
            let expected = format!("0, {} or {}", form.indexed, form.plain);
            return Err(keys.out_of_range(RATIOS, other, expected));
        }
        let groups = keys.require_size("attention.output_group_count")?;
        let out_rank = keys.require_size("attention.output_lora_rank")?;
        Ok(CompressedHParams {
            form,
            q_rank: keys.require_size("attention.q_lora_rank")?,
            row: Size::try_new(heads.dk, "attention.key_length")?,
            groups,
            out_rank,
            out_width: Size::product(
                groups.n,
                out_rank.n,
                "attention.output_group_count × attention.output_lora_rank",
            )?,
            blocks,
        })
    }

    /// Returns the number of elements of a group. `n_head` counts all heads.
    pub(crate) fn group_width(&self, arch: &str, n_head: u64) -> Result<Size, ArchError> {
        if !n_head.is_multiple_of(self.groups.n) {
            return Err(ArchError::Contradiction {
                key: format!("{arch}.{}", self.groups.from),
                found: self.groups.n.to_string(),
                with: format!("{arch}.attention.head_count = {n_head}"),
                expected: "a divisor of that number".into(),
            });
        }
        Size::product(
            n_head / self.groups.n,
            self.row.n,
            "attention.head_count / attention.output_group_count × attention.key_length",
        )
    }

    /// Returns a layer's tokens per block, if it has blocks.
    pub(crate) fn block(&self, layer: u32) -> Option<u64> {
        let tokens = self.blocks.get(layer as usize).copied();
        tokens.filter(|&n| n > 0)
    }
}
