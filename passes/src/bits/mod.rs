//! Proves which sums of the devices' programs keep the bits of one device.
//!
//! The analysis reads only the final programs, not the plan. It gives every value a state and follows parts of sums from
//! the products to the collectives that add them. A sum keeps its bits if each device holds a [`subtree`] of one
//! device's sum and the collective adds the subtrees in order, or if one device has the row and all others have zeros.
//! Splits of rows, heads or experts divide no sum.

mod state;

use std::collections::BTreeMap;

use tpc_ir::op::{Collective, OpCategory};
use tpc_ir::program::{Company, Tensors, subtree};
use tpc_ir::{Graph, Inst, InstData, Interval, Op, Output, Value};

use state::{Part, SumState};

/// The reason why a sum may differ in its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceCause {
    /// The number of devices is not 2, 4 or 8.
    DeviceCount,
    /// The devices' shares are not equal subtrees of the sum over the whole axis, in order.
    UnequalShares,
    /// Each device adds two sums, one per term of the activations.
    TwoTerms,
    /// Devices add values computed from the products, later than one device does.
    DeferredSum,
    /// Devices add statistics of their parts of a norm.
    SplitNorm,
    /// The executor adds a part of a product in another order than the whole product.
    ProductOrder,
    /// Devices attend to parts of the cells, and the parts are joined.
    SplitCells,
}

/// A sum that may differ in its bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The reason.
    pub cause: DifferenceCause,
    /// The collective that adds the parts, or the op that makes an output of parts.
    pub inst: Inst,
    /// The first result.
    pub value: Value,
    /// The weight of the first product whose parts are added, if any.
    pub tensor: Option<String>,
}

/// Sums that may differ in their bits for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferingSums {
    /// The number of sums.
    pub sums: usize,
    /// The result of the first sum.
    pub first: Value,
}

/// Counts the [differences](find_differences) by reason.
pub fn find_differing_sums(
    programs: &Graph,
    company: Company,
) -> BTreeMap<DifferenceCause, DifferingSums> {
    let mut out: BTreeMap<DifferenceCause, DifferingSums> = BTreeMap::new();
    for found in find_differences(programs, company) {
        let first = found.value;
        let of = out
            .entry(found.cause)
            .or_insert(DifferingSums { sums: 0, first });
        of.sums += 1;
    }
    out
}

/// Lists the sums over devices that may differ in their bits from one device, in program order, on an executor with
/// these properties.
///
/// An empty list proves that every output and state has the bits of one device, if the programs compute the model
/// ([`prove`](crate::prove)).
pub fn find_differences(programs: &Graph, company: Company) -> Vec<Difference> {
    let tensors = Tensors::of(programs);
    let mut states: Vec<SumState> = vec![SumState::Exact; programs.values().len()];
    let mut out = Vec::new();
    for (inst, data) in programs.insts() {
        let operands: Vec<&SumState> = data.operands.iter().map(|v| &states[v.index()]).collect();
        let sums = matches!(
            data.op.category(),
            OpCategory::Collective(Collective::AllReduce | Collective::ReduceScatter)
        );
        if let (Op::MergeAttn(_), Some(&value)) = (&data.op, data.results.first()) {
            out.push(Difference {
                cause: DifferenceCause::SplitCells,
                inst,
                value,
                tensor: None,
            });
        }
        let state = if sums {
            let cause = difference_cause(&operands, company.subtrees);
            let tensor = || {
                operands
                    .iter()
                    .find_map(|s| s.part())
                    .map(|p| p.tensor.clone())
            };
            if let (Some(cause), Some(&value)) = (cause, data.results.first()) {
                out.push(Difference {
                    cause,
                    inst,
                    value,
                    tensor: tensor(),
                });
            }
            SumState::Exact
        } else if matches!(data.op, Op::AllToAll(_) | Op::AllGather(_)) {
            state::joined(operands.iter().copied())
        } else {
            let most = company.two_term_weights;
            let small = tensors.reads_at_most(programs, (&data.op, &data.operands), most);
            let k = contracted(programs, &tensors, data);
            state::of_op(programs, data, &operands, (k, small))
        };
        for v in &data.results {
            states[v.index()].clone_from(&state);
        }
    }
    out.extend(unreduced_outputs(programs, &states));
    out
}

/// Returns the tensor of a product, its whole K and the interval that the product sums over. `None` unless the product
/// sums over a part of K.
fn contracted(programs: &Graph, tensors: &Tensors, data: &InstData) -> Option<Part> {
    let weight = data.operands.first().filter(|_| data.op.is_product())?;
    let Op::Weight(op) = programs.def_op(*weight) else {
        return None;
    };
    let [k, ..] = tensors.dims(&op.tensor)?;
    let whole = Interval { start: 0, len: k };
    let interval = match op.parts.as_ref()?.first()?.as_slice() {
        [one] if *one == whole => return None,
        [one] => Some(*one),
        _ => None,
    };
    Some(Part {
        tensor: op.tensor.clone(),
        k,
        interval,
        small: false,
    })
}

/// Returns the reason, if any, why the sum of values in these states, one per device, may differ in its bits.
fn difference_cause(parts: &[&SumState], subtrees: bool) -> Option<DifferenceCause> {
    if parts.iter().all(|s| matches!(s, SumState::OneRow)) {
        return None;
    }
    if parts.iter().any(|s| matches!(s, SumState::Statistics)) {
        return Some(DifferenceCause::SplitNorm);
    }
    let shares: Option<Vec<&Part>> = parts.iter().map(|s| s.part()).collect();
    let Some(shares) = shares else {
        return Some(DifferenceCause::DeferredSum);
    };
    if !subtrees {
        return Some(DifferenceCause::ProductOrder);
    }
    let k = shares.first().map_or(0, |p| p.k);
    let devices = shares.len() as u64;
    if subtree(k, 0, devices).is_none() {
        return Some(DifferenceCause::DeviceCount);
    }
    let is_subtree = |(rank, p): (u64, &&Part)| {
        let own = p.interval.map(|i| (i.start, i.end()));
        p.k == k && own.is_some() && own == subtree(k, rank, devices)
    };
    // Empty shares would be subtrees of several ranges.
    if k == 0 || !(0..).zip(&shares).all(is_subtree) {
        return Some(DifferenceCause::UnequalShares);
    }
    let small = shares.iter().any(|p| p.small);
    small.then_some(DifferenceCause::TwoTerms)
}

/// Finds outputs and states that hold parts of sums.
fn unreduced_outputs<'a>(
    programs: &'a Graph,
    states: &'a [SumState],
) -> impl Iterator<Item = Difference> + 'a {
    let values = programs.outputs.iter().map(Output::value);
    let unreduced = values.filter(move |v| !matches!(states[v.index()], SumState::Exact));
    unreduced.map(move |value| Difference {
        cause: DifferenceCause::DeferredSum,
        inst: programs.value(value).def.0,
        value,
        tensor: states[value.index()].part().map(|p| p.tensor.clone()),
    })
}

#[cfg(test)]
mod tests;
