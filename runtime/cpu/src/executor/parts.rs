//! The part of K that each weight holds. If devices hold [subtrees](tpc_ir::program::subtree) of a sum, the total has
//! the bits of one device's sum.

use tpc_ir::op::{Op, Weight};
use tpc_ir::program::{Program, Tensors};
use tpc_ir::{DType, Interval};

use super::launches::{Action, Launches};
use crate::product::{BLOCK, Format, Part};

/// Returns a weight's part of K if the part's sum is one subtree. `k` is the row length in elements.
fn share(tensors: &Tensors, op: &Weight, dtype: DType, k: usize) -> Option<Part> {
    let [Interval { start, .. }] = op.parts.as_ref()?.first()?.as_slice() else {
        return None;
    };
    let whole = usize::try_from(tensors.dims(&op.tensor)?[0]).ok()?;
    let start = usize::try_from(*start).ok()?;
    let part = Part::new(whole, start..start.checked_add(k)?).ok()?;
    let is_stored = start.is_multiple_of(dtype.granule().max(BLOCK as u64) as usize);
    (is_stored && part.ends_at_chunks() && part.roots() == 1).then(|| part.plain())
}

impl Launches {
    /// Gives products with a subtree of K the summation order of K.
    pub(super) fn share_sums(&mut self, program: &Program, tensors: &Tensors) {
        for launch in &mut self.prepared {
            let (Action::Product(weight) | Action::Experts(weight, _)) = &mut launch.action else {
                continue;
            };
            let Op::Weight(op) = program.graph.def_op(self.slots[launch.slots]) else {
                continue;
            };
            let (dtype, rows) = (weight.format.dtype(), weight.format.rows());
            let part = share(tensors, op, dtype, weight.format.part().k());
            let format = part.and_then(|part| Format::new(dtype, rows, part).ok());
            // The format can change only if the panel size stays.
            if let Some(format) = format.filter(|f| f.panel_bytes() == weight.format.panel_bytes())
            {
                weight.format = format;
            }
        }
    }
}
