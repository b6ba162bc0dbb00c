use tpc_ir::DType;
use tpc_ir::op::{Arange, Concat, Hadamard, Pad, Permute, Side, Slice, Tri};

use super::axis;
use super::kernel::{Request, Selection, Tensor, float, grid_1d, instance, kernel};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "movement",
    text: include_str!("movement.cu"),
};

fn copy_operands(request: &Request<'_>) -> Result<(Tensor, Tensor), &'static str> {
    let [x] = request.operands else {
        return Err(super::kernel::OPERANDS);
    };
    let y = request.result()?;
    if x.dtype != y.dtype {
        super::kernel::real(x.dtype)?;
        float(y.dtype)?;
    }
    Ok((*x, y))
}

fn blocks(y: &Tensor) -> usize {
    (y.max_dims[0] / y.dtype.block_len() as usize).saturating_mul(y.rows())
}

pub(super) fn flatten(request: &Request<'_>) -> Selection {
    let (x, y) = copy_operands(request)?;
    let template = instance(FAMILY, "flatten", &[x.dtype, y.dtype], Arguments::Views);
    kernel(template, Params::new(), grid_1d(blocks(&y), request))
}

pub(super) fn permute(op: &Permute, request: &Request<'_>) -> Selection {
    let (x, y) = copy_operands(request)?;
    if x.dtype.is_quantised() && op.axes[0] != 0 {
        return Err("axis 0 of a quantised tensor cannot move");
    }
    let mut params = Params::new();
    for to in op.axes {
        params = params.u32(axis(to)? as u32);
    }
    let template = instance(FAMILY, "permute", &[x.dtype, y.dtype], Arguments::Params);
    kernel(template, params, grid_1d(blocks(&y), request))
}

/// Selects the kernel of a slice. The runtime size of the launch is the start.
pub(super) fn slice(op: &Slice, request: &Request<'_>) -> Selection {
    let (x, y) = copy_operands(request)?;
    let template = instance(FAMILY, "slice", &[x.dtype, y.dtype], Arguments::Params);
    let params = Params::new().u32(axis(op.axis)? as u32);
    kernel(template, params, grid_1d(blocks(&y), request))
}

fn same(request: &Request<'_>) -> Result<DType, &'static str> {
    let dtype = request.result()?.dtype;
    let same = request.operands.iter().all(|t| t.dtype == dtype);
    if same {
        Ok(dtype)
    } else {
        Err("the types of operands and result differ")
    }
}

pub(super) fn concat(op: &Concat, request: &Request<'_>) -> Selection {
    let template = instance(FAMILY, "concat", &[same(request)?], Arguments::Params);
    let params = Params::new()
        .u32(axis(op.axis)? as u32)
        .u32(request.operands.len() as u32);
    kernel(
        template,
        params,
        grid_1d(blocks(&request.result()?), request),
    )
}

pub(super) fn repeat(request: &Request<'_>) -> Selection {
    let template = instance(FAMILY, "repeat", &[same(request)?], Arguments::Views);
    let units = grid_1d(blocks(&request.result()?), request);
    kernel(template, Params::new(), units)
}

pub(super) fn pad(op: &Pad, request: &Request<'_>) -> Selection {
    let (dtype, axis) = (same(request)?, axis(op.axis)?);
    let block = if axis == 0 { dtype.block_len() } else { 1 };
    let template = instance(FAMILY, "pad", &[dtype], Arguments::Params);
    let params = Params::new().u32(axis as u32).size(op.before / block)?;
    kernel(
        template,
        params,
        grid_1d(blocks(&request.result()?), request),
    )
}

pub(super) fn tri(op: &Tri, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let keep = match op.keep {
        Side::Lower => 0,
        Side::LowerDiag => 1,
        Side::Upper => 2,
        Side::UpperDiag => 3,
    };
    let template = instance(FAMILY, "tri", &[x.dtype, y.dtype], Arguments::Params);
    let params = Params::new().u64(op.offset).u32(keep).f32(op.fill);
    kernel(template, params, grid_1d(y.elements(), request))
}

pub(super) fn diag(request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "diag", &[x.dtype, y.dtype], Arguments::Views);
    kernel(template, Params::new(), grid_1d(y.elements(), request))
}

pub(super) fn hadamard(op: &Hadamard, request: &Request<'_>) -> Selection {
    let ([], y) = (request.reals()?, request.real_result()?);
    let unit = 1.0 / (op.n as f64).sqrt();
    let template = instance(FAMILY, "hadamard", &[y.dtype], Arguments::Params);
    let params = Params::new().f32(unit as f32);
    kernel(template, params, grid_1d(y.elements(), request))
}

pub(super) fn arange(op: &Arange, request: &Request<'_>) -> Selection {
    let ([], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "arange", &[y.dtype], Arguments::Params);
    let mut params = Params::new().f32(op.start).f32(op.step);
    let held = op.held.as_deref().unwrap_or_default();
    params = params.u64(held.len() as u64);
    let mut first = 0;
    for run in held {
        params = params.u64(first).u64(run.start);
        first += run.len;
    }
    kernel(template, params, grid_1d(y.elements(), request))
}
