use tpc_ir::op::{Op, Pad, Permute, Slice};
use tpc_ir::{Bindings, Dim, RANK};

use super::{around, axis};
use crate::error::ExecError;
use crate::tensor::{Data, Tensor, buffer, size_of};

pub(super) fn concrete(op: &Op, bindings: &Bindings) -> Result<Op, ExecError> {
    let mut error = None;
    let bound = op.map_dims(&mut |d| match size_of(d, bindings) {
        Ok(n) => Some(Dim::constant(n as u64)),
        Err(e) => {
            error = Some(e);
            None
        }
    });
    bound.ok_or_else(|| {
        error.unwrap_or_else(|| ExecError::Malformed {
            what: format!("the sizes of {} are not bound", op.name()),
        })
    })
}

pub(super) fn permute(op: &Permute, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let (mut dims, mut strides) = ([0; RANK], [0; RANK]);
    for (from, &to) in op.axes.iter().enumerate() {
        let to = axis(to)?;
        dims[to] = x.dims()[from];
        strides[to] = x.strides()[from];
    }
    x.strided(dims, strides, 0)
}

pub(super) fn slice(
    op: &Slice,
    operands: &[&Tensor],
    bindings: &Bindings,
) -> Result<Tensor, ExecError> {
    let (start, len) = (size_of(&op.start, bindings)?, size_of(&op.len, bindings)?);
    operands[0].slice(axis(op.axis)?, start, len)
}

pub(super) fn concat(along: u64, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let axis = axis(along)?;
    let first = operands[0];
    let mut dims = first.dims();
    dims[axis] = operands.iter().map(|t| t.dims()[axis]).sum();
    if let Data::Int(_) = first.data() {
        let parts = operands.iter().map(|t| Ok((t.ints()?, t.dims())));
        let parts: Result<Vec<_>, ExecError> = parts.collect();
        return Tensor::ints_of(dims, joined(&parts?, dims, axis)?);
    }
    let parts: Result<Vec<_>, ExecError> = operands.iter().map(|t| t.reals()).collect();
    let parts = parts?;
    let parts: Vec<(&[f64], [usize; RANK])> = parts
        .iter()
        .zip(operands)
        .map(|(v, t)| (v.as_ref(), t.dims()))
        .collect();
    Tensor::reals_of(dims, joined(&parts, dims, axis)?)
}

fn joined<T: Copy>(
    parts: &[(&[T], [usize; RANK])],
    dims: [usize; RANK],
    axis: usize,
) -> Result<Vec<T>, ExecError> {
    let (inner, _, outer) = around(dims, axis);
    let mut out = buffer(dims)?;
    for o in 0..outer {
        for (v, d) in parts {
            let block = inner * d[axis];
            out.extend_from_slice(&v[o * block..][..block]);
        }
    }
    Ok(out)
}

pub(super) fn repeat(operands: &[&Tensor], dims: [usize; RANK]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let data = match x.data() {
        Data::F64(v) => Data::F64(repeated(v, x.dims(), dims)?),
        Data::F32(v) => Data::F32(repeated(v, x.dims(), dims)?),
        Data::Int(v) => Data::Int(repeated(v, x.dims(), dims)?),
    };
    Tensor::new(dims, data)
}

fn repeated<T: Copy>(
    src: &[T],
    from: [usize; RANK],
    to: [usize; RANK],
) -> Result<Vec<T>, ExecError> {
    let mut out = buffer(to)?;
    if to.contains(&0) {
        return Ok(out);
    }
    for i3 in 0..to[3] {
        for i2 in 0..to[2] {
            for i1 in 0..to[1] {
                let row = ((i3 % from[3]) * from[2] + i2 % from[2]) * from[1] + i1 % from[1];
                let row = &src[row * from[0]..][..from[0]];
                out.extend(row.iter().cycle().take(to[0]));
            }
        }
    }
    Ok(out)
}

pub(super) fn pad(op: &Pad, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let mut dims = x.dims();
    dims[axis(op.axis)?] = op.before as usize;
    let before = zeros_like(x, dims)?;
    dims[axis(op.axis)?] = op.after as usize;
    let after = zeros_like(x, dims)?;
    concat(op.axis, &[&before, x, &after])
}

