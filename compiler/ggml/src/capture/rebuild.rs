use std::collections::BTreeSet;

use tpc_ir::op::{Input, InputKind};
use tpc_ir::resize::{Sizes, resize};
use tpc_ir::{Dim, Graph, InstData, Op, RANK, TensorType, Value};

pub(super) struct Changes<'a> {
    pub(super) dims: &'a dyn Fn(Value) -> [Dim; RANK],
    pub(super) layers: &'a [Option<u32>],
    pub(super) inputs: &'a BTreeSet<Value>,
}

/// Returns the graph with `changes`. Values keep their numbers.
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
        let new = out.push(op, data.operands.clone(), types, place, layer);
        let new = out.inst(new).results.clone();
        for (&old, new) in data.results.iter().zip(new) {
            out.value_mut(new).name.clone_from(&from.value(old).name);
        }
    }
    out.outputs.clone_from(&from.outputs);
    out
}

fn op(from: &Graph, changes: &Changes<'_>, data: &InstData) -> Op {
    match &data.op {
        Op::Weight(w) if changes.inputs.contains(&data.results[0]) => Input {
            kind: InputKind::Other(w.tensor.clone()),
        }
        .into(),
        _ => resize(from, data, &Symbolic { from, changes }),
    }
}

struct Symbolic<'a> {
    from: &'a Graph,
    changes: &'a Changes<'a>,
}

impl Sizes for Symbolic<'_> {
    fn dims(&self, v: Value) -> [Dim; RANK] {
        (self.changes.dims)(v)
    }

    /// Returns the start of a slice for the new sizes. The slice stays after the same parts of a concatenation, or at
    /// the end of the axis. Other slices keep their start.
    fn start(&self, v: Value, axis: usize, start: &Dim, len: &Dim) -> Dim {
        let Symbolic { from, changes } = self;
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
        let len = len.as_const().unwrap_or(0);
        if first + len == size
            && let Some(at) = new.checked_sub(&Dim::constant(len))
        {
            return at;
        }
        start.clone()
    }
}
