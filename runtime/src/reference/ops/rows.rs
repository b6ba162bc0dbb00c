use tpc_ir::op::{GetRows, SetRows, SetSlice};
use tpc_ir::{Bindings, DType};

use super::matmul::Reals;
use super::{around, axis, index, rank_at_most, windowed};
use crate::error::ExecError;
use crate::reference::rounding::round_rows;
use crate::tensor::{Data, Tensor, buffer, size_of};

pub(super) fn get_rows(op: &GetRows, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let data = operands[0];
    rank_at_most(3, "index", operands[1])?;
    let indices = operands[1].ints()?;
    let [n, rows, p, q] = data.dims();
    let r = operands[1].dims()[0];
    let dims = [n, r, p, q];
    // Start of each result row, in order; `None` outside the window.
    let mut starts: Vec<Option<usize>> = buffer([1, r, p, q])?;
    for batch in 0..p * q {
        for i in &indices[batch * r..][..r] {
            let row = windowed("row", *i, op.window, rows)?;
            starts.push(row.map(|row| (batch * rows + row) * n));
        }
    }
    if let Data::Int(v) = data.data() {
        let mut out = buffer(dims)?;
        for start in starts {
            match start {
                Some(at) => out.extend_from_slice(&v[at..at + n]),
                None => out.resize(out.len() + n, 0),
            }
        }
        return Tensor::ints_of(dims, out);
    }
    let v = Reals::of(data)?;
    let mut out = buffer(dims)?;
    for start in starts {
        match start {
            Some(at) => v.append(at, n, &mut out),
            None => out.resize(out.len() + n, 0.0),
        }
    }
    Tensor::reals_of(dims, out)
}

pub(super) fn set_rows(
    op: &SetRows,
    operands: &[&Tensor],
    dtype: DType,
) -> Result<Tensor, ExecError> {
    let (dst, rows) = (operands[0], operands[1]);
    rank_at_most(3, "index", operands[2])?;
    let indices = operands[2].ints()?;
    let axis = axis(op.axis)?;
    let rows_rounded = rounded(rows, axis, dtype)?;
    let (inner, bound, outer) = around(dst.dims(), axis);
    let written = rows.dims()[axis];
    let mut out = dst.reals()?.into_owned();
    let [n, p, q, _] = operands[2].dims();
    let along = if axis == 1 { dst.dims()[2] } else { 1 };
    for o in 0..outer {
        let batch = match (p, q) {
            (1, 1) => 0,
            _ => (o / along) % q * p + (o % along) % p,
        };
        for (i, &at) in indices[batch * n..][..n].iter().enumerate() {
            let at = match op.cells {
                None => index("slice to set", at, bound)?,
                Some(cells) => {
                    let cell = index("slice to set", at, usize::MAX)? as u64;
                    let Some(local) = cells.local(cell) else {
                        continue;
                    };
                    index("slice to set", local.try_into().unwrap_or(i64::MAX), bound)?
                }
            };
            let from = (o * written + i) * inner;
            let to = (o * bound + at) * inner;
            out[to..to + inner].copy_from_slice(&rows_rounded[from..from + inner]);
        }
    }
    Tensor::reals_of(dst.dims(), out)
}

pub(super) fn set_slice(
    op: &SetSlice,
    operands: &[&Tensor],
    dtype: DType,
    bindings: &Bindings,
) -> Result<Tensor, ExecError> {
    let (dst, src) = (operands[0], operands[1]);
    let axis = axis(op.axis)?;
    // Inference ensures that the slice is within the axis.
    let start = size_of(&op.start, bindings)?;
    let slice = rounded(src, axis, dtype)?;
    let (inner, bound, outer) = around(dst.dims(), axis);
    let len = inner * src.dims()[axis];
    let mut out = dst.reals()?.into_owned();
    for o in 0..outer {
        let at = (o * bound + start) * inner;
        out[at..at + len].copy_from_slice(&slice[o * len..][..len]);
    }
    Tensor::reals_of(dst.dims(), out)
}

