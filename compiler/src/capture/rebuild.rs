//! A graph again with other sizes, layers, or kinds of leaves.

use std::collections::BTreeSet;

use tpc_ir::op::{Arange, Input, InputKind, Mean, Repeat, Reshape, SetSlice, Slice};
use tpc_ir::{Dim, Graph, InstData, Op, RANK, TensorType, Value};

/// What changes.
pub(super) struct Changes<'a> {
    /// The sizes of every value.
    pub(super) dims: &'a dyn Fn(Value) -> [Dim; RANK],
    /// The layer of every instruction, by position.
    pub(super) layers: &'a [Option<u32>],
    /// Weights that are inputs.
    pub(super) inputs: &'a BTreeSet<Value>,
}

/// The same graph with `changes`. Values keep their numbers.
pub(super) fn rebuild(from: &Graph, changes: &Changes<'_>) -> Graph {
    let mut out = Graph::new(from.name.clone());
    for (inst, data) in from.insts() {
        let types = data
            .results
            .iter()
            .map(|&v| TensorType {
                dtype: from.value(v).ty.dtype,
                dims: (changes.dims)(v),
            })
            .collect();
        let op = op(from, changes, data);
        let layer = changes.layers.get(inst.index()).copied().flatten();
        let place = from.value(data.results[0]).place;
        let made = out.push(op, data.operands.clone(), types, place, layer);
        let made = out.inst(made).results.clone();
        for (&old, new) in data.results.iter().zip(made) {
            out.value_mut(new).name.clone_from(&from.value(old).name);
        }
    }
    out.outputs.clone_from(&from.outputs);
    out
}

/// The op with the sizes among its attributes changed.
fn op(from: &Graph, changes: &Changes<'_>, data: &InstData) -> Op {
    let result = data.results[0];
    let dims = || (changes.dims)(result);
    let start = |axis: u64, start: &Dim, len: u64| {
        let axis = usize::try_from(axis).unwrap_or(0).min(RANK - 1);
        boundary(from, changes, data.operands[0], axis, start, len)
    };
    match &data.op {
        Op::Reshape(_) => Reshape { dims: dims() }.into(),
        Op::Repeat(_) => Repeat { dims: dims() }.into(),
        Op::Arange(a) => {
            let [n, ..] = dims();
            Arange { n, ..a.clone() }.into()
        }
        Op::Mean(_) => {
            let [n, ..] = (changes.dims)(data.operands[0]);
            Mean { n }.into()
        }
        Op::Slice(s) => {
            let len = s.len.as_const().unwrap_or(0);
            let axis = usize::try_from(s.axis).unwrap_or(0).min(RANK - 1);
            Slice {
                axis: s.axis,
                start: start(s.axis, &s.start, len),
                len: dims()[axis].clone(),
            }
            .into()
        }
        Op::SetSlice(s) => {
            let axis = usize::try_from(s.axis).unwrap_or(0).min(RANK - 1);
            let new = &from.value(data.operands[1]).ty.dims[axis];
            SetSlice {
                axis: s.axis,
                start: start(s.axis, &s.start, new.as_const().unwrap_or(0)),
            }
            .into()
        }
        Op::Weight(w) if changes.inputs.contains(&result) => Input {
            kind: InputKind::Other(w.tensor.clone()),
        }
        .into(),
        other => other.clone(),
    }
}

/// Where a slice of `len` indices from `start` on begins once the sizes of `v` have changed: at the same distance from
/// the end where it ended there, behind the same parts of a concatenation, else at the same index.
fn boundary(
    from: &Graph,
    changes: &Changes<'_>,
    v: Value,
    axis: usize,
    start: &Dim,
    len: u64,
) -> Dim {
    let new = (changes.dims)(v)[axis].clone();
    let (Some(first), Some(size)) = (start.as_const(), from.value(v).ty.dims[axis].as_const())
    else {
        return start.clone();
    };
    if first == 0 || new.as_const().is_some() {
        return start.clone();
    }
    let data = from.inst(from.value(v).def.0);
    if let Op::Concat(c) = &data.op
        && c.axis == axis as u64
    {
        let (mut old_sum, mut new_sum) = (0, Some(Dim::ZERO));
        for &part in &data.operands {
            if old_sum == first
                && let Some(sum) = &new_sum
            {
                return sum.clone();
            }
            old_sum += from.value(part).ty.dims[axis].as_const().unwrap_or(0);
            new_sum = new_sum.and_then(|s| s.checked_add(&(changes.dims)(part)[axis]));
        }
    }
    if first + len == size
        && let Some(at) = new.checked_sub(&Dim::constant(len))
    {
        return at;
    }
    start.clone()
}
