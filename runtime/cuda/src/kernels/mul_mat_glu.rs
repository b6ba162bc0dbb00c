use tpc_ir::DType;
use tpc_ir::op::{Glu, MulMatId};

use super::expert_gemm::{self, ExpertTiles};
use super::gemm::{Tile, is_wide};
use super::gemv::{self, is_gemv};
use super::kernel::{OPERANDS, Request, Selection, Tensor, float, index, kernel, real};
use super::pointwise;
use super::product_template::{
    THREADS, TILE, epilogue, geometry, lanes, plane_instance, product_params,
};
use super::source::{Arguments, tag};

/// For a block that writes terms: the number of threads, and the minimum number of rows computed at a time.
const WITH_TERMS: (usize, usize) = (256, 32);

fn result(request: &Request<'_>) -> Result<(Tensor, bool), &'static str> {
    let (y, terms) = match request.results {
        [y] => (y, false),
        [y, _] => (y, true),
        _ => return Err("wrong number of results"),
    };
    float(y.dtype)?;
    Ok((*y, terms))
}

fn shape(lanes: usize, terms: bool) -> (usize, usize) {
    match terms {
        true => (WITH_TERMS.0, (WITH_TERMS.0 / lanes).max(WITH_TERMS.1)),
        false => (THREADS, THREADS / lanes),
    }
}

/// Operands: two weights of the same shape and type (gate first), or one weight whose first half of rows is the gate.
/// The int8 terms of the activations follow.
pub(super) fn mul_mat_glu(op: &Glu, request: &Request<'_>) -> Selection {
    let (gate, up, q) = match request.operands {
        [gate, up, q] => (gate, Some(up), q),
        [both, q] => (both, None, q),
        _ => return Err(OPERANDS),
    };
    let (y, terms) = result(request)?;
    if up.is_some_and(|up| up != gate) {
        return Err("the weights differ in type, shape or storage format");
    }
    let (function, numbers) = pointwise::gate(op, request.options);
    let (lanes, rows) = (lanes(gate)?, y.max_dims[0]);
    if is_gemv(gate, q) && gemv::has_gated(rows) {
        return gemv::gated(op, (gate, up), (&y, terms), request);
    }
    let params = product_params(numbers, lanes, None)?;
    let batches = q.max_dims[2] * q.max_dims[3];
    let gemm = is_wide(q).then(|| Tile::of(2 * rows, q.max_dims[1], batches));
    let (kind, geometry) = if let Some(tile) = gemm {
        let blocks = rows.div_ceil(tile.rows / 2);
        ("glu_gemm", tile.geometry(blocks, q.max_dims[1], batches))
    } else if q.max_dims[1] > 1 {
        let (each, wide, threads) = TILE;
        let each = if terms { WITH_TERMS.1 } else { each };
        let columns = q.max_dims[1].div_ceil(wide);
        (
            "glu_tiles",
            geometry((rows, each), columns, batches, threads),
        )
    } else {
        let (threads, each) = shape(lanes, terms);
        // Columns are counted over all batches.
        ("glu_columns", geometry((rows, each), batches, 1, threads))
    };
    let template = plane_instance(kind, gate.dtype, &[], Arguments::Params);
    let template = template.with(function).with(tag(y.dtype));
    let template = template.with(u32::from(up.is_none()));
    let template = template.with(u32::from(terms));
    let template = match (gemm, kind) {
        (Some(tile), _) => tile.instance(template),
        (None, "glu_columns") => template.with_weight_prefetch(),
        (None, _) => template,
    };
    kernel(template, params, geometry)
}

/// The fourth operand has the expert indices. Optional operands 5 and 6 are the biases of both products per expert.
pub(super) fn mul_mat_id_glu(op: &Glu, of: &MulMatId, request: &Request<'_>) -> Selection {
    let [gate, up, _, ids, more @ ..] = request.operands else {
        return Err(OPERANDS);
    };
    let types: Vec<DType> = match more {
        [] => Vec::new(),
        [a, b] if a.dtype == b.dtype => vec![a.dtype],
        _ => return Err(OPERANDS),
    };
    types.iter().try_for_each(|t| real(*t))?;
    let (y, terms) = result(request)?;
    if gate != up {
        return Err("the weights differ in type, shape or storage format");
    }
    index(ids.dtype)?;
    let (function, numbers) = pointwise::gate(op, request.options);
    if expert_gemm::is_wide(ids) {
        let tiles = ExpertTiles::new(gate, ids);
        let template = plane_instance("glu_experts_gemm", gate.dtype, &[], Arguments::Params);
        let template = template.with(epilogue(&types)).with(function);
        let template = template.with(tag(y.dtype)).with(u32::from(terms));
        let params = tiles.params(numbers, of)?;
        let geometry = tiles.geometry(gate.max_dims[1], 2);
        let kernel = kernel(tiles.instance(template), params, geometry)?;
        return Ok(kernel.with_scratch(tiles.scratch(0)));
    }
    let lanes = lanes(gate)?;
    let params = product_params(numbers, lanes, of.window)?;
    let (threads, each) = shape(lanes, terms);
    let template = plane_instance("glu_experts", gate.dtype, &[], Arguments::Faults);
    let template = template.with(epilogue(&types));
    let template = template
        .with(function)
        .with(tag(ids.dtype))
        .with(tag(y.dtype));
    let entries = ids.max_dims[0] * ids.max_dims[1];
    kernel(
        template.with(u32::from(terms)),
        params,
        geometry((gate.max_dims[1], each), entries, 1, threads),
    )
}
