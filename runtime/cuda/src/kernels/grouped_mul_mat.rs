//! Products of several weights with the same activations in one launch.

use tpc_ir::DType;

use super::gemm::{Tile, is_wide};
use super::gemv::{self, GemvPart, is_gemv};
use super::kernel::{Geometry, OPERANDS, Request, Selection, float, kernel, real};
use super::params::Params;
use super::product_template::{
    THREADS, TILE, epilogue, geometry, lanes, product_instance, rows_per_lane,
};
use super::source::{Arguments, tag};

/// `summands` has the number of tensors added to each product.
pub(super) fn grouped_mul_mat(summands: &[usize], request: &Request<'_>) -> Selection {
    let [q, rest @ ..] = request.operands else {
        return Err(OPERANDS);
    };
    if request.results.len() != summands.len() {
        return Err("wrong number of results");
    }
    let (columns, batches) = (q.max_dims[1], q.max_dims[2] * q.max_dims[3]);
    let tiles = columns > 1;
    let gemm = is_wide(q).then(|| {
        let rows = request.results.iter().map(|y| y.max_dims[0]).sum();
        Tile::of(rows, columns, batches)
    });
    let (mut rest, mut blocks, mut params) = (rest, 0_u32, Params::new());
    let (mut parts, mut gemvs, mut operand) = (Vec::new(), Vec::new(), 1);
    for (n, y) in summands.iter().zip(request.results) {
        let [a, behind @ ..] = rest else {
            return Err(OPERANDS);
        };
        let (more, behind) = behind.split_at_checked(*n).ok_or(OPERANDS)?;
        rest = behind;
        float(y.dtype)?;
        more.iter().try_for_each(|t| real(t.dtype))?;
        let (rows, lanes, rows_per_lane) = (a.max_dims[1], lanes(a)?, rows_per_lane(a.max_dims[1]));
        let each = match (gemm, tiles) {
            (Some(tile), _) => tile.rows,
            (None, true) => TILE.0,
            (None, false) => THREADS / lanes * rows_per_lane,
        };
        blocks += geometry((rows, each), 1, 1, THREADS).grid[0];
        params = params.u32(lanes as u32).u32(blocks);
        let types: Vec<DType> = more.iter().map(|t| t.dtype).collect();
        if is_gemv(a, q) {
            gemvs.push(GemvPart {
                operand,
                weight: a,
                added: types.clone(),
                result: y.dtype,
            });
        }
        operand += 1 + n;
        let (planes, of) = (tag(a.dtype), epilogue(&types));
        parts.push(format!(
            "GroupedProduct<{planes}Planes, {of}, {}, {rows_per_lane}>",
            tag(y.dtype)
        ));
    }
    if gemvs.len() == summands.len() {
        return gemv::grouped(&gemvs);
    }
    if let Some(tile) = gemm {
        let sizes = format!("{}, {}", tile.rows, tile.columns);
        let template = product_instance("grouped_gemms", Arguments::Params);
        let template = tile.bounds(template.with(sizes).with(parts.join(", ")));
        let geometry = tile.geometry(blocks as usize, columns, batches);
        return kernel(template, params, geometry);
    }
    let (template, columns, threads) = match tiles {
        true => ("grouped_tiles", columns.div_ceil(TILE.1), TILE.2),
        false => ("grouped_columns", columns, THREADS),
    };
    let template = product_instance(template, Arguments::Params).with(parts.join(", "));
    let template = match tiles {
        true => template,
        false => template.with_weight_prefetch(),
    };
    let all = geometry((1, 1), columns, batches, threads);
    let geometry = Geometry {
        grid: [blocks, all.grid[1], all.grid[2]],
        ..all
    };
    kernel(template, params, geometry)
}
