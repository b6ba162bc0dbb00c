//! Kinds of layers. Tensors of a kind have equal names, shapes and splits, but types may differ.

use tpc_gguf::TensorName;

use super::plan::{PlanReport, TensorReport};

/// Removes the layer's number: `blk.3.attn_q.weight` → `attn_q.weight`.
pub fn suffix(name: &str) -> String {
    match TensorName::parse(name) {
        TensorName::Block { stem, .. } | TensorName::State { stem, .. } => stem.to_owned(),
        TensorName::Result { .. } | TensorName::Global(_) => name.to_owned(),
    }
}

/// A tensor in a kind of layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRow {
    /// The name without the layer.
    pub name: String,
    /// Types in order of first appearance.
    pub dtypes: Vec<&'static str>,
    /// Shape, such as `4096×1024`.
    pub shape: String,
    /// The split (`axis 1` or `mirrored`), or the single place.
    pub split: String,
    /// Indices per device.
    pub lens: Vec<u64>,
}

impl TensorRow {
    fn is_alike(&self, other: &TensorRow) -> bool {
        let key = |r: &TensorRow| {
            (
                r.name.clone(),
                r.shape.clone(),
                r.split.clone(),
                r.lens.clone(),
            )
        };
        key(self) == key(other)
    }
}

/// Layers whose tensors have the same names, shapes and splits.
#[derive(Clone, Debug)]
pub struct LayerKind {
    /// The layers; empty for tensors outside layers.
    pub layers: Vec<u32>,
    /// The tensors.
    pub rows: Vec<TensorRow>,
}

pub(super) fn shape(ne: &[u64]) -> String {
    let rank = ne.iter().rposition(|&n| n != 1).map_or(1, |i| i + 1);
    ne[..rank]
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("×")
}

/// Describes a split: `axis 1`, `mirrored`, or the single place.
pub(super) fn split(t: &TensorReport) -> String {
    match t.sharding.axis {
        Some(axis) => format!("axis {axis}"),
        None if t.devices.len() > 1 => "mirrored".to_owned(),
        None => t.place.clone(),
    }
}

fn row(t: &TensorReport) -> TensorRow {
    TensorRow {
        name: suffix(&t.name),
        dtypes: vec![t.dtype],
        shape: shape(&t.ne),
        split: split(t),
        lens: t.sharding.ranges.lens(),
    }
}

/// Groups items by layer, in order of first appearance. `None` stands for items outside layers.
pub(super) fn insts_by_layer<T>(
    all: impl Iterator<Item = (Option<u32>, T)>,
) -> Vec<(Option<u32>, Vec<T>)> {
    let mut out: Vec<(Option<u32>, Vec<T>)> = Vec::new();
    for (layer, item) in all {
        match out.iter_mut().find(|(l, _)| *l == layer) {
            Some((_, items)) => items.push(item),
            None => out.push((layer, vec![item])),
        }
    }
    out
}

/// Lists the kinds of layers, in order of first appearance.
pub fn layer_kinds(report: &PlanReport) -> Vec<LayerKind> {
    let mut out: Vec<LayerKind> = Vec::new();
    for (layer, mut rows) in insts_by_layer(report.tensors.iter().map(|t| (t.layer, row(t)))) {
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        let alike = |k: &&mut LayerKind| {
            k.layers.is_empty() == layer.is_none()
                && k.rows.len() == rows.len()
                && k.rows.iter().zip(&rows).all(|(a, b)| a.is_alike(b))
        };
        match out.iter_mut().find(alike) {
            Some(k) => {
                k.layers.extend(layer);
                for (known, row) in k.rows.iter_mut().zip(rows) {
                    let new = |d: &&'static str| !known.dtypes.contains(d);
                    let new: Vec<&'static str> = row.dtypes.into_iter().filter(new).collect();
                    known.dtypes.extend(new);
                }
            }
            None => out.push(LayerKind {
                layers: layer.into_iter().collect(),
                rows,
            }),
        }
    }
    out
}
