use tpc_ir::DType;
use tpc_ir::op::{Norm, NormApply, NormKind, NormStats};

use super::kernel::{
    Geometry, OPERANDS, Request, Selection, Tensor, float, grid_per_row, instance, kernel, real,
};
use super::params::Params;
use super::row_source::{KeepInput, RowSource};
use super::source::{Arguments, Family, tag};

pub(super) const FAMILY: Family = Family {
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

/// The maximum width of a row that is summed over devices. The row and the sums of a block fit in 48 KiB, the shared
/// memory of every kernel.
pub const MAX_ALL_REDUCE_WIDTH: usize = 12000;

fn params(kind: NormKind, eps: f32, n: u64) -> Params {
    norm_params(Params::new(), kind, eps, n)
}

pub(super) fn norm_params(before: Params, kind: NormKind, eps: f32, n: u64) -> Params {
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
        grid_per_row(x.rows(), x.max_dims[0]),
    )
}

fn row_template(
    of: &RowSource,
    operands: &mut &[Tensor],
    params: Params,
) -> Result<(String, Params), &'static str> {
    Ok(match of {
        RowSource::Tensor => (format!("TensorRows<{}>", next_tag(operands)?), params),
        RowSource::Norm(op, of) => {
            let params = norm_params(params, op.kind, op.eps, 0);
            let (inner, params) = row_template(of, operands, params)?;
            (
                format!("NormRows<{inner}, {}>", next_tag(operands)?),
                params,
            )
        }
        RowSource::WeightedSum => {
            let (parts, by) = (next_tag(operands)?, next_tag(operands)?);
            (format!("WeightedSumRows<{parts}, {by}>"), params)
        }
        RowSource::AllReduce(devices) => {
            let (parts, rest) = operands.split_at_checked(*devices).ok_or(OPERANDS)?;
            *operands = rest;
            let fit = |t: &Tensor| t.dtype == DType::F32 && t.max_dims[0] <= MAX_ALL_REDUCE_WIDTH;
            if !parts.iter().all(fit) {
                return Err("a sum over devices is not f32, or its rows exceed shared memory");
            }
            (format!("AllReduceRows<{devices}>"), params)
        }
        RowSource::Add(of) => {
            let (inner, params) = row_template(of, operands, params)?;
            (format!("AddRows<{inner}, {}>", next_tag(operands)?), params)
        }
    })
}

fn next_tag(operands: &mut &[Tensor]) -> Result<&'static str, &'static str> {
    let (first, rest) = operands.split_first().ok_or(OPERANDS)?;
    *operands = rest;
    real(first.dtype)?;
    Ok(tag(first.dtype))
}

fn blocks(of: &RowSource, y: &Tensor) -> Geometry {
    let mut geometry = grid_per_row(y.rows(), y.max_dims[0]);
    if of.reduces() {
        geometry.shared_bytes = 4 * y.max_dims[0] as u32;
    }
    geometry
}

/// Selects the kernel of a norm times the last operand. An optional last result receives the terms of the product.
pub(super) fn norm_mul(
    op: &Norm,
    (of, kept): (&RowSource, KeepInput),
    request: &Request<'_>,
) -> Selection {
    let mut operands = request.operands;
    let (template_of, params) = row_template(of, &mut operands, params(op.kind, op.eps, 0))?;
    let [w] = operands else {
        return Err(OPERANDS);
    };
    real(w.dtype)?;
    let results = match kept {
        KeepInput::Yes => {
            let (first, rest) = request.results.split_first().ok_or(OPERANDS)?;
            if first.dtype != DType::F32 {
                return Err("the kept input of the norm is not f32");
            }
            rest
        }
        KeepInput::No => request.results,
    };
    let (y, terms) = match results {
        [y] => (y, false),
        [y, _] => (y, true),
        _ => return Err("wrong number of results"),
    };
    float(y.dtype)?;
    let template = instance(FAMILY, "norm_mul", &[], Arguments::Params).with(template_of);
    let template = template.with(tag(w.dtype)).with(tag(y.dtype));
    let template = template
        .with(u32::from(kept == KeepInput::Yes))
        .with(u32::from(terms));
    kernel(template, params, blocks(of, y))
}

pub(super) fn mul_sum_add(of: &RowSource, request: &Request<'_>) -> Selection {
    let y = request.real_result()?;
    let mut operands = request.operands;
    let (template_of, params) = row_template(of, &mut operands, params(NormKind::Rms, 0.0, 0))?;
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
        grid_per_row(x.rows(), x.max_dims[0]),
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
        grid_per_row(x.rows(), x.max_dims[0]),
    )
}
