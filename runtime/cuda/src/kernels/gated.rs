//! Products that gate others.

use tpc_ir::DType;
use tpc_ir::op::{Glu, MulMatId};

use super::kernel::{OPERANDS, Request, Selected, Tensor, float, index, kernel, real};
use super::pointwise;
use super::product::{THREADS, TILE, added, geometry, lanes, of_planes, product_params};
use super::source::{Needs, tag};

/// Threads of a block that makes terms of its results, and the rows that it has at a time at least.
const WITH_TERMS: (usize, usize) = (256, 32);

/// The result, and whether there are terms of it.
fn result(request: &Request<'_>) -> Result<(Tensor, bool), &'static str> {
    let (y, terms) = match request.results {
        [y] => (y, false),
        [y, _] => (y, true),
        _ => return Err("it has another number of results"),
    };
    float(y.dtype)?;
    Ok((*y, terms))
}

/// The threads of a block that has columns of so many lanes, and the rows that it has at a time.
fn shape(lanes: usize, terms: bool) -> (usize, usize) {
    match terms {
        true => (WITH_TERMS.0, (WITH_TERMS.0 / lanes).max(WITH_TERMS.1)),
        false => (THREADS, THREADS / lanes),
    }
}

/// The operands are two weights alike and the terms of the activations: the first product gates the second. Of one weight the first
/// half of the rows gates the second.
pub(super) fn gated(op: &Glu, request: &Request<'_>) -> Selected {
    let (gate, up, q) = match request.operands {
        [gate, up, q] => (gate, Some(up), q),
        [both, q] => (both, None, q),
        _ => return Err(OPERANDS),
    };
    let (y, terms) = result(request)?;
    if up.is_some_and(|up| up != gate) {
        return Err("the weights differ");
    }
    let (function, numbers) = pointwise::gate(op, request.options);
    let (lanes, rows) = (lanes(gate)?, y.most[0]);
    let params = product_params(numbers, lanes, None)?;
    let batches = q.most[2] * q.most[3];
    let (kind, geometry) = if q.most[1] > 1 {
        let (each, wide, threads) = TILE;
        let each = if terms { WITH_TERMS.1 } else { each };
        let columns = q.most[1].div_ceil(wide);
        (
            "gated_tiles",
            geometry((rows, each), columns, batches, threads),
        )
    } else {
        let (threads, each) = shape(lanes, terms);
        // Columns of all batches are counted together.
        ("gated_columns", geometry((rows, each), batches, 1, threads))
    };
    let template = of_planes(kind, gate.dtype, &[], Needs::Params);
    let template = template.with(function).with(tag(y.dtype));
    let template = template.with(u32::from(up.is_none()));
    let template = template.with(u32::from(terms));
    let template = match kind {
        "gated_columns" => template.with_weights_ahead(),
        _ => template,
    };
    kernel(template, params, geometry)
}

/// The same of experts, which the fourth operand names. Behind it is what is added for each expert to the first product, and to the
/// second.
pub(super) fn experts(op: &Glu, of: &MulMatId, request: &Request<'_>) -> Selected {
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
        return Err("the weights differ");
    }
    index(ids.dtype)?;
    let (function, numbers) = pointwise::gate(op, request.options);
    let lanes = lanes(gate)?;
    let params = product_params(numbers, lanes, of.window)?;
    let (threads, each) = shape(lanes, terms);
    let template = of_planes("gated_experts", gate.dtype, &[], Needs::Faults);
    let template = template.with(added(&types));
    let template = template
        .with(function)
        .with(tag(ids.dtype))
        .with(tag(y.dtype));
    let entries = ids.most[0] * ids.most[1];
    kernel(
        template.with(u32::from(terms)),
        params,
        geometry((gate.most[1], each), entries, 1, threads),
    )
}
