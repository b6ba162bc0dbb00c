//! ggml ops without a kernel: the reference executor computes them on one worker.
#![allow(unsafe_code)]

use tpc_ir::op::Opaque;
use tpc_ir::{Bindings, DType, Op};
use tpc_runtime::{Data, ExecError, OpContext, Options, Shape, Tensor, eval, knows};

use crate::elements::{int, is_readable, is_writable, read_row, write_int, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Launch, Request, Selected, ensure};
use crate::view::View;

#[derive(Debug)]
struct Foreign {
    op: Op,
    options: Options,
}

pub(super) fn foreign(op: &Opaque, request: &Request<'_>) -> Selected {
    if !knows(&op.name) {
        return Err("the ggml op is unknown");
    }
    let reads = |t: &DType| t.is_integer() || is_readable(*t);
    if !request.operands.iter().all(reads) {
        return Err("an operand's type cannot be read");
    }
    match request.results {
        [t] if t.is_integer() || is_writable(*t) => {}
        [_] => return Err("the result's type cannot be written"),
        _ => return Err("unexpected number of results"),
    }
    Ok(Box::new(Foreign {
        op: op.clone().into(),
        options: request.options,
    }))
}

/// # Safety
/// Same as [`crate::Kernel::run`].
unsafe fn tensor(x: &View) -> Result<Tensor, ExecError> {
    let mut rows = (0..x.rows()).map(|i| x.indices(i));
    // SAFETY: the caller vouches for the elements, which exist.
    let data = unsafe {
        if x.dtype.is_integer() {
            let of_row =
                |[i1, i2, i3]: [usize; 3]| (0..x.ne[0]).map(move |i0| int(x, [i0, i1, i2, i3]));
            Data::Int(rows.flat_map(of_row).collect())
        } else {
            let mut data = vec![0.0; x.len()];
            let mut to = data.chunks_exact_mut(x.ne[0].max(1));
            to.by_ref()
                .zip(&mut rows)
                .for_each(|(to, at)| read_row(x, x.row(at), 0, to));
            Data::F32(data)
        }
    };
    Tensor::new(x.ne, data)
}

impl Launch for Foreign {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        if call.worker.share(1).is_empty() {
            return Ok(());
        }
        let [y] = call.results else {
            return ensure(false, "wrong number of results");
        };
        let whole = |t: &View| t.ne[0].is_multiple_of(t.dtype.block_len() as usize);
        let blocks = call.operands.iter().all(whole) && whole(y);
        ensure(blocks, "rows are not whole blocks")?;
        // SAFETY: caller's contract.
        let operands = call.operands.iter().map(|x| unsafe { tensor(x) });
        let operands: Vec<Tensor> = operands.collect::<Result<_, _>>().map_err(|e| failed(&e))?;
        let operands: Vec<&Tensor> = operands.iter().collect();
        let shape = Shape {
            dtype: y.dtype,
            dims: y.ne,
        };
        let context = OpContext {
            bindings: &Bindings::default(),
            options: self.options,
        };
        let results = eval(&self.op, &operands, &[shape], &context).map_err(|e| failed(&e))?;
        let [result] = results.as_slice() else {
            return ensure(false, "wrong number of results");
        };
        // SAFETY: caller's contract; other workers do not write.
        unsafe { write(result, y) }
    }
}

/// # Safety
/// Same as [`crate::Kernel::run`].
unsafe fn write(from: &Tensor, y: &View) -> Result<(), KernelError> {
    ensure(from.dims() == y.ne, "wrong sizes of the result")?;
    let n = y.ne[0].max(1);
    match from.data() {
        Data::Int(values) => {
            for (i, row) in values.chunks_exact(n).enumerate() {
                let [i1, i2, i3] = y.indices(i);
                for (i0, value) in row.iter().enumerate() {
                    // SAFETY: an element of the view, of an integer type.
                    unsafe { write_int(y, [i0, i1, i2, i3], *value) };
                }
            }
        }
        values => {
            ensure(!y.dtype.is_integer(), "the result's elements are integers")?;
            let values: Vec<f32> = match values {
                Data::F64(v) => v.iter().map(|&x| x as f32).collect(),
                Data::F32(v) => v.clone(),
                Data::Int(_) => Vec::new(),
            };
            for (i, row) in values.chunks_exact(n).enumerate() {
                // SAFETY: a row of the view, whose type is writable.
                unsafe { write_row(y, y.row(y.indices(i)), 0, row) };
            }
        }
    }
    Ok(())
}

fn failed(e: &ExecError) -> KernelError {
    match *e {
        ExecError::Index { what, index, bound } => KernelError::Index { what, index, bound },
        _ => KernelError::Shape {
            what: "sizes or parameters that the ggml op does not allow",
        },
    }
}
