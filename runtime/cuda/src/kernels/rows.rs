use tpc_ir::Interval;
use tpc_ir::op::{AddId, GetRows, SetRows, SetSlice};

use super::axis;
use super::cells::cell_params;
use super::kernel::{OPERANDS, Request, Selection, Tensor, grid_1d, index, instance, kernel, real};
use super::params::Params;
use super::source::{Arguments, Family};
use super::writable;

pub(super) const FAMILY: Family = Family {
    name: "rows",
    text: concat!(
        include_str!("cells.cuh"),
        "\n#line 1 \"rows.cu\"\n",
        include_str!("rows.cu")
    ),
};

fn window(window: Option<Interval>) -> Result<Params, &'static str> {
    let (start, len) = window.map_or((0, 0), |w| (w.start, w.len));
    Params::new()
        .u32(window.is_some().into())
        .size(start)?
        .size(len)
}

pub(super) fn get_rows(op: &GetRows, request: &Request<'_>) -> Selection {
    let [x, ids] = request.operands else {
        return Err(OPERANDS);
    };
    let y = request.result()?;
    index(ids.dtype)?;
    let template = match x.dtype.is_integer() {
        true => {
            index(y.dtype)?;
            "get_integers"
        }
        false => {
            request.real_result()?;
            "get_rows"
        }
    };
    let types = [x.dtype, ids.dtype, y.dtype];
    let template = instance(FAMILY, template, &types, Arguments::Faults);
    kernel(template, window(op.window)?, grid_1d(y.elements(), request))
}

pub(super) fn add_id(op: &AddId, request: &Request<'_>) -> Selection {
    let [x, bias, ids] = request.operands else {
        return Err(OPERANDS);
    };
    let y = request.real_result()?;
    real(x.dtype)?;
    real(bias.dtype)?;
    index(ids.dtype)?;
    let types = [x.dtype, bias.dtype, ids.dtype, y.dtype];
    let template = instance(FAMILY, "add_id", &types, Arguments::Faults);
    kernel(template, window(op.window)?, grid_1d(y.elements(), request))
}

fn check_update(dst: &Tensor, result: &Tensor, axis: usize) -> Result<(), &'static str> {
    if dst.dtype != result.dtype {
        return Err("the types of destination and result differ");
    }
    if axis == 0 && dst.dtype.is_quantised() {
        return Err("the update may cover only part of a block");
    }
    writable(result.dtype)
}

fn blocks(x: &Tensor, y: &Tensor) -> usize {
    (x.max_dims[0] / y.dtype.block_len() as usize).saturating_mul(x.rows())
}

pub(super) fn set_rows(op: &SetRows, request: &Request<'_>) -> Selection {
    let [dst, x, ids] = request.operands else {
        return Err(OPERANDS);
    };
    let (y, axis) = (request.result()?, axis(op.axis)?);
    check_update(dst, &y, axis)?;
    real(x.dtype)?;
    index(ids.dtype)?;
    let types = [x.dtype, ids.dtype, y.dtype];
    let template = instance(FAMILY, "set_rows", &types, Arguments::Faults);
    let params = cell_params(Params::new().u32(axis as u32), op.cells)?;
    kernel(template, params, grid_1d(blocks(x, &y), request))
}

pub(super) fn set_slice(op: &SetSlice, request: &Request<'_>) -> Selection {
    let [dst, x] = request.operands else {
        return Err(OPERANDS);
    };
    let (y, axis) = (request.result()?, axis(op.axis)?);
    check_update(dst, &y, axis)?;
    real(x.dtype)?;
    let types = [x.dtype, y.dtype];
    let template = instance(FAMILY, "set_slice", &types, Arguments::Params);
    let params = Params::new().u32(axis as u32);
    kernel(template, params, grid_1d(blocks(x, &y), request))
}
