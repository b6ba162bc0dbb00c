//! Kernels of several ops at once.

use tpc_ir::op::{Glu, MulMatId, Norm};

use super::heads::{self, Heads};
use super::kernel::{Kernel, Request, Unsupported};
use super::mul_mat_id_sum::{self, ExpertBias};
use super::router::{self, Router};
use super::row_source::{KeepInput, RowSource};
use super::{grouped_mul_mat, matmul, mul_mat_glu, norm, product, unsupported};

/// Ops that one kernel computes.
#[derive(Clone, Debug, PartialEq)]
pub enum FusedOp {
    /// A norm times a tensor: the operands are those of what is normalised, the tensor, and where it is known a weight in planes that the
    /// next launch reads, of which the first bytes are asked for. The results are what is normalised where
    /// it is kept, the product, and where there is one more the [`Terms`](super::Terms) of the product.
    NormMul(Norm, RowSource, KeepInput),
    /// What could be normalised, alone.
    MulSumAdd(RowSource),
    /// A product plus tensors, one after another: the operands are the weight in planes, the terms of the activations, and these. Where
    /// the weight is stored as in the file, the activations are no terms, and there is one tensor.
    MulMatAdd,
    /// A product of experts plus what a tensor has for each: the operands are the weight in planes, the terms of the activations, the
    /// experts' numbers, and the tensor.
    MulMatIdAdd(MulMatId),
    /// Products of experts, each with what a tensor has for it where there is one, times their weights, added up over the experts of a
    /// token, plus so many tensors: the operands are the weight in planes, the terms of the activations, the experts' numbers, the tensor,
    /// the weights, and what is added.
    MulMatIdSum(MulMatId, ExpertBias, usize),
    /// A gated activation of two products: the operands are the weights in planes, that of the gate first, or one whose first half is
    /// that of the gate, and the terms of the activations. A second result is the terms of the first.
    MulMatGlu(Glu),
    /// The same of experts, with their numbers as the next operand, and behind it what tensors have for each expert, which is added to the
    /// first product and to the second.
    MulMatIdGlu(Glu, MulMatId),
    /// Products side by side: the operands are the terms of the activations, and of each product the weight in planes and as many
    /// tensors as it says, which are added. The results are those of the products.
    GroupedMulMat(Vec<usize>),
    /// What becomes of queries, keys and values before attention.
    Heads(Heads),
    /// The experts of tokens and their weights.
    Router(Router),
}

/// The kernel of several ops.
///
/// # Errors
/// [`Unsupported`] when there is none for these elements.
pub fn select_fused(fused: &FusedOp, request: &Request<'_>) -> Result<Kernel, Unsupported> {
    let (name, chosen) = match fused {
        FusedOp::NormMul(op, rows, kept) => {
            ("norm_mul", norm::norm_mul(op, (rows, *kept), request))
        }
        FusedOp::MulSumAdd(rows) => ("mul_sum_add", norm::mul_sum_add(rows, request)),
        FusedOp::MulMatAdd if product::in_planes(request) => {
            ("mul_mat_add", product::mul_mat_add(request))
        }
        FusedOp::MulMatAdd => ("mul_mat_add", matmul::mul_mat_add(request)),
        FusedOp::MulMatIdAdd(op) => ("mul_mat_id_add_id", product::mul_mat_id(op, request)),
        FusedOp::MulMatIdSum(op, biased, more) => (
            "mul_mat_id_mul_sum",
            mul_mat_id_sum::mul_mat_id_sum(op, (*biased, *more), request),
        ),
        FusedOp::MulMatGlu(op) => ("mul_mat_mul_mat_glu", mul_mat_glu::mul_mat_glu(op, request)),
        FusedOp::MulMatIdGlu(op, of) => (
            "mul_mat_id_mul_mat_id_glu",
            mul_mat_glu::mul_mat_id_glu(op, of, request),
        ),
        FusedOp::GroupedMulMat(added) => (
            "mul_mat_mul_mat",
            grouped_mul_mat::grouped_mul_mat(added, request),
        ),
        FusedOp::Heads(op) => ("norm_mul_rope_set_rows", heads::heads(op, request)),
        FusedOp::Router(op) => ("top_k_get_rows", router::router(op, request)),
    };
    chosen.map_err(|reason| unsupported(name, request, reason))
}
