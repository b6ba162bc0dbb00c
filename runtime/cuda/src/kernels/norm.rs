//! Normalisation over axis 0.

use tpc_ir::DType;
use tpc_ir::op::{Norm, NormApply, NormKind, NormStats};
use tpc_ir::program::StoredFormat;

use super::kernel::{
    Geometry, OPERANDS, Request, Selection, Tensor, float, instance, kernel, per_row, real,
};
use super::params::Params;
use super::row_source::{KeepInput, RowSource};
use super::source::{Arguments, Family, tag};
use crate::planes::Planes;

const FAMILY: Family = Family {
    name: "norm",
    text: concat!(
        include_str!("terms.cuh"),
        "\n#line 1 \"tree.cuh\"\n",
        include_str!("tree.cuh"),
        "\n#line 1 \"norm.cuh\"\n",
        include_str!("norm.cuh"),
        "\n#line 1 \"norm.cu\"\n",
        include_str!("norm.cu")
    ),
};

/// The most elements of a row that is a sum over devices: those of the shared memory that every kernel has, but for what sums of a
/// block take.
pub const MAX_ALL_REDUCE_WIDTH: usize = 12000;

/// The bytes of the parameters of a norm.
const NORM: usize = 12;

fn params(kind: NormKind, eps: f32, n: u64) -> Params {
    numbers(Params::new(), kind, eps, n)
}

/// Adds the parameters of a norm.
pub(super) fn numbers(before: Params, kind: NormKind, eps: f32, n: u64) -> Params {
    let kind = match kind {
        NormKind::Rms => 0,
        NormKind::Layer => 1,
        NormKind::L2 => 2,
    };
    before.u32(kind).f32(eps).f32(n as f32)
}

pub(super) fn norm(op: &Norm, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "norm", &[x.dtype, y.dtype], Arguments::Params);
    kernel(
        template,
        params(op.kind, op.eps, 0),
        per_row(x.rows(), x.max_dims[0]),
    )
}

/// The template of what is normalised, on the operands that it has: it takes them off. Norms within put their parameters behind.
fn rows(
    of: &RowSource,
    operands: &mut &[Tensor],
    params: Params,
) -> Result<(String, Params), &'static str> {
    Ok(match of {
        RowSource::Tensor => (format!("TensorRows<{}>", next(operands)?), params),
        RowSource::Norm(op, of) => {
            let params = numbers(params, op.kind, op.eps, 0);
            let (inner, params) = rows(of, operands, params)?;
            (format!("NormRows<{inner}, {}>", next(operands)?), params)
        }
        RowSource::WeightedSum => {
            let (parts, by) = (next(operands)?, next(operands)?);
            (format!("WeightedSumRows<{parts}, {by}>"), params)
        }
        RowSource::AllReduce(devices) => {
            let (parts, rest) = operands.split_at_checked(*devices).ok_or(OPERANDS)?;
            *operands = rest;
            let fit = |t: &Tensor| t.dtype == DType::F32 && t.max_dims[0] <= MAX_ALL_REDUCE_WIDTH;
            if !parts.iter().all(fit) {
                return Err("sums over devices are of f32, and of rows that shared memory holds");
            }
            (format!("AllReduceRows<{devices}>"), params)
        }
        RowSource::Add(of) => {
            let (inner, params) = rows(of, operands, params)?;
            (format!("AddRows<{inner}, {}>", next(operands)?), params)
        }
    })
}

/// The type of the next operand, which is taken off.
fn next(operands: &mut &[Tensor]) -> Result<&'static str, &'static str> {
    let (first, rest) = operands.split_first().ok_or(OPERANDS)?;
    *operands = rest;
    real(first.dtype)?;
    Ok(tag(first.dtype))
}

/// A block for each row of a result, with room for what it reads of several devices.
fn blocks(of: &RowSource, y: &Tensor) -> Geometry {
    let mut geometry = per_row(y.rows(), y.max_dims[0]);
    if of.reduces() {
        geometry.shared_bytes = 4 * y.max_dims[0] as u32;
    }
    geometry
}

