use tpc_ir::op::OpCategory;
use tpc_ir::{Bindings, Budget, BudgetExceeded, Graph, InstData, Op, OpLocation, Resource, Value};
use tpc_runtime::Tensor;

use super::feed::Feed;

const RUNNING: &str = "running the small model";

/// The size of an element in the 64-bit executor, in bytes.
const ELEMENT: u64 = 8;

/// The number of executor operations per step.
const OPERATIONS: u64 = 64;

/// Charges a graph's run on all batches: the peak of live bytes, including weights and states, and the operations.
pub(super) fn spend(graph: &Graph, feed: &Feed, budget: &Budget) -> Result<(), BudgetExceeded> {
    let bindings = feed.largest();
    let elements = |v: Value| elements(graph, v, &bindings);
    let mut last_use = vec![0; graph.values().len()];
    for (inst, data) in graph.insts() {
        for v in data.operands.iter().chain(&data.results) {
            last_use[v.index()] = inst.index();
        }
    }
    for o in &graph.outputs {
        last_use[o.value().index()] = usize::MAX;
    }
    let (mut live, mut peak, mut operations) = (0_u64, 0_u64, 0_u64);
    for (inst, data) in graph.insts() {
        let made = data.results.iter().map(|&v| elements(v));
        let made = made.fold(0, u64::saturating_add);
        // A transfer copies each result, and an op may unpack an operand.
        let read = data.operands.iter().map(|&v| elements(v));
        let read = read.fold(0, u64::saturating_add);
        live = live.saturating_add(made.saturating_mul(ELEMENT));
        let now = live.saturating_add(read.saturating_mul(ELEMENT));
        let spot = || Some(OpLocation::of(graph, inst));
        if now > peak {
            budget.spend(Resource::Bytes, now - peak, RUNNING, spot)?;
            peak = now;
        }
        let each = depth(graph, data, &bindings);
        let of_inst = made.saturating_mul(each).saturating_add(read);
        operations = operations.saturating_add(of_inst.saturating_mul(feed.batches() as u64));
        budget.spend(Resource::Steps, operations / OPERATIONS, RUNNING, spot)?;
        operations %= OPERATIONS;
        if data.op.is_stored() {
            // Weights and states stay alive between batches.
            continue;
        }
        let dead = |v: &&Value| last_use[v.index()] == inst.index();
        let mut values: Vec<Value> = data.operands.iter().chain(&data.results).copied().collect();
        values.sort_unstable();
        values.dedup();
        for v in values.iter().filter(dead) {
            if !graph.def_op(*v).is_stored() {
                live = live.saturating_sub(elements(*v).saturating_mul(ELEMENT));
            }
        }
    }
    Ok(())
}

/// Charges successive runs of these graphs: the sum of operations, and the maximum of bytes.
pub(super) fn spend_in_turn(
    graphs: &[&Graph],
    feed: &Feed,
    budget: &Budget,
) -> Result<(), BudgetExceeded> {
    let mut most = 0;
    for graph in graphs {
        let part = budget.part();
        spend(graph, feed, &part)?;
        most = most.max(part.used(Resource::Bytes));
        budget.take(Resource::Steps, part.used(Resource::Steps));
    }
    budget.take(Resource::Bytes, most);
    Ok(())
}

pub(super) fn bytes(tensor: &Tensor) -> u64 {
    let sizes = tensor.dims().into_iter().map(|n| n as u64);
    sizes.fold(ELEMENT, u64::saturating_mul)
}

/// Returns the steps of a comparison. Per number, it finds the element of the whole tensor and reads both numbers.
pub(super) const fn comparison(numbers: &[f64]) -> u64 {
    const EACH: u64 = 4;
    1 + numbers.len() as u64 * EACH / OPERATIONS
}

/// Returns the number of elements of a value; `u64::MAX` if it exceeds 64 bits.
fn elements(graph: &Graph, v: Value, bindings: &Bindings) -> u64 {
    let bindings = &bindings.in_units(graph.cell_unit.0);
    let dims = graph.value(v).ty.dims.iter();
    let sizes = dims.map(|d| d.eval(bindings).unwrap_or(u64::MAX));
    sizes.fold(1, u64::saturating_mul)
}

fn depth(graph: &Graph, data: &InstData, bindings: &Bindings) -> u64 {
    let size = |operand: usize, axis: usize| {
        let v = data.operands.get(operand);
        let dim = v.and_then(|v| graph.value(*v).ty.dims[axis].eval(bindings));
        dim.unwrap_or(1).max(1)
    };
    match data.op.category() {
        OpCategory::Product => size(0, 0),
        OpCategory::Heavy => match data.op {
            // Each cell takes a dot product with a row of K, and a multiplication by a row of V.
            Op::FlashAttn(_) => size(1, 1).saturating_mul(2),
            _ => size(0, 0),
        },
        _ => 1,
    }
}
