//! Which part of K each weight of a program holds.

use std::collections::BTreeMap;

use tpc_ir::op::{Op, Weight};
use tpc_ir::program::Program;
use tpc_ir::{DType, Interval};

use crate::product::{BLOCK, Part};

/// The K of every tensor that devices hold parts of: the end of the last part.
pub(super) struct Parts<'p> {
    whole: BTreeMap<&'p str, u64>,
}

/// The intervals of K that are stored; `None` where all of it is.
fn intervals(op: &Weight) -> Option<&[Interval]> {
    Some(op.parts.as_ref()?.first()?)
}

impl<'p> Parts<'p> {
    pub(super) fn of(program: &'p Program) -> Parts<'p> {
        let mut whole = BTreeMap::new();
        for (_, data) in program.graph.insts() {
            let Op::Weight(op) = &data.op else { continue };
            let end = intervals(op).and_then(|i| Some(i.last()?.end));
            let most = whole.entry(op.tensor.as_str()).or_insert(0);
            *most = end.unwrap_or(0).max(*most);
        }
        Parts { whole }
    }

    /// The part of K that a weight of `k` elements per row holds, as a product sums it: as its share of the sum over all of
    /// K where the share is one subtree, else as a sum of its own.
    pub(super) fn part(&self, op: &Weight, dtype: DType, k: usize) -> Part {
        self.share(op, dtype, k)
            .unwrap_or_else(|| Part::whole(k))
            .plain()
    }

    fn share(&self, op: &Weight, dtype: DType, k: usize) -> Option<Part> {
        let [interval] = intervals(op)? else {
            return None;
        };
        let whole = usize::try_from(*self.whole.get(op.tensor.as_str())?).ok()?;
        let start = usize::try_from(interval.start).ok()?;
        let part = Part::new(whole, start..start.checked_add(k)?).ok()?;
        // Blocks are stored whole, from the first of the part.
        let is_whole = start.is_multiple_of(dtype.block_len().max(BLOCK as u64) as usize);
        (is_whole && part.ends_at_chunks() && part.roots() == 1).then_some(part)
    }
}
