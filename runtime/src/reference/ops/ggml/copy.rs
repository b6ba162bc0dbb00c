use tpc_ir::RANK;
use tpc_ir::op::MemoryView;

use super::Function;
use super::call::Call;
use crate::error::ExecError;
use crate::tensor::{Data, Shape, Tensor, buffer, count};

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("dup", converted),
    ("cpy", converted),
    ("cont", converted),
    ("view", converted),
    ("uninitialised", zeros),
    ("get_rows", rows),
    ("set", |call| placed(call, |_, new| new)),
    ("acc", |call| placed(call, |old, new| old + new)),
];

fn converted(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call
        .operand(0)
        .ok_or_else(|| call.refused("a source is missing"))?;
    let elements = count(call.result.dims)?;
    call.ensure(elements == x.len(), "numbers of elements differ")?;
    match (x.data(), call.result.dtype.is_integer()) {
        (Data::Int(v), true) => Tensor::ints_of(call.result.dims, v.clone()),
        _ => call.elements(call.array(0)?.data.into_owned()),
    }
}

fn zeros(call: &Call<'_>) -> Result<Tensor, ExecError> {
    Tensor::zeros(call.result)
}

fn rows(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (x, at) = (call.array(0)?, call.integers(1)?);
    let [n, r, p, q] = call.result.dims;
    let fits = x.ne[0] == n && x.ne[2..] == [p, q] && at.len() == r * p * q;
    call.ensure(fits, "table and index sizes do not fit")?;
    let bound = x.ne[1];
    if let Some(&index) = at.iter().find(|&&i| i < 0 || i >= bound as i64) {
        let what = "row";
        return Err(ExecError::Index { what, index, bound });
    }
    let index = |i: [i64; RANK]| at[((i[3] as usize * p) + i[2] as usize) * r + i[1] as usize];
    call.filled(|i| x.at([i[0], index(i), i[2], i[3]]))
}

/// Replaces a view of the first source. Words: three strides and an offset in bytes.
fn placed(call: &Call<'_>, f: impl Fn(f64, f64) -> f64) -> Result<Tensor, ExecError> {
    let missing = || call.refused("a source is missing");
    let old = call.operand(0).ok_or_else(missing)?;
    let new = call.operand(1).ok_or_else(missing)?;
    let dtype = call.result.dtype;
    let byte = |index: usize| {
        let word = u64::try_from(call.word(index));
        word.map_err(|_| call.refused("a stride is negative"))
    };
    let view = MemoryView {
        memory: dtype,
        dtype,
        ne: new.dims().map(|n| n as u64),
        nb: [dtype.block_bytes(), byte(0)?, byte(1)?, byte(2)?],
        offset: byte(3)?,
    };
    let at = positions(&view, old.len())?;
    let mut out = call.array(0)?.data.into_owned();
    let new = call.array(1)?.data;
    at.iter()
        .zip(new.iter())
        .for_each(|(&i, &x)| out[i] = f(out[i], x));
    call.elements(out)
}

pub(super) fn sizes(view: &MemoryView) -> Result<[usize; RANK], ExecError> {
    let mut out = [0; RANK];
    for (out, n) in out.iter_mut().zip(view.ne) {
        *out = usize::try_from(n).map_err(|_| outside(view))?;
    }
    Ok(out)
}

fn outside(view: &MemoryView) -> ExecError {
    ExecError::Parameter {
        what: format!(
            "a view of {:?} elements with strides {:?} from byte {} on, beyond the memory",
            view.ne, view.nb, view.offset
        ),
    }
}

/// Returns the positions of a view's elements in a memory of `elements` elements, in order.
fn positions(view: &MemoryView, elements: usize) -> Result<Vec<usize>, ExecError> {
    if view.memory != view.dtype {
        return Err(ExecError::Parameter {
            what: format!("a view of {} as {}", view.memory, view.dtype),
        });
    }
    let (len, bytes) = (view.dtype.block_len(), view.dtype.block_bytes());
    let dims = sizes(view)?;
    let mut out = buffer(dims)?;
    let [n0, n1, n2, n3] = view.ne;
    for i3 in 0..n3 {
        for i2 in 0..n2 {
            for i1 in 0..n1 {
                for i0 in 0..n0 {
                    let steps = [i0 / len, i1, i2, i3].into_iter().zip(view.nb);
                    let at = steps.fold(view.offset, |at, (i, nb)| {
                        at.saturating_add(i.saturating_mul(nb))
                    });
                    let element = at / bytes * len + i0 % len;
                    let element = usize::try_from(element).ok();
                    let within = element.filter(|&e| e < elements && at.is_multiple_of(bytes));
                    out.push(within.ok_or_else(|| outside(view))?);
                }
            }
        }
    }
    Ok(out)
}

pub(super) fn through(
    view: &MemoryView,
    operands: &[&Tensor],
    result: Shape,
) -> Result<Tensor, ExecError> {
    let &[memory] = operands else {
        return Err(outside(view));
    };
    let at = positions(view, memory.len())?;
    let data = match memory.data() {
        Data::F64(v) => Data::F64(at.iter().map(|&i| v[i]).collect()),
        Data::F32(v) => Data::F32(at.iter().map(|&i| v[i]).collect()),
        Data::Int(v) => Data::Int(at.iter().map(|&i| v[i]).collect()),
    };
    Tensor::new(result.dims, data)
}

pub(super) fn written(
    view: &MemoryView,
    old: &Tensor,
    new: &Tensor,
    result: Shape,
) -> Result<Tensor, ExecError> {
    let at = positions(view, old.len())?;
    if at.len() != new.len() {
        return Err(outside(view));
    }
    let data = match (old.data(), new.data()) {
        (Data::Int(old), Data::Int(new)) => {
            let mut out = old.clone();
            at.iter().zip(new).for_each(|(&i, &x)| out[i] = x);
            Data::Int(out)
        }
        _ => {
            let mut out = old.reals()?.into_owned();
            let new = new.reals()?;
            at.iter().zip(new.iter()).for_each(|(&i, &x)| out[i] = x);
            Data::F64(out)
        }
    };
    Tensor::new(result.dims, data)
}
