use super::rule::Slot;
use crate::cells::{CELL_BLOCK, CellParts};
use crate::dims::Dim;
use crate::interval::Interval;
use crate::sharding::{AxisTree, ClassData, Sharding};
use crate::types::TensorType;

/// A tensor of an instruction with its global type and sharding.
#[derive(Clone, Copy, Debug)]
pub struct ShardedTensor<'a> {
    /// The type over all devices.
    pub ty: &'a TensorType,
    /// The division among devices.
    pub sharding: &'a Sharding,
}

/// One instruction of a group, as seen by one device.
#[derive(Clone, Copy, Debug)]
pub struct LocalCtx<'a> {
    /// The operands, over all devices.
    pub operands: &'a [ShardedTensor<'a>],
    /// The results, over all devices.
    pub results: &'a [ShardedTensor<'a>],
    /// The graph's classes.
    pub classes: &'a [ClassData],
    /// The device's rank in its group.
    pub rank: usize,
}

impl<'a> LocalCtx<'a> {
    /// Returns the tensor in `slot`.
    pub fn tensor(&self, slot: Slot) -> ShardedTensor<'a> {
        match slot {
            Slot::Operand(i) => self.operands[i],
            Slot::Result(i) => self.results[i],
        }
    }

    /// Returns the type of the device's part.
    pub fn local_type(&self, slot: Slot) -> Option<TensorType> {
        let t = self.tensor(slot);
        t.sharding.local_type(t.ty, self.classes, self.rank)
    }

    /// Returns the device's global indices along an axis; `None` if the size is symbolic.
    pub fn intervals(&self, slot: Slot, axis: usize) -> Option<Vec<Interval>> {
        let t = self.tensor(slot);
        t.sharding
            .intervals(axis, &t.ty.dims[axis], self.classes, self.rank)
    }

    /// Returns the number of the device's indices below `bound` along an axis.
    pub fn local_index(&self, slot: Slot, axis: usize, bound: &Dim) -> Option<Dim> {
        let t = self.tensor(slot);
        if t.sharding.axes[axis].is_none() || bound.is_zero() {
            return Some(bound.clone());
        }
        let bound = bound.as_const()?;
        let held = self.intervals(slot, axis)?;
        Some(Dim::constant(
            held.iter()
                .map(|r| r.end().min(bound).saturating_sub(r.start))
                .sum(),
        ))
    }

    /// Returns the device's window of a split axis: the interval of global indices that it owns as primary owner and
    /// serves to ops that select along the axis.
    ///
    /// Returns `Some(None)` if the axis is whole; `None` if the indices are not one interval.
    pub fn window(&self, slot: Slot, axis: usize) -> Option<Option<Interval>> {
        let Some(tree) = &self.tensor(slot).sharding.axes[axis] else {
            return Some(None);
        };
        match tree.owned_runs(self.classes, self.rank)?.as_slice() {
            [] => Some(Some(Interval { start: 0, len: 0 })),
            [one] => Some(Some(*one)),
            _ => None,
        }
    }

    /// Returns the parts of a cache's cells that the device stores, given the parts over all devices; `None` if the
    /// axis has another division or if the device's range is empty.
    pub fn cell_parts(&self, slot: Slot, axis: usize, all: CellParts) -> Option<CellParts> {
        let Some(tree) = &self.tensor(slot).sharding.axes[axis] else {
            return Some(all);
        };
        let AxisTree::Product(factors) = &**tree else {
            return None;
        };
        // With one round of blocks, the parts are the most major factor.
        let (parts, block) = match factors.as_slice() {
            [AxisTree::Leaf { split: None, .. }, parts, block] | [parts, block] => (parts, block),
            _ => return None,
        };
        let AxisTree::Leaf { size, split } = parts else {
            return None;
        };
        let whole = *size == all.count && *block == AxisTree::whole((CELL_BLOCK as u64).into());
        let class = split.filter(|c| whole && c.div == 1)?.class;
        let held = self.classes.get(class.index())?.range(self.rank, 1)?;
        (held.len > 0).then_some(CellParts {
            first: all.first + held.start,
            count: held.len,
            of: all.of,
        })
    }
}
