//! In how many terms products take their activations.
//!
//! One int8 code per activation leaves about 2.5e-5 of its square, which is what engines with such products have. Where a
//! router chooses by sums of them, or a recurrence grows them, that is much. A second term, the code of what the first
//! leaves, makes it next to nothing and doubles the time of a product. So small products have it: their weights stay in a
//! cache for the second pass, and their time is lost in that of the launch.

use std::collections::BTreeMap;

use tpc_ir::Value;
use tpc_ir::op::{Op, Weight};
use tpc_ir::program::Program;

use crate::product::{Epilogue, Write};

/// In how many terms of int8 a product takes its activations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Terms {
    #[default]
    One,
    /// The second is what the first leaves of them.
    Two,
}

impl Terms {
    /// All of them, with what is done with their products, in this order.
    pub(super) fn each(self) -> &'static [(usize, Epilogue<'static>)] {
        const fn written(write: Write) -> Epilogue<'static> {
            Epilogue { write, bias: None }
        }
        const ALL: [(usize, Epilogue<'static>); 2] =
            [(0, written(Write::Set)), (1, written(Write::Add))];
        match self {
            Terms::One => &ALL[..1],
            Terms::Two => &ALL,
        }
    }
}

/// The sizes of the tensors that a program's weights are parts of, so that a product has the same terms however many devices
/// share it.
#[derive(Debug)]
pub(super) struct Tensors(BTreeMap<String, [u64; 4]>);

impl Tensors {
    /// Those of a program, which holds every part of each.
    pub(super) fn new(program: &Program) -> Tensors {
        let mut out = BTreeMap::new();
        for (value, data) in program.graph.values() {
            let Op::Weight(weight) = program.graph.def_op(value) else {
                continue;
            };
            let sizes: &mut [u64; 4] = out.entry(weight.tensor.clone()).or_default();
            for (axis, (size, dim)) in sizes.iter_mut().zip(&data.ty.dims).enumerate() {
                *size = (*size).max(end(weight, axis).or(dim.as_const()).unwrap_or(0));
            }
        }
        Tensors(out)
    }

    /// The weights that `op` reads for a token, of which `experts` are used of a stack; `None` where its first operand is no
    /// weight.
    fn read(&self, program: &Program, op: &Op, weight: Value, experts: usize) -> Option<u64> {
        let Op::Weight(data) = program.graph.def_op(weight) else {
            return None;
        };
        let [k, rows, stack, more] = *self.0.get(&data.tensor)?;
        let stack = match op {
            Op::MulMatId(_) => experts as u64,
            _ => stack.checked_mul(more)?,
        };
        k.checked_mul(rows)?.checked_mul(stack)
    }

    /// The terms of a product that has two if it reads at most `most` weights for a token.
    pub(super) fn terms(
        &self,
        program: &Program,
        (op, weight, experts): (&Op, Value, usize),
        most: u64,
    ) -> Terms {
        let quantised = program.graph.value(weight).ty.dtype.is_quantised();
        let read = self.read(program, op, weight, experts);
        match quantised && read.is_some_and(|read| read <= most) {
            true => Terms::Two,
            false => Terms::One,
        }
    }
}

/// The end of the tensor's indices on an axis of which a weight holds some.
fn end(weight: &Weight, axis: usize) -> Option<u64> {
    let parts = weight.parts.as_ref()?.get(axis)?;
    parts.iter().map(|p| p.end()).max()
}
