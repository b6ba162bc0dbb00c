//! An op of a graph whose values get other sizes.

use tpc_ir::op::{Arange, Mean, NormApply, Repeat, Reshape, SetSlice, Slice};
use tpc_ir::{Dim, Graph, InstData, Op, RANK, Value};

/// The sizes that the values of a graph get.
pub trait Sizes {
    /// The sizes of a value.
    fn dims(&self, v: Value) -> [Dim; RANK];

    /// Where along `axis` of `v` the `len` indices begin that began at `start`.
    fn start(&self, v: Value, axis: usize, start: &Dim, len: &Dim) -> Dim;
}

/// The axis that an attribute names.
pub fn axis(attribute: u64) -> usize {
    usize::try_from(attribute).unwrap_or(0).min(RANK - 1)
}

/// The op of an instruction of `graph` with the sizes among its attributes changed.
pub fn resized(graph: &Graph, data: &InstData, sizes: &dyn Sizes) -> Op {
    let dims = || sizes.dims(data.results[0]);
    match &data.op {
        Op::Reshape(_) => Reshape { dims: dims() }.into(),
        Op::Repeat(_) => Repeat { dims: dims() }.into(),
        Op::Arange(a) => {
            let [n, ..] = dims();
            Arange { n, ..a.clone() }.into()
        }
        Op::Mean(_) => {
            let [n, ..] = sizes.dims(data.operands[0]);
            Mean { n }.into()
        }
        Op::NormApply(norm) => {
            let [n, ..] = sizes.dims(data.operands[0]);
            let n = n.as_const().unwrap_or(norm.n);
            NormApply { n, ..norm.clone() }.into()
        }
        Op::Slice(s) => Slice {
            axis: s.axis,
            start: sizes.start(data.operands[0], axis(s.axis), &s.start, &s.len),
            len: dims()[axis(s.axis)].clone(),
        }
        .into(),
        Op::SetSlice(s) => {
            let len = &graph.value(data.operands[1]).ty.dims[axis(s.axis)];
            SetSlice {
                axis: s.axis,
                start: sizes.start(data.operands[0], axis(s.axis), &s.start, len),
            }
            .into()
        }
        other => other.clone(),
    }
}
