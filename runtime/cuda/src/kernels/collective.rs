use tpc_ir::{DType, Op};

use super::axis;
use super::kernel::{Kernel, Request, Selection, Unsupported, grid_1d, instance, kernel};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "collective",
    text: include_str!("collective.cu"),
};

/// The maximum number of participants. The pairwise sum in `sum_parts` keeps up to eight partial sums.
const MAX_DEVICES: usize = 64;

/// Selects the kernel of device `rank` in a collective. The operands are the tensors of all devices.
///
/// # Errors
///
/// Returns [`Unsupported`] if the op is not a collective, or the operands are not supported.
pub fn select_collective(
    op: &Op,
    rank: usize,
    request: &Request<'_>,
) -> Result<Kernel, Unsupported> {
    select_op(op, rank, request).map_err(|reason| super::unsupported(op.name(), request, reason))
}

fn select_op(op: &Op, rank: usize, request: &Request<'_>) -> Selection {
    let y = request.result()?;
    let operands = request.operands;
    if operands.len() > MAX_DEVICES {
        return Err("the collective has more than 64 participants");
    }
    let same = operands.iter().all(|t| t.dtype == y.dtype);
    if !same {
        return Err("the types of operands and result differ");
    }
    let count = operands.len() as u32;
    let params = |axis: usize, start: u64, join: usize| {
        let params = Params::new().u32(count).u32(axis as u32).size(start)?;
        Ok::<Params, &'static str>(params.u32(join as u32))
    };
    let start = |counts: &[u64]| counts[..rank.min(counts.len())].iter().sum();
    let sums = |axis: usize, start: u64| {
        if y.dtype != DType::F32 {
            return Err("the operands of a sum over devices are not f32");
        }
        let template = instance(FAMILY, "sum_parts", &[], Arguments::Params);
        let units = grid_1d(y.elements(), request);
        kernel(template, params(axis, start, 0)?, units)
    };
    let joins = |axis: usize, start: u64, join: usize| {
        let block = y.dtype.block_len();
        let start = if axis == 0 { start / block } else { start };
        let template = instance(FAMILY, "join_parts", &[y.dtype], Arguments::Params);
        let units = y.elements() / block as usize;
        kernel(
            template,
            params(axis, start, join)?,
            grid_1d(units, request),
        )
    };
    match op {
        Op::AllReduce(_) => sums(0, 0),
        Op::ReduceScatter(op) => sums(axis(op.axis)?, start(&op.counts)),
        Op::AllGather(op) => joins(0, 0, axis(op.axis)?),
        Op::AllToAll(op) => joins(axis(op.cut)?, start(&op.counts), axis(op.join)?),
        _ => Err("the op is not a collective"),
    }
}
