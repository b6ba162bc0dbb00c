use tpc_ir::op::{Fill, LeakyRelu, Xielu};

use super::elementwise::map;
use crate::error::ExecError;
use crate::tensor::Tensor;

pub(super) fn leaky_relu(op: &LeakyRelu, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let slope = f64::from(op.slope);
    map(operands[0], |x| x.max(0.0) + slope * x.min(0.0))
}

pub(super) fn xielu(op: &Xielu, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let [alpha_n, alpha_p, beta, eps] = [op.alpha_n, op.alpha_p, op.beta, op.eps].map(f64::from);
    map(operands[0], |x| {
        if x > 0.0 {
            alpha_p * x * x + beta * x
        } else {
            (x.min(eps).exp_m1() - x) * alpha_n + beta * x
        }
    })
}

pub(super) fn fill(op: &Fill, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let value = f64::from(op.value);
    map(operands[0], |_| value)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, real, run};
    use super::*;

    #[test]
    fn by_hand() {
        let x = real(&[3], &[-2.0, 0.0, 2.0]);
        close(
            &run(LeakyRelu { slope: 0.25 }, &[&x], &[3]),
            &[-0.5, 0.0, 2.0],
        );
        let op = Xielu {
            alpha_n: 2.0,
            alpha_p: 0.5,
            beta: 0.25,
            eps: -0.5,
        };
        let low = 2.0 * ((-2.0_f64).exp() - 1.0 + 2.0) - 0.5;
        let middle = 2.0 * ((-0.5_f64).exp() - 1.0);
        close(&run(op, &[&x], &[3]), &[low, middle, 2.5]);
        let nothing = real(&[2], &[f64::NAN, f64::INFINITY]);
        close(&run(Fill { value: 7.0 }, &[&nothing], &[2]), &[7.0, 7.0]);
    }
}
