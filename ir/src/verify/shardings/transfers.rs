use super::{Faults, ShardingRule, is_unreduced};
use crate::entity::Value;
use crate::graph::{Graph, InstData};
use crate::op::{Collective, Op};
use crate::place::Place;
use crate::sharding::AxisTree;

pub(super) fn leaf(graph: &Graph, data: &InstData, faults: &mut Faults<'_>) {
    if is_unreduced(graph, data.results[0]) {
        let detail = format!("is unreduced, but `{}` is a leaf", data.op.name());
        faults.add(ShardingRule::Leaf, &detail);
    }
}

pub(super) fn copy(graph: &Graph, data: &InstData, faults: &mut Faults<'_>) {
    if let Some(v) = unreduced_operand(graph, data) {
        faults.add(
            ShardingRule::Transfer,
            &format!("is a copy of unreduced {v}"),
        );
    }
    if is_unreduced(graph, data.results[0]) {
        let detail = "is unreduced, but the result of a copy is not";
        faults.add(ShardingRule::Transfer, detail);
    }
}

pub(super) fn collective(
    graph: &Graph,
    data: &InstData,
    kind: Collective,
    faults: &mut Faults<'_>,
) {
    let op = data.op.name();
    let mut add = |detail: String| faults.add(ShardingRule::Transfer, &detail);
    match unreduced_operand(graph, data) {
        None if kind.sums() => {
            add(format!("is the `{op}` of reduced values"));
        }
        Some(v) if !kind.sums() => add(format!("is the `{op}` of unreduced {v}")),
        _ => {}
    }
    let is_split = |v: &Value| graph.value(*v).sharding.is_split();
    if data.results.iter().any(|&v| is_unreduced(graph, v)) {
        add(format!("is unreduced, but the result of `{op}` is not"));
    } else if kind == Collective::AllReduce && data.results.iter().any(is_split) {
        add(format!("is split, but the result of `{op}` is mirrored"));
    }
    if !has_parts_of_axis(graph, data) {
        add(format!(
            "is the `{op}` of parts that are not ranges of its axis"
        ));
    }
}

fn has_parts_of_axis(graph: &Graph, data: &InstData) -> bool {
    if !matches!(graph.value(data.operands[0]).place, Place::Group(_)) {
        return true;
    }
    let whole = |&v: &Value| graph.value(v).sharding.is_mirrored();
    match &data.op {
        Op::AllGather(op) => {
            data.results.iter().all(whole) && is_in_ranges(graph, data.operands[0], op.axis)
        }
        Op::ReduceScatter(op) => is_in_ranges(graph, data.results[0], op.axis),
        _ => true,
    }
}

fn unreduced_operand(graph: &Graph, data: &InstData) -> Option<Value> {
    let mut operands = data.operands.iter().copied();
    operands.find(|&v| is_unreduced(graph, v))
}

fn is_in_ranges(graph: &Graph, v: Value, axis: u64) -> bool {
    let axes = &graph.value(v).sharding.axes;
    let other = |(a, tree): (usize, &Option<Box<AxisTree>>)| a as u64 == axis || tree.is_none();
    let along = usize::try_from(axis)
        .ok()
        .and_then(|a| axes.get(a)?.as_deref());
    let Some(AxisTree::Leaf { split: Some(c), .. }) = along else {
        return false;
    };
    axes.iter().enumerate().all(other) && !graph.class(c.class).overlaps(c.div)
}
