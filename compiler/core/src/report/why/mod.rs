mod factor;
pub(super) mod report;
mod text;

pub use report::{CostReport, FactorReport, Size, ThroughReport, WhyReport};
pub(super) use text::render;

use tpc_ir::{Interval, Place, RANK, Value};
use tpc_passes::factors::{Selection, Summand};
use tpc_passes::plan::{Signature, explain_split};

use super::describe;
use super::plan::TensorReport;
use crate::format::lens;
use crate::pipeline::CompiledModel;

/// Explains the splits of these values of the placed graph. Equal layers share an explanation.
pub fn explain(
    compiled: &CompiledModel,
    values: &[Value],
    tensors: &[TensorReport],
) -> Vec<WhyReport> {
    let mut groups: Vec<(Option<SimilarityKey<'_>>, Vec<Value>)> = Vec::new();
    for &v in values {
        let key = alike(compiled, v);
        match groups.iter_mut().find(|(k, _)| key.is_some() && *k == key) {
            Some((_, members)) => members.push(v),
            None => groups.push((key, vec![v])),
        }
    }
    groups
        .iter()
        .map(|(_, members)| explanation(compiled, members, tensors))
        .collect()
}

/// The key of equal tensors in different layers: the signature of the layer, the tensor's position, and the ranges of
/// its factors.
type SimilarityKey<'a> = (&'a Signature, usize, Vec<Option<&'a [Interval]>>);

fn alike(compiled: &CompiledModel, v: Value) -> Option<SimilarityKey<'_>> {
    let planned = &compiled.planned;
    let inst = compiled.planned.graph.value(v).def.0;
    let Place::Group(group) = planned.graph.value(v).place else {
        return None;
    };
    let found = planned
        .layer_groups
        .iter()
        .filter(|r| r.group == group)
        .find_map(|r| {
            let at = r.insts.binary_search(&inst).ok()?;
            r.layer.map(|_| (&r.signature, at))
        });
    let (signature, at) = found?;
    let chosen = planned.analysis.summands[v.index()]
        .iter()
        .flat_map(Summand::leaves);
    let chosen = chosen.map(|l| {
        planned
            .choice
            .class_of(group, l)
            .map(|c| planned.choice.options[c.index()].ranges.as_slice())
    });
    Some((signature, at, chosen.collect()))
}

fn explanation(compiled: &CompiledModel, members: &[Value], tensors: &[TensorReport]) -> WhyReport {
    let graph = &compiled.planned.graph;
    let v = members[0];
    let found = explain_split(&compiled.planned, &compiled.request, v);
    let data = graph.value(v);
    let tensor = describe::name(graph, v);
    let place = data.place.to_string();
    let stored = tensors
        .iter()
        .find(|t| t.name == tensor && t.place == place);
    let rank = data
        .ty
        .dims
        .iter()
        .rposition(|d| !d.is_one())
        .map_or(1, |i| i + 1);
    let layer = |v: Value| graph.inst(graph.value(v).def.0).layer;
    let headline = match stored {
        None => format!("an activation on {place}"),
        Some(t) => match t.sharding.axis {
            None => format!("whole on {}", t.place),
            Some(a) => format!(
                "axis {a} split on {}, {}",
                t.place,
                lens(&t.sharding.ranges.lens())
            ),
        },
    };
    WhyReport {
        tensor,
        value: v.to_string(),
        dtype: data.ty.dtype.name(),
        ne: data.ty.dims[..rank].iter().map(Size::from).collect(),
        layer: layer(v),
        place,
        alike: members[1..]
            .iter()
            .map(|&m| describe::name(graph, m))
            .collect(),
        axes: (0..RANK)
            .map(|a| describe::axis(&compiled.planned.factors, &found.segments, a))
            .take(rank)
            .collect(),
        factors: found
            .factors
            .iter()
            .map(|f| factor::report(compiled, f))
            .collect(),
        headline,
        layers: members.iter().filter_map(|&m| layer(m)).collect(),
    }
}
