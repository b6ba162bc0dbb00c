//! Products of weights in planes with one column: `gemv.cuh`. The weights are kernel arguments.

use tpc_ir::DType;
use tpc_ir::op::Glu;

use super::kernel::{Geometry, Request, Selection, Tensor, kernel};
use super::params::Params;
use super::pointwise;
use super::product_template::{THREADS, epilogue, plane_instance, product_instance};
use super::source::{Arguments, tag};
use super::weight_argument::WeightArgument;
use crate::planes::Planes;

const WARP: usize = 32;

/// The threads of a block that writes the terms of 32 rows.
const TERMS_THREADS: usize = 256;
/// The rows of each weight that a warp computes at a time in a gated product.
const GATED_ROWS: usize = 2;

/// True if warps compute the product: one column, one matrix, and at least one pair of each row for each lane.
pub(super) fn is_gemv(a: &Tensor, q: &Tensor) -> bool {
    let one = |t: &Tensor, from: usize| t.max_dims[from..].iter().all(|n| *n == 1);
    let planes = Planes::new(a.dtype, a.max_dims[0]);
    one(q, 1) && one(a, 2) && a.max_dims[1] > 0 && planes.is_some_and(|p| p.pairs() >= WARP)
}

/// True if rows have a last tile of fewer than 32 pairs.
fn has_tail(a: &Tensor) -> bool {
    let planes = Planes::new(a.dtype, a.max_dims[0]);
    planes.is_some_and(|p| !p.pairs().is_multiple_of(Planes::TILE))
}

/// Returns the rows per warp. More rows share the loads of activations, fewer rows give more warps.
const fn rows_per_warp(rows: usize) -> usize {
    match rows {
        4096.. => 4,
        2048.. => 2,
        _ => 1,
    }
}

/// One product of a launch: the weight and its operand, the types of the added tensors, and the type of the result.
pub(super) struct GemvPart<'a> {
    pub(super) operand: usize,
    pub(super) weight: &'a Tensor,
    pub(super) added: Vec<DType>,
    pub(super) result: DType,
}

impl GemvPart<'_> {
    fn blocks(&self) -> usize {
        let rows = self.weight.max_dims[1];
        rows.div_ceil(THREADS / WARP * rows_per_warp(rows))
    }

    /// Returns the template arguments after the weight type.
    fn arguments(&self) -> [String; 4] {
        let rows = rows_per_warp(self.weight.max_dims[1]);
        [
            epilogue(&self.added),
            tag(self.result).to_owned(),
            u32::from(has_tail(self.weight)).to_string(),
            rows.to_string(),
        ]
    }

    fn argument(&self, blocks: usize) -> Result<WeightArgument, &'static str> {
        let rows = 0..self.weight.max_dims[1] as u64;
        WeightArgument::new(argument(self.operand, self.weight), rows, blocks)
    }
}

const fn argument(operand: usize, weight: &Tensor) -> (usize, DType, [usize; 4]) {
    (operand, weight.dtype, weight.max_dims)
}

fn geometry(blocks: usize, threads: usize) -> Result<Geometry, &'static str> {
    let blocks = u32::try_from(blocks).ok().filter(|n| *n <= u32::MAX / 2);
    Ok(Geometry {
        grid: [blocks.ok_or("the weight has too many rows")?, 1, 1],
        threads: threads as u32,
        shared_bytes: 0,
    })
}

/// Selects the kernel of one product.
pub(super) fn gemv(part: &GemvPart<'_>) -> Selection {
    let template = plane_instance("gemv", part.weight.dtype, &[], Arguments::Weights(1));
    let template = part
        .arguments()
        .iter()
        .fold(template, super::source::Instance::with);
    let blocks = part.blocks();
    let kernel = kernel(template, Params::new(), geometry(blocks, THREADS)?)?;
    Ok(kernel.with_weights(vec![part.argument(blocks)?]))
}

/// Selects the kernel of several products with the same column.
pub(super) fn grouped(parts: &[GemvPart<'_>]) -> Selection {
    let (mut blocks, mut weights, mut names) = (0, Vec::new(), Vec::new());
    for part in parts {
        blocks += part.blocks();
        weights.push(part.argument(blocks)?);
        let planes = tag(part.weight.dtype);
        names.push(format!(
            "Gemv<{planes}Planes, {}>",
            part.arguments().join(", ")
        ));
    }
    let template = product_instance("grouped_gemv", Arguments::Weights(parts.len()));
    let template = template.with(names.join(", "));
    let kernel = kernel(template, Params::new(), geometry(blocks, THREADS)?)?;
    Ok(kernel.with_weights(weights))
}

/// Selects the kernel of a gated product. Without `up`, the first half of the rows of `gate` is the gate. `y` is the result;
/// `terms` is true if the kernel also writes its terms.
pub(super) fn gated(
    op: &Glu,
    (gate, up): (&Tensor, Option<&Tensor>),
    (y, terms): (&Tensor, bool),
    request: &Request<'_>,
) -> Selection {
    let (function, numbers) = pointwise::gate(op, request.options);
    let rows = y.max_dims[0];
    let second = match up {
        Some(up) => (argument(1, up), 0),
        None => (argument(0, gate), rows as u64),
    };
    // Terms have an even number of groups of 32 rows, each of which a block writes.
    let (blocks, threads) = match terms {
        true => (rows.div_ceil(64) * 2, TERMS_THREADS),
        false => (rows.div_ceil(THREADS / WARP * GATED_ROWS), THREADS),
    };
    let first = WeightArgument::new(argument(0, gate), 0..rows as u64, blocks)?;
    let second = WeightArgument::new(second.0, second.1..second.1 + rows as u64, blocks)?;
    let template = plane_instance("glu_gemv", gate.dtype, &[], Arguments::Weights(2))
        .with(function)
        .with(tag(y.dtype))
        .with(u32::from(has_tail(gate)))
        .with(u32::from(up.is_none()))
        .with(u32::from(terms));
    let template = match terms && fits_twice(gate.dtype) {
        true => template.with_launch_bounds(TERMS_THREADS as u32, 2),
        false => template,
    };
    let kernel = kernel(template, numbers, geometry(blocks, threads)?)?;
    Ok(kernel.with_weights(vec![first, second]))
}

/// True if four rows of the type need at most 128 registers per thread, so that two blocks of [`TERMS_THREADS`] fit.
const fn fits_twice(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::Q4_0
            | DType::Q4_1
            | DType::Q8_0
            | DType::Q2K
            | DType::Q4K
            | DType::Iq4Nl
            | DType::Mxfp4
            | DType::Nvfp4
            | DType::Tq1_0
            | DType::Tq2_0
    )
}

/// True if a gated product of this many rows has the kernel of [`gated`].
pub(super) const fn has_gated(rows: usize) -> bool {
    rows >= GATED_ROWS
}
