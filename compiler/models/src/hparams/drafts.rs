use std::ops::Range;

use super::keys::Keys;
use crate::description::Arch;
use crate::error::ArchError;
use crate::options::Drafting;

/// Number of draft blocks, the last blocks of `block_count`.
const DRAFTS: &str = "nextn_predict_layers";

/// Returns the number of layers that logits depend on. `n_block` includes draft blocks.
pub(super) fn main_layers(keys: &Keys<'_>, n_block: usize) -> Result<usize, ArchError> {
    let Some(n) = keys.count(DRAFTS)? else {
        return Ok(n_block);
    };
    let main = usize::try_from(n).ok().and_then(|n| n_block.checked_sub(n));
    main.filter(|&main| main > 0)
        .ok_or_else(|| ArchError::Contradiction {
            key: keys.name(DRAFTS),
            found: n.to_string(),
            with: format!("{} = {n_block}", keys.name("block_count")),
            expected: "a smaller number".into(),
        })
}

pub(super) fn lowered_blocks(
    keys: &Keys<'_>,
    arch: &Arch,
    drafting: Drafting,
    blocks: Range<usize>,
) -> Result<Range<usize>, ArchError> {
    let reason = match drafting {
        Drafting::None => return Ok(blocks.start..blocks.start),
        Drafting::Mtp if arch.drafts.is_none() => {
            "the draft blocks of this architecture are not described".to_owned()
        }
        Drafting::Mtp if blocks.is_empty() => {
            format!("expected {} of at least 1", keys.name(DRAFTS))
        }
        Drafting::Mtp => return Ok(blocks),
    };
    let arch = arch.name;
    Err(ArchError::NoDrafts { arch, reason })
}
