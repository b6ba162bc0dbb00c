//! Element-wise ops.

use tpc_ir::DType;
use tpc_ir::op::Scale;

use crate::error::KernelError;
use crate::launch::{Call, Launch, Request, Selected};

/// `scale · x + bias`.
#[derive(Debug)]
struct Affine {
    scale: f32,
    bias: f32,
}

pub(super) fn scale(op: &Scale, request: &Request<'_>) -> Selected {
    match (request.operands, request.results) {
        ([DType::F32], [DType::F32]) => Ok(Box::new(Affine {
            scale: op.scale,
            bias: op.bias,
        })),
        _ => Err("it reads and writes f32"),
    }
}

impl Launch for Affine {
    #[allow(unsafe_code)]
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let (&[x], &[y]) = (call.operands, call.results) else {
            return Err(KernelError::Shape {
                what: "one operand, one result",
            });
        };
        if x.ne != y.ne {
            return Err(KernelError::Shape {
                what: "sizes of x and the result",
            });
        }
        for row in call.worker.share(x.rows()) {
            let (from, to) = (x.row(x.indices(row)), y.row(y.indices(row)));
            for i in 0..x.ne[0] {
                // SAFETY: the element lies within the views, which the caller vouches for.
                unsafe {
                    let v = from.add(i * x.nb[0]).cast::<f32>().read_unaligned();
                    let v = self.scale * v + self.bias;
                    to.add(i * y.nb[0]).cast::<f32>().write_unaligned(v);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tpc_ir::DType;
    use tpc_ir::op::Scale;

    use crate::{Kernel, Team, View};

    #[test]
    fn every_row_is_scaled_once() {
        let mut x: Vec<f32> = (0..12_u8).map(f32::from).collect();
        let op = Scale {
            scale: 2.0,
            bias: 1.0,
        };
        let kernel = Kernel::select(&op.into(), &[DType::F32], &[DType::F32], Default::default());
        let kernel = kernel.expect("f32");
        let v = View::of_f32(&mut x, [3, 2, 2, 1]).expect("12 elements");
        let mut team = Team::new(2).expect("threads");
        team.run(|w| {
            // SAFETY: the view is of `x`, and an element-wise op may write its operand.
            #[allow(unsafe_code)]
            unsafe {
                kernel.run(w, &[v], &[v], &mut [])
            }
        })
        .expect("no failure");
        let expected: Vec<f32> = (0..12_u8).map(|i| 2.0 * f32::from(i) + 1.0).collect();
        assert_eq!(x, expected);
    }
}
