use tpc_ir::factor::Var;
use tpc_ir::{Graph, RANK, Value};

use super::{Analysis, Summand};

/// A position of a factor in a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactorPosition {
    /// The tensor.
    pub value: Value,
    /// The axis.
    pub axis: usize,
    /// The segment, from 0; `None` if all segments have the factor.
    pub segment: Option<usize>,
    /// The number of segments of the tensor.
    pub segments: usize,
    /// The position among the factors of the axis, major first.
    pub position: usize,
    /// The number of factors of the axis.
    pub factors: usize,
}

fn places(analysis: &Analysis, leaf: Var, value: Value) -> Vec<FactorPosition> {
    let summands = &analysis.summands[value.index()];
    let mut out: Vec<FactorPosition> = Vec::new();
    for axis in 0..RANK {
        let at = |t: &Summand| t.axes[axis].iter().position(|&l| l == leaf);
        let found: Vec<FactorPosition> = summands
            .iter()
            .enumerate()
            .filter_map(|(segment, t)| {
                Some(FactorPosition {
                    value,
                    axis,
                    segment: (summands.len() > 1).then_some(segment),
                    segments: summands.len(),
                    position: at(t)?,
                    factors: t.axes[axis].len(),
                })
            })
            .collect();
        let alike =
            |f: &FactorPosition| (f.position, f.factors) == (found[0].position, found[0].factors);
        if found.len() == summands.len() && found.iter().all(alike) {
            let segment = None;
            out.push(FactorPosition {
                segment,
                ..found[0]
            });
        } else {
            out.extend(found);
        }
    }
    out
}

/// Returns the positions of `leaf` in weights and states, in program order.
pub fn factor_positions(analysis: &Analysis, leaf: Var) -> Vec<FactorPosition> {
    let stored = analysis.leaves.get(&leaf).map_or(&[][..], |f| &f.stored);
    let all = stored.iter().flat_map(|&v| places(analysis, leaf, v));
    all.collect()
}

/// Returns the other values with `leaf`, in program order.
pub fn activations(graph: &Graph, analysis: &Analysis, leaf: Var) -> Vec<Value> {
    let stored = |v: Value| graph.def_op(v).is_stored();
    let has = |v: Value| {
        analysis.summands[v.index()]
            .iter()
            .any(|t| t.leaves().any(|l| l == leaf))
    };
    let all = graph.values().map(|(v, _)| v);
    all.filter(|&v| !stored(v) && has(v)).collect()
}
