//! The steps of a batch, op by op, with times and bytes of both batches. Equal layers share an entry.

use std::collections::BTreeMap;

use serde::Serialize;
use tpc_ir::{Graph, Inst, Op, Unreduced};
use tpc_passes::plan::{Event, is_copy_of_input, timeline};

use super::names::Name;
use super::numbering::number_of;
use super::tables::Tables;
use crate::pipeline::CompiledModel;
use crate::report::describe::{op_name, sizes};
use crate::report::sharding::sharding_report;

/// One number per device, or one number for all.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Each<T> {
    All(T),
    PerDevice(Vec<T>),
}

impl<T: Copy + PartialEq + Default> Each<T> {
    fn new(all: Vec<T>) -> Each<T> {
        match all.as_slice() {
            [] => Each::All(T::default()),
            [first, rest @ ..] if rest.iter().all(|x| x == first) => Each::All(*first),
            _ => Each::PerDevice(all),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Step {
    op: String,
    #[serde(rename = "n")]
    name: Name,
    #[serde(rename = "w", skip_serializing_if = "Option::is_none")]
    reads: Option<Name>,
    #[serde(rename = "p")]
    place: usize,
    /// The device that a copy reads from.
    #[serde(rename = "f", skip_serializing_if = "Option::is_none")]
    from: Option<usize>,
    #[serde(rename = "d")]
    shape: String,
    #[serde(rename = "x", skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    axis: Option<usize>,
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    ranges: Option<usize>,
    /// Microseconds for a token and for a prompt batch.
    us: [Each<f64>; 2],
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    links: Option<usize>,
    /// Bytes of a transfer, for a token and a prompt batch.
    #[serde(rename = "b", skip_serializing_if = "Option::is_none")]
    bytes: Option<[Each<u64>; 2]>,
}

#[derive(Debug, Serialize)]
pub(super) struct Stretch {
    #[serde(rename = "l")]
    layer: Option<u32>,
    #[serde(rename = "f")]
    flow: usize,
}

pub(super) fn steps(
    compiled: &CompiledModel,
    tables: &mut Tables,
) -> (Vec<Vec<Step>>, Vec<Stretch>) {
    let graph = &compiled.sharded;
    let request = &compiled.request;
    let mut events: BTreeMap<Inst, [Option<Event>; 2]> = BTreeMap::new();
    let batches = [request.decode_batch(), request.prefill_batch()];
    // Bytes are counted for the workload's batches, as in the report.
    let workload = [&request.workload.decode, &request.workload.prefill];
    for (i, batch) in batches.iter().enumerate() {
        let counted = timeline(graph, request, workload[i]);
        let counted: BTreeMap<Inst, Vec<u64>> =
            counted.into_iter().map(|e| (e.inst, e.bytes)).collect();
        for mut e in timeline(graph, request, batch) {
            let inst = e.inst;
            if let Some(bytes) = counted.get(&inst) {
                e.bytes.clone_from(bytes);
            }
            events.entry(inst).or_default()[i] = Some(e);
        }
    }
    // The inputs of a batch are sent first, wherever the graph uses them.
    let (mut all, rest): (Vec<_>, Vec<_>) = events
        .into_iter()
        .partition(|(inst, _)| is_copy_of_input(graph, graph.inst(*inst)));
    all.extend(rest);
    let mut flows = Vec::new();
    let stretches = all
        .chunk_by(|a, b| graph.inst(a.0).layer == graph.inst(b.0).layer)
        .map(|chunk| {
            let steps = chunk.iter().map(|(i, e)| step(graph, *i, e, tables));
            Stretch {
                layer: graph.inst(chunk[0].0).layer,
                flow: number_of(&mut flows, steps.collect()),
            }
        })
        .collect();
    (flows, stretches)
}

fn step(graph: &Graph, inst: Inst, batches: &[Option<Event>; 2], tables: &mut Tables) -> Step {
    let data = graph.inst(inst);
    let result = data.results[0];
    let value = graph.value(result);
    let named = |name: &str| Name::new(name, data.layer);
    let reads = data.operands.iter().find_map(|&v| match graph.def_op(v) {
        Op::Weight(w) => Some(named(&w.tensor)),
        Op::State(s) => Some(named(&s.name)),
        _ => None,
    });
    let sharding = sharding_report(graph, result);
    let transfer = data.op.is_transfer();
    let times = |e: &Option<Event>| e.as_ref().map_or_else(Vec::new, |e| e.us.clone());
    let bytes = |e: &Option<Event>| e.as_ref().map_or_else(Vec::new, |e| e.bytes.clone());
    let links = batches.iter().flatten().map(|e| e.bytes.len()).max();
    let short = |us: Vec<f64>| Each::new(us.into_iter().map(four_digits).collect());
    Step {
        op: op_name(&data.op).to_owned(),
        name: named(&value.name),
        reads,
        place: tables.place(graph, value.place),
        from: matches!(data.op, Op::Copy(_))
            .then(|| tables.place(graph, graph.value(data.operands[0]).place)),
        shape: sizes(&value.ty.dims),
        partial: value.sharding.unreduced != Unreduced::None,
        axis: sharding.axis,
        ranges: tables.ranges.number(&sharding.ranges),
        us: std::array::from_fn(|i| short(times(&batches[i]))),
        links: links.filter(|n| *n > 1),
        bytes: transfer.then(|| std::array::from_fn(|i| Each::new(bytes(&batches[i])))),
    }
}

/// Rounds a time to four digits, more than the estimate's precision.
fn four_digits(us: f64) -> f64 {
    format!("{us:.3e}").parse().unwrap_or(us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_four_digits() {
        assert_eq!(four_digits(123_456.0), 123_500.0);
        assert_eq!(four_digits(0.000_123_44), 0.000_123_4);
        assert_eq!(four_digits(0.0), 0.0);
    }

    #[test]
    fn equal_numbers_are_one() {
        assert_eq!(Each::new(vec![2, 2]), Each::All(2));
        assert_eq!(Each::new(vec![2, 3]), Each::PerDevice(vec![2, 3]));
        assert_eq!(Each::<u64>::new(Vec::new()), Each::All(0));
    }
}