/// A norm times the last operand; a result more than what it keeps and the product is the terms of the product.
pub(super) fn norm_mul(
    op: &Norm,
    (of, kept): (&RowSource, KeepInput),
    request: &Request<'_>,
) -> Selection {
    let mut operands = request.operands;
    let (template_of, params) = rows(of, &mut operands, params(op.kind, op.eps, 0))?;
    let (w, next) = match operands {
        [w] => (w, None),
        [w, next] => (w, Some(next)),
        _ => return Err(OPERANDS),
    };
    real(w.dtype)?;
    let results = match kept {
        KeepInput::Yes => {
            let (first, rest) = request.results.split_first().ok_or(OPERANDS)?;
            if first.dtype != DType::F32 {
                return Err("what is normalised is kept as f32");
            }
            rest
        }
        KeepInput::No => request.results,
    };
    let (y, terms) = match results {
        [y] => (y, false),
        [y, _] => (y, true),
        _ => return Err("it has another number of results"),
    };
    float(y.dtype)?;
    let template = instance(FAMILY, "norm_mul", &[], Arguments::Params).with(template_of);
    let template = template.with(tag(w.dtype)).with(tag(y.dtype));
    let template = template
        .with(u32::from(kept == KeepInput::Yes))
        .with(u32::from(terms))
        .with(u32::from(next.is_some()));
    let mut geometry = blocks(of, y);
    let Some(next) = next else {
        return kernel(template, params, geometry);
    };
    let (more, bytes) = ahead(next, y.rows(), request)?;
    geometry.grid[0] += more;
    // Behind the parameters of two norms.
    let params = params.aligned(2 * NORM);
    kernel(template, params.u32(more).u32(bytes), geometry)
}

/// The blocks that ask for the weights of the next launch, and the bytes that they ask for: where few rows leave the device idle.
fn ahead(next: &Tensor, rows: usize, request: &Request<'_>) -> Result<(u32, u32), &'static str> {
    /// RowSource of a norm up to which it does so: products of more tokens wait for other things than for memory.
    const ROWS: usize = 8;
    /// The most bytes: a part of what L2 holds, which this and the next launch read, too.
    const BYTES: u64 = 8 << 20;
    let planes =
        Planes::new(next.dtype, next.max_dims[0]).filter(|_| next.format == StoredFormat::Planes);
    let planes = planes.ok_or("what comes next is no weight in planes")?;
    let (_, bytes) = planes
        .offsets(next.rows() as u64)
        .ok_or("its weight is too large")?;
    match rows <= ROWS {
        true => Ok((request.multiprocessors.max(1), bytes.min(BYTES) as u32)),
        false => Ok((0, 0)),
    }
}

/// What could be normalised, alone.
pub(super) fn mul_sum_add(of: &RowSource, request: &Request<'_>) -> Selection {
    let y = request.real_result()?;
    let mut operands = request.operands;
    let (template_of, params) = rows(of, &mut operands, params(NormKind::Rms, 0.0, 0))?;
    if !operands.is_empty() {
        return Err(OPERANDS);
    }
    let template = instance(FAMILY, "mul_sum_add", &[], Arguments::Params).with(template_of);
    kernel(template.with(tag(y.dtype)), params, blocks(of, &y))
}

pub(super) fn norm_stats(op: &NormStats, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "norm_stats", &[x.dtype, y.dtype], Arguments::Params);
    kernel(
        template,
        params(op.kind, 0.0, 0),
        per_row(x.rows(), x.max_dims[0]),
    )
}

pub(super) fn norm_apply(op: &NormApply, request: &Request<'_>) -> Selection {
    let ([x, stats], y) = (request.reals()?, request.real_result()?);
    float(stats.dtype)?;
    let types = [x.dtype, stats.dtype, y.dtype];
    let template = instance(FAMILY, "norm_apply", &types, Arguments::Params);
    kernel(
        template,
        params(op.kind, op.eps, op.n),
        per_row(x.rows(), x.max_dims[0]),
    )
}
