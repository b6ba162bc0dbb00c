use tpc_ir::DType;
use tpc_ir::op::MulMatId;

use super::expert_gemm;
use super::expert_sum::{ExpertBias, SumOperands};
use super::kernel::{Request, Selection, Tensor, kernel};
use super::params::Params;
use super::product_template::{
    THREADS, epilogue, geometry, lanes, plane_instance, product_params, rows_per_lane,
};
use super::source::{Arguments, tag};

/// The maximum number of experts per token. Each has up to 32 lanes of a block, and a thread uses up to 128 registers.
pub const MAX_SUMMED_EXPERTS: u64 = 15;

pub(super) fn mul_mat_id_sum(
    op: &MulMatId,
    (biased, more): (ExpertBias, usize),
    request: &Request<'_>,
) -> Selection {
    let of = SumOperands::new(biased, more, request)?;
    let y = request.real_result()?;
    if expert_gemm::is_wide(of.ids) {
        return expert_gemm::entries(op, &of);
    }
    let SumOperands {
        a,
        ids,
        bias,
        by,
        added: added_to,
    } = of;
    let (slots, tokens) = (ids.max_dims[0], ids.max_dims[1]);
    if slots > MAX_SUMMED_EXPERTS as usize {
        return Err("too many experts per token");
    }
    let (rows, lanes) = (a.max_dims[1], lanes(a)?);
    let rows_per_lane = rows_per_lane(rows);
    // Every expert slot gets the same number of lane teams.
    let each = (THREADS / (lanes * slots.max(1))).max(1);
    let threads = (lanes * slots.max(1) * each).next_multiple_of(32);
    // Up to eight experts leave more registers per thread.
    let most = match threads <= 256 {
        true => 256,
        false => 32 * MAX_SUMMED_EXPERTS as u32,
    };
    let types = |tensors: &[Tensor]| -> Vec<DType> { tensors.iter().map(|t| t.dtype).collect() };
    let template = plane_instance("sum_experts", a.dtype, &[], Arguments::Faults);
    let template = template
        .with(epilogue(&types(bias)))
        .with(epilogue(&types(added_to)))
        .with(tag(ids.dtype))
        .with(tag(by.dtype))
        .with(tag(y.dtype))
        .with(rows_per_lane)
        .with(most)
        .with_launch_bounds(most, 1);
    let params = product_params(Params::new(), lanes, op.window)?;
    kernel(
        template,
        params.u32(each as u32),
        geometry((rows, each * rows_per_lane), tokens, 1, threads),
    )
}