/// Returns elements along `axis`, rounded to the destination's type.
fn rounded(x: &Tensor, axis: usize, dtype: DType) -> Result<Vec<f64>, ExecError> {
    if axis == 0 && dtype.is_quantised() {
        return Err(ExecError::Parameter {
            what: format!("blocks of {dtype} are along axis 0: single elements cannot be set"),
        });
    }
    let mut out = x.reals()?.into_owned();
    let row = if axis == 0 { 1 } else { x.dims()[0] };
    round_rows(dtype, row, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, ints, noise, pad, real, results, run};
    use super::*;
    use crate::tensor::Shape;
    use tpc_ir::{CellParts, Dim, Interval};

    const ALL: GetRows = GetRows { window: None };

    #[test]
    fn rows_by_index_within_their_batch() {
        let data = real(
            &[2, 2, 2],
            &[0.0, 1.0, 10.0, 11.0, 100.0, 101.0, 110.0, 111.0],
        );
        let index = ints(&[3, 2], &[1, 0, 1, 0, 0, 1]);
        let expected = [
            10.0, 11.0, 0.0, 1.0, 10.0, 11.0, 100.0, 101.0, 100.0, 101.0, 110.0, 111.0,
        ];
        close(&run(ALL, &[&data, &index], &[2, 3, 2]), &expected);
    }

    #[test]
    fn rows_of_integers_stay_integers() {
        let data = ints(&[2, 3], &[0, 1, 10, 11, 20, 21]);
        let shape = Shape {
            dtype: DType::I32,
            dims: pad(&[2, 1]),
        };
        let out = results(ALL, &[&data, &ints(&[1], &[2])], &[shape]).expect("ok");
        assert_eq!(out, [ints(&[2, 1], &[20, 21])]);
        let op = GetRows {
            window: Some(Interval { start: 5, len: 3 }),
        };
        let out = results(op, &[&data, &ints(&[1], &[2])], &[shape]).expect("ok");
        assert_eq!(out, [ints(&[2, 1], &[0, 0])]);
    }

    #[test]
    fn rows_outside_the_window_are_zero() {
        let data = real(&[1, 2], &[7.0, 8.0]);
        let op = GetRows {
            window: Some(Interval { start: 3, len: 2 }),
        };
        let index = ints(&[4], &[2, 3, 4, 5]);
        close(
            &run(op.clone(), &[&data, &index], &[1, 4]),
            &[0.0, 7.0, 8.0, 0.0],
        );
        assert_eq!(code(op, &[&data, &ints(&[1], &[-1])], &[1, 1]), "TPC0506");
        let none = real(&[1, 0], &[]);
        let op = GetRows {
            window: Some(Interval { start: 3, len: 0 }),
        };
        close(&run(op, &[&none, &index], &[1, 4]), &[0.0; 4]);
    }

    #[test]
    fn a_token_beyond_the_vocabulary_is_an_error() {
        let data = noise(&[4, 10], 1);
        assert_eq!(code(ALL, &[&data, &ints(&[1], &[10])], &[4, 1]), "TPC0506");
        assert_eq!(code(ALL, &[&data, &noise(&[1], 1)], &[4, 1]), "TPC0502");
    }

    #[test]
    fn slices_are_replaced_along_any_axis() {
        let dst = real(&[2, 3], &[0.0; 6]);
        let rows = real(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let index = ints(&[2], &[2, 0]);
        close(
            &run(SetRows::along(1), &[&dst, &rows, &index], &[2, 3]),
            &[3.0, 4.0, 0.0, 0.0, 1.0, 2.0],
        );
        let dst = real(&[3, 2], &[0.0; 6]);
        close(
            &run(SetRows::along(0), &[&dst, &rows, &index], &[3, 2]),
            &[2.0, 0.0, 1.0, 4.0, 0.0, 3.0],
        );
        let dst = real(&[1, 3, 2], &[0.0; 6]);
        let rows = real(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let index = ints(&[2, 2], &[2, 0, 1, 2]);
        close(
            &run(SetRows::along(1), &[&dst, &rows, &index], &[1, 3, 2]),
            &[2.0, 0.0, 1.0, 0.0, 3.0, 4.0],
        );
        let dst = real(&[3, 2], &[0.0; 6]);
        let rows = real(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let index = ints(&[2], &[3, 0]);
        assert_eq!(
            code(SetRows::along(0), &[&dst, &rows, &index], &[3, 2]),
            "TPC0506"
        );
    }

    #[test]
    fn a_part_of_the_cells_takes_its_own_rows() {
        let op = |first, count| SetRows {
            axis: 1,
            cells: Some(CellParts {
                first,
                count,
                of: 3,
            }),
        };
        // Cells of blocks 0, 1, 2, 4 and 5.
        let index = ints(&[5], &[3, 64, 191, 256, 383]);
        let rows = real(&[1, 5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        let written = |op: SetRows, blocks: usize| {
            let dst = real(&[1, 64 * blocks], &vec![0.0; 64 * blocks]);
            let out = run(op, &[&dst, &rows, &index], &[1, 64 * blocks]);
            let out = out.reals().expect("real").into_owned();
            let written = out.into_iter().enumerate().filter(|(_, x)| *x != 0.0);
            written.collect::<Vec<_>>()
        };
        assert_eq!(written(op(0, 1), 2), [(3, 1.0)]);
        assert_eq!(written(op(1, 1), 2), [(0, 2.0), (64, 4.0)]);
        assert_eq!(
            written(op(1, 2), 4),
            [(0, 2.0), (127, 3.0), (128, 4.0), (255, 5.0)]
        );
        assert_eq!(written(op(0, 3), 6).len(), 5);
        let none = SetRows {
            axis: 1,
            cells: Some(CellParts {
                first: 3,
                count: 1,
                of: 7,
            }),
        };
        assert_eq!(written(none, 1), []);
        let dst = real(&[1, 64], &[0.0; 64]);
        for value in [-1, 192] {
            let index = ints(&[1], &[value]);
            let rows = real(&[1, 1], &[1.0]);
            assert_eq!(
                code(op(0, 1), &[&dst, &rows, &index], &[1, 64]),
                "TPC0506",
                "{value}"
            );
        }
    }

    #[test]
    fn what_is_written_is_rounded_and_the_rest_is_not() {
        let third = 1.0 / 3.0;
        let dst = real(&[32, 2], &[third; 64]);
        let rows = real(&[32, 1], &[third; 32]);
        let shape = |dtype| Shape {
            dtype,
            dims: pad(&[32, 2]),
        };
        let op = SetRows::along(1);
        let operands = [&dst, &rows, &ints(&[1], &[1])];
        for (dtype, expected) in [
            (DType::F32, third),
            (DType::F16, 0.333_251_953_125),
            (DType::Bf16, 0.333_984_375),
        ] {
            let out = results(op.clone(), &operands, &[shape(dtype)]).expect("ok");
            let out = out[0].reals().expect("real");
            assert_eq!((out[0], out[32]), (third, expected));
        }
        let out = results(op, &operands, &[shape(DType::Q8_0)]).expect("ok");
        let out = out[0].reals().expect("real");
        // d = f16(1/3 / 127) = 0.0026245117; 127 · d
        assert_eq!((out[0], out[63]), (third, 0.002_624_511_718_75 * 127.0));
        let whole = SetRows::along(0);
        let dst = real(&[32, 1], &[0.0; 32]);
        let rows = real(&[1, 1], &[0.0]);
        let shape = Shape {
            dtype: DType::Q8_0,
            dims: pad(&[32, 1]),
        };
        let e = results(whole, &[&dst, &rows, &ints(&[1], &[1])], &[shape]);
        assert_eq!(e.expect_err("cuts a block").code(), "TPC0518");
    }

    #[test]
    fn nothing_to_read_or_write() {
        let none = real(&[0, 4], &[]);
        assert!(run(ALL, &[&none, &ints(&[2], &[1, 3])], &[0, 2]).is_empty());
        let index = ints(&[2], &[1, 3]);
        let op = SetRows::along(1);
        assert!(run(op.clone(), &[&none, &real(&[0, 2], &[]), &index], &[0, 4]).is_empty());
        let dst = noise(&[3, 4], 1);
        let same = run(op, &[&dst, &real(&[3, 0], &[]), &ints(&[0], &[])], &[3, 4]);
        assert_eq!(same, dst);
    }

    #[test]
    fn a_slice_is_replaced_along_any_axis() {
        let whole = noise(&[3, 4, 2], 1);
        for axis in 0..3 {
            let mut dims = whole.dims();
            dims[axis] = 2;
            let src = noise(&dims, 2);
            for start in 0..=whole.dims()[axis] - 2 {
                let op = SetSlice {
                    axis: axis as u64,
                    start: Dim::constant(start as u64),
                };
                let out = run(op, &[&whole, &src], &whole.dims());
                let end = start + 2;
                let same = |from, len| {
                    let part = |t: &Tensor| t.slice(axis, from, len).expect("ok");
                    assert_eq!(part(&out), part(&whole));
                };
                same(0, start);
                same(end, whole.dims()[axis] - end);
                assert_eq!(out.slice(axis, start, 2).expect("ok"), src);
            }
        }
    }

    #[test]
    fn a_slice_is_within_the_axis_and_rounded() {
        let op = |axis, start| SetSlice {
            axis,
            start: Dim::constant(start),
        };
        let (dst, src) = (noise(&[32, 2], 1), real(&[32, 1], &[1.0 / 3.0; 32]));
        assert_eq!(code(op(1, 2), &[&dst, &src], &[32, 2]), "TPC0502");
        assert_eq!(code(op(0, 0), &[&dst, &src], &[32, 2]), "TPC0502");
        let none = real(&[32, 0], &[]);
        assert_eq!(run(op(1, 2), &[&dst, &none], &[32, 2]), dst);
        let shape = |dtype| Shape {
            dtype,
            dims: pad(&[32, 2]),
        };
        let out = results(op(1, 1), &[&dst, &src], &[shape(DType::F16)]).expect("ok");
        let (old, new) = (dst.reals().expect("real"), out[0].reals().expect("real"));
        assert_eq!(
            (old[..32].to_vec(), 0.333_251_953_125),
            (new[..32].to_vec(), new[32])
        );
        let whole = noise(&[32, 2], 1);
        let e = results(op(0, 0), &[&dst, &whole], &[shape(DType::Q8_0)]);
        assert_eq!(e.expect_err("blocks lie along axis 0").code(), "TPC0518");
    }
}
