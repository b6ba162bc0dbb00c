use super::registry::Op;
use crate::types::TensorType;

impl Op {
    /// True if this op, launched alone, may write its result over operand `i`: the op replaces elements of the
    /// operand, or element `j` of the result depends only on element `j` of the operand.
    pub fn in_place(&self, i: usize, operands: &[&TensorType], result: &TensorType) -> bool {
        let Some(operand) = operands.get(i) else {
            return false;
        };
        if *operand != result {
            return false;
        }
        match self {
            Op::Unary(_)
            | Op::LeakyRelu(_)
            | Op::Xielu(_)
            | Op::Scale(_)
            | Op::Clamp(_)
            | Op::Binary(_) => true,
            Op::SetRows(_) | Op::SetSlice(_) => i == 0,
            _ => false,
        }
    }
}
