//! The order of sums: whether devices add what products give, as one device does, or what is computed of that.
//!
//! A sum that comes late, after a residual or a factor, is as true, but rounds otherwise than on one device.

use tpc_ir::op::OpCategory;
use tpc_ir::program::{SumOrder, subtree};
use tpc_ir::{Graph, Op, Unreduced};

use super::analysis::ShardedType;

/// The part of the time that the order of one device may cost where nobody says it.
const WORTH: f64 = 0.03;

/// True if the order of one device is worth looking for: where nobody says it, not where the numbers of devices rule it out.
pub(super) fn prefers_one_device(order: SumOrder, graph: &Graph) -> bool {
    let halves = |n: usize| subtree(u64::from(u32::MAX), 0, n as u64).is_some();
    match order {
        SumOrder::Auto => graph.groups.iter().all(|g| halves(g.devices.len())),
        SumOrder::OneDevice => true,
        SumOrder::Cheapest => false,
    }
}

/// True if the order of one device, at this price, is preferred to the cheapest graph.
pub(super) fn accepts_one_device(order: SumOrder, of_one_us: f64, cheapest_us: f64) -> bool {
    match order {
        SumOrder::Auto => of_one_us <= cheapest_us * (1.0 + WORTH),
        SumOrder::OneDevice => true,
        SumOrder::Cheapest => false,
    }
}

/// True if an op with this result computes with what is still to be summed, other than moving it.
pub(super) fn is_late(op: &Op, result: &ShardedType) -> bool {
    let product = op.category() == OpCategory::Product;
    let moves = op.moves_elements() || op.is_transfer();
    result.sharding.unreduced == Unreduced::Partial && !product && !moves
}
