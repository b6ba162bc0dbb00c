//! Products of experts, times their weights, added up over the experts of a token.

use tpc_ir::DType;
use tpc_ir::op::MulMatId;

use super::fused::Biased;
use super::kernel::{OPERANDS, Request, Selected, index, kernel, real};
use super::params::Params;
use super::product::{THREADS, added, at_once, geometry, lanes, of_planes, product_params};
use super::source::{Needs, tag};

/// The most experts of a token: each has a team of up to 32 lanes in a block, whose threads have up to 128 registers.
pub const MIXED: u64 = 15;

/// The operands are the weight in planes, the terms of the activations, the experts' numbers, what is added for each expert, the weights
/// of the experts, and so many tensors that are added to the sum.
pub(super) fn mixed(
    op: &MulMatId,
    (biased, more): (Biased, usize),
    request: &Request<'_>,
) -> Selected {
    let [a, _, ids, rest @ ..] = request.operands else {
        return Err(OPERANDS);
    };
    let biases = usize::from(biased == Biased::Yes);
    let (bias, rest) = rest.split_at_checked(biases).ok_or(OPERANDS)?;
    let [by, added_to @ ..] = rest else {
        return Err(OPERANDS);
    };
    if added_to.len() != more {
        return Err(OPERANDS);
    }
    let y = request.real_result()?;
    index(ids.dtype)?;
    request.operands[3..]
        .iter()
        .try_for_each(|t| real(t.dtype))?;
    let (slots, tokens) = (ids.most[0], ids.most[1]);
    if slots > MIXED as usize {
        return Err("a token has too many experts");
    }
    let (rows, lanes) = (a.most[1], lanes(a)?);
    let at_once = at_once(rows);
    // Teams of lanes: of each slot as many as make up a block.
    let each = (THREADS / (lanes * slots.max(1))).max(1);
    let threads = (lanes * slots.max(1) * each).next_multiple_of(32);
    let types =
        |tensors: &[super::Tensor]| -> Vec<DType> { tensors.iter().map(|t| t.dtype).collect() };
    let template = of_planes("mixed_experts", a.dtype, &[], Needs::Faults);
    let template = template
        .with(added(&types(bias)))
        .with(added(&types(added_to)))
        .with(tag(ids.dtype))
        .with(tag(by.dtype))
        .with(tag(y.dtype))
        .with(at_once);
    let params = product_params(Params::new(), lanes, op.window)?;
    kernel(
        template,
        params.u32(each as u32),
        geometry((rows, each * at_once), tokens, 1, threads),
    )
}
