//! Ops without operands. Only constants are computed here; the interpreter provides other values.

use tpc_ir::op::{Arange, Hadamard, Op, Weight};
use tpc_ir::{Bindings, TensorType};

use crate::error::ExecError;
use crate::tensor::{Shape, Tensor, buffer};
use crate::weights::{WeightSource, pack};

pub(super) fn eval(op: &Op) -> Result<Vec<Tensor>, ExecError> {
    Err(ExecError::Leaf { op: op.name() })
}

pub(super) fn hadamard(op: &Hadamard) -> Result<Tensor, ExecError> {
    let n = usize::try_from(op.n).map_err(|_| ExecError::Size {
        what: op.n.to_string(),
    })?;
    let dims = [n, n, 1, 1];
    let unit = 1.0 / (n as f64).sqrt();
    let mut out = buffer(dims)?;
    for i in 0..n {
        let odd = |j: usize| (i & j).count_ones() % 2 == 1;
        out.extend((0..n).map(|j| if odd(j) { -unit } else { unit }));
    }
    Tensor::reals_of(dims, out)
}

pub(super) fn arange(op: &Arange, dims: [usize; 4]) -> Result<Tensor, ExecError> {
    let (start, step) = (f64::from(op.start), f64::from(op.step));
    let mut out = buffer(dims)?;
    let indices = op.indices(dims[0] as u64);
    out.extend(indices.into_iter().map(|i| start + i as f64 * step));
    Tensor::reals_of(dims, out)
}

pub(in crate::reference) fn load_weight(
    op: &Weight,
    ty: &TensorType,
    source: &dyn WeightSource,
) -> Result<(Tensor, u64), ExecError> {
    let data = source.weight(&op.tensor)?;
    if data.dtype != ty.dtype {
        return Err(ExecError::WeightMismatch {
            tensor: op.tensor.clone(),
            expected: format!("type {}", ty.dtype),
            found: data.dtype.to_string(),
        });
    }
    let packed = pack(&op.tensor, data, op.parts.as_deref())?;
    let declared = Shape::of(ty, &Bindings::default())?;
    if packed.ne != declared.dims {
        return Err(ExecError::WeightMismatch {
            tensor: op.tensor.clone(),
            expected: format!("sizes {:?}", declared.dims),
            found: format!("{:?}", packed.ne),
        });
    }
    let bytes = packed.bytes.len() as u64;
    Ok((packed.unpack()?, bytes))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, noise, run};
    use tpc_ir::Interval;
    use tpc_ir::op::{Arange, Hadamard, MulMat};

    #[test]
    fn the_second_matrix_by_hand() {
        let h = 0.5_f64.sqrt();
        close(&run(Hadamard { n: 2 }, &[], &[2, 2]), &[h, h, h, -h]);
    }

    #[test]
    fn numbers_at_equal_distances() {
        let op = Arange::new(3.0, -0.5, 3.into());
        close(&run(op, &[], &[3]), &[3.0, 2.5, 2.0]);
    }

    #[test]
    fn a_part_has_the_numbers_of_the_whole() {
        let op = Arange {
            held: Some(vec![
                Interval { start: 1, len: 2 },
                Interval { start: 6, len: 1 },
            ]),
            ..Arange::new(3.0, -0.5, 8.into())
        };
        close(&run(op, &[], &[3]), &[2.5, 2.0, 0.0]);
    }

    #[test]
    fn rotating_twice_changes_nothing() {
        for n in [1, 4, 64] {
            let m = run(Hadamard { n }, &[], &[n as usize, n as usize]);
            let x = noise(&[n as usize, 3], 1);
            let dims = [n as usize, 3];
            let once = run(MulMat, &[&m, &x], &dims);
            let twice = run(MulMat, &[&m, &once], &dims);
            close(&twice, &x.reals().expect("real"));
        }
    }
}
