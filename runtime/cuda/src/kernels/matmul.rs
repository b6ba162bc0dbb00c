//! Selects kernels of products with weights in the layout of the file.

use tpc_ir::op::MulMatId;
use tpc_ir::{DType, Interval};

use super::kernel::{
    GRID, Geometry, OPERANDS, Request, Selection, Tensor, index, instance, kernel, lanes, real,
};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "matmul",
    text: concat!(
        "#line 1 \"experts.cuh\"\n",
        include_str!("experts.cuh"),
        "\n#line 1 \"matmul.cu\"\n",
        include_str!("matmul.cu")
    ),
};

/// The columns per thread if the result has several columns.
const COLUMNS: usize = 8;
/// The minimum number of elements of K per lane.
const EACH: usize = 64;
const THREADS: usize = 128;

fn params(lanes: usize, window: Option<Interval>) -> Result<Params, &'static str> {
    let (start, len) = window.map_or((0, 0), |w| (w.start, w.len));
    let params = Params::new().u32(lanes as u32).size(start)?.size(len)?;
    Ok(params.u32(window.is_some().into()))
}

/// Returns a grid for the rows and columns of a result, in batches. For expert products, columns are entries of the
/// ids.
fn geometry(rows: usize, lanes: usize, columns: usize, batches: usize) -> Geometry {
    let threads = (rows * lanes).next_multiple_of(32).clamp(32, THREADS);
    let blocks = rows.div_ceil(threads / lanes).max(1);
    Geometry {
        grid: [
            blocks.min(u32::MAX as usize / 2) as u32,
            columns.clamp(1, GRID) as u32,
            batches.clamp(1, GRID) as u32,
        ],
        threads: threads as u32,
        shared_bytes: 0,
    }
}

pub(super) fn mul_mat(request: &Request<'_>) -> Selection {
    let [a, b] = request.reals()?;
    product("mul_mat", [a, b], &[], request)
}

pub(super) fn mul_mat_add(request: &Request<'_>) -> Selection {
    let [a, b, more] = request.reals()?;
    product("mul_mat_add", [a, b], &[more.dtype], request)
}

fn product(
    template: &str,
    [a, b]: [Tensor; 2],
    more: &[DType],
    request: &Request<'_>,
) -> Selection {
    let y = request.real_result()?;
    let columns_per_lane = if b.max_dims[1] == 1 { 1 } else { COLUMNS };
    let types = [&[a.dtype, b.dtype][..], more, &[y.dtype]].concat();
    let template =
        instance(FAMILY, template, &types, Arguments::Params).with(columns_per_lane.to_string());
    let lanes = lanes(a.max_dims[0], EACH);
    let geometry = geometry(
        a.max_dims[1],
        lanes,
        b.max_dims[1].div_ceil(columns_per_lane),
        b.max_dims[2] * b.max_dims[3],
    );
    kernel(template, params(lanes, None)?, geometry)
}

pub(super) fn mul_mat_id(op: &MulMatId, request: &Request<'_>) -> Selection {
    let [a, b, ids] = request.operands else {
        return Err(OPERANDS);
    };
    let y = request.real_result()?;
    real(a.dtype)?;
    real(b.dtype)?;
    index(ids.dtype)?;
    let types = [a.dtype, b.dtype, ids.dtype, y.dtype];
    let template = instance(FAMILY, "mul_mat_id", &types, Arguments::Faults);
    let lanes = lanes(a.max_dims[0], EACH);
    let geometry = geometry(a.max_dims[1], lanes, ids.max_dims[0] * ids.max_dims[1], 1);
    kernel(template, params(lanes, op.window)?, geometry)
}
