//! Selects kernels of products with weights in planes, and of the int8 terms of activations.

use tpc_ir::op::{GetRows, MulMatId};
use tpc_ir::{DType, Interval};

use super::expert_gemm;
use super::gemm::{Tile, is_wide};
use super::gemv::{self, GemvPart, is_gemv};
use super::kernel::{OPERANDS, Request, Selection, Tensor, grid_1d, index, instance, kernel, real};
use super::params::Params;
use super::product_template::{
    FAMILY, THREADS, TILE, epilogue, geometry, lanes, plane_instance, product_params, rows_per_lane,
};
use super::source::{Arguments, Instance, tag};
use crate::planes::Planes;

/// The layout of the int8 terms of activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The bytes of a column.
    pub column: usize,
}

impl Terms {
    /// Returns the layout for columns of `k` elements.
    pub const fn of(k: usize) -> Terms {
        let pairs = k.div_ceil(64);
        let tiles = pairs.div_ceil(Planes::TILE);
        Terms {
            column: tiles * Planes::TILE * 160,
        }
    }
}

/// Selects the kernel that splits activations into int8 terms. The result has the sizes of the activations and columns
/// of [`Terms`]. Returns the reason, a clause.
pub(super) fn terms(request: &Request<'_>) -> Selection {
    let [x] = request.reals()?;
    let template = instance(FAMILY, "terms", &[x.dtype], Arguments::Views);
    /// Lanes per group of 32 elements.
    const LANES: usize = 8;
    let groups = x.max_dims[0].div_ceil(64) * 2;
    let units = groups.saturating_mul(x.rows()).saturating_mul(LANES);
    kernel(template, Params::new(), grid_1d(units, request))
}

fn params(lanes: usize, window: Option<Interval>) -> Result<Params, &'static str> {
    product_params(Params::new(), lanes, window)
}

enum ProductLaunch {
    Gemm(Tile),
    Tiles,
    Columns(usize),
}

/// Selects the kernel of a weight times terms. The `*` in the template name becomes `gemm`, `tiles` or `columns`. `rest` has
/// the template arguments after the weight type.
fn product(
    (template, rest): (&str, &[String]),
    [a, q]: [&Tensor; 2],
    params: Params,
    rows_per_lane: usize,
) -> Selection {
    let (rows, columns, batches) = (a.max_dims[1], q.max_dims[1], q.max_dims[2] * q.max_dims[3]);
    let lanes = lanes(a)?;
    let by = if is_wide(q) {
        ProductLaunch::Gemm(Tile::of(rows, columns, batches))
    } else if columns > 1 {
        ProductLaunch::Tiles
    } else {
        ProductLaunch::Columns(rows_per_lane)
    };
    let kind = match by {
        ProductLaunch::Gemm(_) => "gemm",
        ProductLaunch::Tiles => "tiles",
        ProductLaunch::Columns(_) => "columns",
    };
    let name = template.replace('*', kind);
    let arguments = match by {
        ProductLaunch::Gemm(_) => Arguments::Views,
        ProductLaunch::Tiles | ProductLaunch::Columns(_) => Arguments::Params,
    };
    let first = plane_instance(&name, a.dtype, &[], arguments);
    let template = rest.iter().fold(first, Instance::with);
    match by {
        ProductLaunch::Gemm(tile) => {
            let geometry = tile.geometry(rows.div_ceil(tile.rows), columns, batches);
            kernel(tile.instance(template), params, geometry)
        }
        ProductLaunch::Tiles => {
            let (each, wide, threads) = TILE;
            let geometry = geometry((rows, each), columns.div_ceil(wide), batches, threads);
            kernel(template, params, geometry)
        }
        ProductLaunch::Columns(rows_per_lane) => {
            let each = THREADS / lanes * rows_per_lane;
            let geometry = geometry((rows, each), columns, batches, THREADS);
            kernel(
                template.with(rows_per_lane).with_weight_prefetch(),
                params,
                geometry,
            )
        }
    }
}

/// The product alone, if warps compute it.
fn gemv_of(a: &Tensor, q: &Tensor, added: Vec<DType>, y: &Tensor) -> Option<Selection> {
    is_gemv(a, q).then(|| {
        gemv::gemv(&GemvPart {
            operand: 0,
            weight: a,
            added,
            result: y.dtype,
        })
    })
}

pub(super) fn mul_mat(request: &Request<'_>) -> Selection {
    let [a, q] = request.operands else {
        return Err(OPERANDS);
    };
    let y = request.real_result()?;
    if let Some(found) = gemv_of(a, q, Vec::new(), &y) {
        return found;
    }
    let params = params(lanes(a)?, None)?;
    let rest = [tag(y.dtype).to_owned()];
    product(
        ("plane_*", &rest),
        [a, q],
        params,
        rows_per_lane(a.max_dims[1]),
    )
}

pub(super) fn mul_mat_add(request: &Request<'_>) -> Selection {
    let [a, q, more @ ..] = request.operands else {
        return Err(OPERANDS);
    };
    let y = request.real_result()?;
    more.iter().try_for_each(|t| real(t.dtype))?;
    let params = params(lanes(a)?, None)?;
    let types: Vec<DType> = more.iter().map(|t| t.dtype).collect();
    if let Some(found) = gemv_of(a, q, types.clone(), &y) {
        return found;
    }
    let rest = [epilogue(&types), tag(y.dtype).to_owned()];
    product(
        ("plane_*_add", &rest),
        [a, q],
        params,
        rows_per_lane(a.max_dims[1]),
    )
}

/// Operands: weight, terms of the activations, expert indices, and optional biases per expert.
pub(super) fn mul_mat_id(op: &MulMatId, request: &Request<'_>) -> Selection {
    let [a, _, ids, more @ ..] = request.operands else {
        return Err(OPERANDS);
    };
    let y = request.real_result()?;
    index(ids.dtype)?;
    more.iter().try_for_each(|t| real(t.dtype))?;
    if expert_gemm::is_wide(ids) {
        return expert_gemm::mul_mat_id(op, request);
    }
    let (rows, lanes) = (a.max_dims[1], lanes(a)?);
    let rows_per_lane = rows_per_lane(rows);
    let types: Vec<DType> = more.iter().map(|t| t.dtype).collect();
    let template = plane_instance("plane_experts", a.dtype, &[], Arguments::Faults);
    let template = template.with(epilogue(&types));
    let template = template.with(tag(ids.dtype)).with(tag(y.dtype));
    let entries = ids.max_dims[0] * ids.max_dims[1];
    kernel(
        template.with(rows_per_lane),
        params(lanes, op.window)?,
        geometry((rows, THREADS / lanes * rows_per_lane), entries, 1, THREADS),
    )
}

pub(super) fn get_rows(op: &GetRows, request: &Request<'_>) -> Selection {
    let [a, ids] = request.operands else {
        return Err(OPERANDS);
    };
    let y = request.real_result()?;
    real(a.dtype)?;
    index(ids.dtype)?;
    let (start, len) = op.window.map_or((0, 0), |w| (w.start, w.len));
    let set = Params::new().u32(op.window.is_some().into());
    let params = set.size(start)?.size(len)?;
    let types = [ids.dtype, y.dtype];
    let template = plane_instance("plane_rows", a.dtype, &types, Arguments::Faults);
    kernel(template, params, grid_1d(y.elements(), request))
}

pub(super) fn in_planes(request: &Request<'_>) -> bool {
    let first = request.operands.first();
    first.is_some_and(|a| a.format == Planes::FORMAT)
}
