use std::collections::BTreeMap;

use crate::entity::Value;
use crate::graph::Graph;
use crate::op::{Op, Weight};
use crate::types::RANK;

/// Sizes, by name, of the file's tensors whose parts a program stores.
///
/// Decisions based on whole sizes do not depend on the number of devices.
#[derive(Clone, Debug, Default)]
pub struct Tensors(BTreeMap<String, [u64; RANK]>);

impl Tensors {
    /// Returns the tensors of programs that together store every part of each tensor.
    pub fn of(programs: &Graph) -> Tensors {
        let mut out = Tensors::default();
        for (_, data) in programs.insts() {
            let (Op::Weight(weight), Some(&value)) = (&data.op, data.results.first()) else {
                continue;
            };
            let dims = &programs.value(value).ty.dims;
            let sizes: &mut [u64; RANK] = out.0.entry(weight.tensor.clone()).or_default();
            for (axis, (size, dim)) in sizes.iter_mut().zip(dims).enumerate() {
                *size = (*size).max(end(weight, axis).or(dim.as_const()).unwrap_or(0));
            }
        }
        out
    }

    /// Returns the sizes of a tensor.
    pub fn dims(&self, tensor: &str) -> Option<[u64; RANK]> {
        self.0.get(tensor).copied()
    }

    /// True if the op is a product that reads at most `most` quantised weights per token, counting only the experts
    /// used.
    pub fn reads_at_most(
        &self,
        programs: &Graph,
        (op, operands): (&Op, &[Value]),
        most: u64,
    ) -> bool {
        let read = self.read(programs, op, operands);
        read.is_some_and(|read| read <= most)
    }

    /// Returns the number of quantised weights that a product reads per token; `None` for any other op or operand.
    fn read(&self, programs: &Graph, op: &Op, operands: &[Value]) -> Option<u64> {
        let &weight = operands.first()?;
        let Op::Weight(data) = programs.def_op(weight) else {
            return None;
        };
        let [k, rows, stack, more] = self.dims(&data.tensor)?;
        let stack = match op {
            Op::MulMat(_) => stack.checked_mul(more)?,
            Op::MulMatId(_) => programs.value(*operands.get(2)?).ty.dims[0].as_const()?,
            _ => return None,
        };
        let quantised = programs.value(weight).ty.dtype.is_quantised();
        let read = || k.checked_mul(rows)?.checked_mul(stack);
        quantised.then(read).flatten()
    }
}

fn end(weight: &Weight, axis: usize) -> Option<u64> {
    let parts = weight.parts.as_ref()?.get(axis)?;
    parts.iter().map(|p| p.end()).max()
}
