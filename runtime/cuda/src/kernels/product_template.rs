//! Source, templates, parameters and geometry that products with weights in planes share.

use tpc_ir::{DType, Interval};

use super::kernel::{GRID, Geometry, Tensor, instance};
use super::params::Params;
use super::source::{Arguments, Family, Instance, tag};
use crate::planes::Planes;

pub(super) const FAMILY: Family = Family {
    name: "product",
    text: concat!(
        include_str!("pointwise.cuh"),
        "\n#line 1 \"experts.cuh\"\n",
        include_str!("experts.cuh"),
        "\n#line 1 \"terms.cuh\"\n",
        include_str!("terms.cuh"),
        "\n#line 1 \"planes.cuh\"\n",
        include_str!("planes.cuh"),
        "\n#line 1 \"product.cu\"\n",
        include_str!("product.cu"),
        "\n#line 1 \"gemv.cuh\"\n",
        include_str!("gemv.cuh"),
        "\n#line 1 \"halves.cuh\"\n",
        include_str!("halves.cuh"),
        "\n#line 1 \"gemm.cuh\"\n",
        include_str!("gemm.cuh"),
        "\n#line 1 \"expert_gemm.cuh\"\n",
        include_str!("expert_gemm.cuh"),
        "\n#line 1 \"grouped_mul_mat.cu\"\n",
        include_str!("grouped_mul_mat.cu"),
        "\n#line 1 \"mul_mat_glu.cu\"\n",
        include_str!("mul_mat_glu.cu"),
        "\n#line 1 \"mul_mat_id_sum.cu\"\n",
        include_str!("mul_mat_id_sum.cu")
    ),
};

pub(super) const THREADS: usize = 128;
pub(super) const TILE: (usize, usize, usize) = (16, 8, 256);
/// Weights with at least this number of rows use two rows per lane. A lane then loads the terms once for both rows, and
/// the grid still has enough blocks for any device.
const TWO_ROWS: usize = 4096;

pub(super) fn plane_instance(
    template: &str,
    planes: DType,
    types: &[DType],
    arguments: Arguments,
) -> Instance {
    let first = instance(FAMILY, template, &[], arguments).with(format!("{}Planes", tag(planes)));
    types.iter().fold(first, |i, t| i.with(tag(*t)))
}

/// Returns the lanes per row: the largest power of two that exceeds neither 32 nor the number of pairs.
pub(super) fn lanes(a: &Tensor) -> Result<usize, &'static str> {
    let planes = Planes::new(a.dtype, a.max_dims[0]);
    let planes = planes.ok_or("planes do not support this type and row size")?;
    Ok(1 << planes.pairs().ilog2().min(5))
}

/// Appends `ProductParams`: the lanes per row, and the window of experts.
pub(super) fn product_params(
    before: Params,
    lanes: usize,
    window: Option<Interval>,
) -> Result<Params, &'static str> {
    let (start, len) = window.map_or((0, 0), |w| (w.start, w.len));
    let params = before.u32(lanes as u32).size(start)?.size(len)?;
    Ok(params.u32(window.is_some().into()))
}

pub(super) fn product_instance(template: &str, arguments: Arguments) -> Instance {
    instance(FAMILY, template, &[], arguments)
}

pub(super) fn epilogue(types: &[DType]) -> String {
    let one = |rest: String, t: &DType| format!("AddTensor<{}, {rest}>", tag(*t));
    types.iter().rev().fold("NoEpilogue".to_owned(), one)
}

/// Returns a grid whose blocks compute `each` rows of `columns` columns (or entries of the ids), in batches.
pub(super) fn geometry(
    (rows, each): (usize, usize),
    columns: usize,
    batches: usize,
    threads: usize,
) -> Geometry {
    Geometry {
        grid: [
            rows.div_ceil(each).clamp(1, u32::MAX as usize / 2) as u32,
            columns.clamp(1, GRID) as u32,
            batches.clamp(1, GRID) as u32,
        ],
        threads: threads as u32,
        shared_bytes: 0,
    }
}

pub(super) const fn rows_per_lane(rows: usize) -> usize {
    if rows >= TWO_ROWS { 2 } else { 1 }
}
