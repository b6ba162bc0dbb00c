//! Finds sums over devices that are bit-identical to one device, and sums that may differ.
//!
//! A split does not change bits if every device computes its own part of the results: output rows, heads or experts.
//! [`chunk_start`](tpc_ir::program::chunk_start) gives the order of sums over a split axis. Devices keep this order if
//! each holds a [`subtree`] and the collective adds the products directly. A sum of rows also keeps its bits if one
//! device has the row and all others have zeros.

use std::collections::BTreeMap;

use tpc_ir::op::{Collective, OpCategory};
use tpc_ir::program::{Tensors, subtree};
use tpc_ir::{Graph, InstData, Interval, Op, Value};

/// The maximum number of weights read per token for which tpc's CPU executor by default gives a product two-term
/// activations.
pub const TWO_TERM_WEIGHTS: u64 = 1 << 18;

/// The reason why a sum may differ in its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceCause {
    /// The number of devices is not 2, 4 or 8.
    DeviceCount,
    /// The devices' shares are not equal subtrees of the sum over the whole axis.
    UnequalShares,
    /// Each device adds two sums, one per term of the activations.
    TwoTerms,
    /// Devices add values computed from the products, later than one device does.
    DeferredSum,
}

/// Sums that may differ in their bits for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferingSums {
    /// The number of sums.
    pub sums: usize,
    /// The result of the first sum.
    pub first: Value,
}

/// Finds sums over devices that may differ in their bits from one device. Products that read at most `two_terms`
/// quantised weights per token use two-term activations.
pub fn find_differing_sums(
    programs: &Graph,
    two_terms: u64,
) -> BTreeMap<DifferenceCause, DifferingSums> {
    let mut out: BTreeMap<DifferenceCause, DifferingSums> = BTreeMap::new();
    let tensors = Tensors::of(programs);
    let small = |v: Value| {
        let product = moved_inst(programs, v);
        tensors.reads_at_most(programs, (&product.op, &product.operands), two_terms)
    };
    for (_, data) in programs.insts() {
        let sum = matches!(
            data.op.category(),
            OpCategory::Collective(Collective::AllReduce | Collective::ReduceScatter)
        );
        let (true, Some(&first)) = (sum, data.results.first()) else {
            continue;
        };
        if let Some(why) = difference_cause(programs, &data.operands, &small) {
            let of = out.entry(why).or_insert(DifferingSums { sums: 0, first });
            of.sums += 1;
        }
    }
    out
}

/// Returns the reason, if any, why the sum of these values, one per device, may differ in its bits.
fn difference_cause(
    programs: &Graph,
    parts: &[Value],
    small: &dyn Fn(Value) -> bool,
) -> Option<DifferenceCause> {
    let op = |&v: &Value| &programs.inst(programs.value(v).def.0).op;
    // True if one device has the row and all other devices have zeros.
    let windowed = |op: &Op| match op {
        Op::GetRows(op) => op.window.is_some(),
        Op::MulMatId(op) => op.window.is_some(),
        _ => false,
    };
    if parts.iter().map(op).all(windowed) {
        return None;
    }
    let shares: Option<Vec<Interval>> = parts.iter().map(|&v| product_share(programs, v)).collect();
    let Some(shares) = shares else {
        return Some(DifferenceCause::DeferredSum);
    };
    let k = shares.iter().map(|i| i.end()).max().unwrap_or(0);
    let devices = shares.len() as u64;
    if subtree(k, 0, devices).is_none() {
        return Some(DifferenceCause::DeviceCount);
    }
    let is_subtree =
        |(rank, i): (u64, &Interval)| subtree(k, rank, devices) == Some((i.start, i.end()));
    // Empty shares would be subtrees of several ranges.
    if k == 0 || !(0..).zip(&shares).all(is_subtree) {
        return Some(DifferenceCause::UnequalShares);
    }
    let small = parts.first().is_some_and(|&v| small(v));
    small.then_some(DifferenceCause::TwoTerms)
}

fn moved_inst(programs: &Graph, mut v: Value) -> &InstData {
    loop {
        let data = programs.inst(programs.value(v).def.0);
        match data.operands.first() {
            Some(&of) if data.op.moves_elements() => v = of,
            _ => return data,
        }
    }
}

/// Returns the interval of K that a product with a weight sums over; an empty interval if the sum has several
/// intervals. `None` for other values.
fn product_share(programs: &Graph, v: Value) -> Option<Interval> {
    let product = moved_inst(programs, v);
    let (Op::MulMat(_) | Op::MulMatId(_)) = &product.op else {
        return None;
    };
    let Op::Weight(weight) = programs.def_op(*product.operands.first()?) else {
        return None;
    };
    match weight.parts.as_ref()?.first()?.as_slice() {
        [interval] => Some(*interval),
        _ => Some(Interval { start: 0, len: 0 }),
    }
}