fn zeros_like(x: &Tensor, dims: [usize; RANK]) -> Result<Tensor, ExecError> {
    let dtype = x.constant_type().dtype;
    Tensor::zeros(crate::tensor::Shape { dtype, dims })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, ints, noise, pad as pad_dims, real, results, run};
    use super::super::{OpContext, Options, eval};
    use super::*;
    use crate::tensor::Shape;
    use tpc_ir::op::{Concat, Repeat, Reshape};
    use tpc_ir::{DType, Symbol};

    fn six() -> Tensor {
        real(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    }

    fn dims(d: &[u64]) -> [Dim; RANK] {
        std::array::from_fn(|i| Dim::constant(d.get(i).copied().unwrap_or(1)))
    }

    #[test]
    fn reshape_keeps_order() {
        let op = Reshape {
            dims: dims(&[3, 2]),
        };
        close(
            &run(op.clone(), &[&six()], &[3, 2]),
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        );
        assert_eq!(code(op, &[&noise(&[7], 1)], &[3, 2]), "TPC0502");
    }

    #[test]
    fn symbolic_sizes_are_bound() {
        let bindings = Bindings::default().with(Symbol::NTokens, 3);
        let ctx = OpContext {
            bindings: &bindings,
            options: Options::default(),
        };
        let t = Dim::symbol(Symbol::NTokens);
        let shape = |d: &[usize]| Shape {
            dtype: DType::F32,
            dims: pad_dims(d),
        };
        let two = Dim::constant(2);
        let op = Reshape {
            dims: [Dim::ONE, two.clone(), t.clone(), Dim::ONE],
        };
        let out = eval(&op.into(), &[&six()], &[shape(&[1, 2, 3])], &ctx).expect("ok");
        assert_eq!(out[0].dims(), [1, 2, 3, 1]);
        let op = Slice {
            axis: 1,
            start: t.checked_sub(&Dim::ONE).expect("ok"),
            len: Dim::ONE,
        };
        let out = eval(&op.into(), &[&six()], &[shape(&[2, 1])], &ctx).expect("ok");
        close(&out[0], &[5.0, 6.0]);
        let op = Repeat {
            dims: [
                two,
                t.checked_mul(&3.into()).expect("ok"),
                Dim::ONE,
                Dim::ONE,
            ],
        };
        let out = eval(&op.into(), &[&six()], &[shape(&[2, 9])], &ctx).expect("ok");
        assert_eq!(out[0].dims(), [2, 9, 1, 1]);
        let op = Slice {
            axis: 1,
            start: Dim::constant(3).checked_sub(&t).expect("ok"),
            len: t.checked_sub(&Dim::constant(4)).expect("symbolic"),
        };
        let e = eval(&op.into(), &[&six()], &[shape(&[2, 0])], &ctx);
        assert_eq!(e.expect_err("negative length").code(), "TPC0505");
    }

    #[test]
    fn permute_moves_axis_i_to_axes_i() {
        let op = Permute { axes: [1, 0, 2, 3] };
        close(
            &run(op, &[&six()], &[3, 2]),
            &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0],
        );
        let x = noise(&[2, 3, 4, 5], 9);
        let there = run(Permute { axes: [1, 2, 3, 0] }, &[&x], &[5, 2, 3, 4]);
        let (a, b) = (x.reals().expect("real"), there.reals().expect("real"));
        // x[1, 2, 3, 4] is result[4, 1, 2, 3].
        assert_eq!(
            a[((4 * 4 + 3) * 3 + 2) * 2 + 1],
            b[((3 * 3 + 2) * 2 + 1) * 5 + 4]
        );
        let back = run(Permute { axes: [3, 0, 1, 2] }, &[&there], &[2, 3, 4, 5]);
        assert_eq!(back, x);
        let twice = Permute { axes: [0, 0, 2, 3] };
        assert_eq!(code(twice, &[&x], &[2, 3, 4, 5]), "TPC0502");
    }

    #[test]
    fn slice_and_concat_are_inverse() {
        let x = noise(&[3, 4, 2], 2);
        for axis in 0..3 {
            let n = x.dims()[axis];
            let cut = |start: usize, len: usize| {
                let op = Slice {
                    axis: axis as u64,
                    start: Dim::constant(start as u64),
                    len: Dim::constant(len as u64),
                };
                let mut d = x.dims();
                d[axis] = len;
                run(op, &[&x], &d)
            };
            let (a, none, b) = (cut(0, 1), cut(1, 0), cut(1, n - 1));
            let op = Concat { axis: axis as u64 };
            assert_eq!(run(op, &[&a, &none, &b], &x.dims()), x);
        }
        let op = Slice {
            axis: 0,
            start: 2.into(),
            len: 2.into(),
        };
        assert_eq!(code(op, &[&x], &[2, 4, 2]), "TPC0502");
    }

    #[test]
    fn integers_concatenate_too() {
        let shape = Shape {
            dtype: DType::I64,
            dims: pad_dims(&[3]),
        };
        let (a, b) = (ints(&[1], &[7]), ints(&[2], &[8, 9]));
        let out = results(Concat { axis: 0 }, &[&a, &b], &[shape]).expect("ok");
        assert_eq!(out, [ints(&[3], &[7, 8, 9])]);
    }

    #[test]
    fn repeat_tiles_the_whole() {
        let op = Repeat {
            dims: dims(&[4, 2]),
        };
        let x = real(&[2, 1], &[1.0, 2.0]);
        close(
            &run(op, &[&x], &[4, 2]),
            &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0],
        );
        let op = Repeat {
            dims: dims(&[1, 4]),
        };
        let x = real(&[1, 2], &[1.0, 2.0]);
        close(&run(op, &[&x], &[1, 4]), &[1.0, 2.0, 1.0, 2.0]);
        let op = Repeat {
            dims: dims(&[0, 4]),
        };
        assert!(run(op, &[&real(&[0, 2], &[])], &[0, 4]).is_empty());
    }

    #[test]
    fn pad_adds_zeros_on_both_sides() {
        let op = |axis, before, after| Pad {
            axis,
            before,
            after,
        };
        let x = real(&[2, 1], &[1.0, 2.0]);
        close(
            &run(op(0, 1, 2), &[&x], &[5, 1]),
            &[0.0, 1.0, 2.0, 0.0, 0.0],
        );
        close(&run(op(1, 1, 0), &[&x], &[2, 2]), &[0.0, 0.0, 1.0, 2.0]);
        close(
            &run(op(0, 1, 0), &[&real(&[0, 2], &[])], &[1, 2]),
            &[0.0; 2],
        );
    }
}
