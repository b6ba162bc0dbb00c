//! The order of sums: devices add either the products, as one device does, or values computed from products.
//!
//! A *late* sum comes after a residual or a factor. It is equally correct, but rounds differently than on one device.

use tpc_ir::op::OpCategory;
use tpc_ir::program::{SumOrder, subtree};
use tpc_ir::{Graph, Op, Unreduced};

use super::analysis::ShardedType;

const WORTH: f64 = 0.03;

/// True if a search for the order of one device is useful. For [`SumOrder::Auto`], the numbers of devices must allow
/// this order.
pub(super) fn prefers_one_device(order: SumOrder, graph: &Graph) -> bool {
    let halves = |n: usize| subtree(u64::from(u32::MAX), 0, n as u64).is_some();
    match order {
        SumOrder::Auto => graph.groups.iter().all(|g| halves(g.devices.len())),
        SumOrder::OneDevice => true,
        SumOrder::Cheapest => false,
    }
}

/// True if the graph in the order of one device, at this price, is preferred to the cheapest graph.
pub(super) fn accepts_one_device(order: SumOrder, of_one_us: f64, cheapest_us: f64) -> bool {
    match order {
        SumOrder::Auto => of_one_us <= cheapest_us * (1.0 + WORTH),
        SumOrder::OneDevice => true,
        SumOrder::Cheapest => false,
    }
}

/// True if an op with this result computes with an unreduced sum instead of only moving it.
pub(super) fn is_late(op: &Op, result: &ShardedType) -> bool {
    let product = op.category() == OpCategory::Product;
    let moves = op.moves_elements() || op.is_transfer();
    result.sharding.unreduced == Unreduced::Partial && !product && !moves
}
