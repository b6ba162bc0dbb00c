//! Kernels that compute several ops.

use tpc_ir::op::{Glu, MulMatId, Norm};

use super::expert_sum::ExpertBias;
use super::heads::{self, Heads};
use super::kernel::{Kernel, Request, Unsupported};
use super::mul_mat_id_sum;
use super::router::{self, Router};
use super::row_source::{KeepInput, RowSource};
use super::{grouped_mul_mat, matmul, mul_mat_glu, norm, product, unsupported};

/// A group of ops that one kernel computes.
#[derive(Clone, Debug, PartialEq)]
pub enum FusedOp {
    /// A norm times a tensor. Operands: operands of the rows, and the tensor. Results: the normalised input (with [`KeepInput::Yes`]), the product, and
    /// optionally its [`Terms`](super::Terms).
    NormMul(Norm, RowSource, KeepInput),
    /// The rows without a norm.
    MulSumAdd(RowSource),
    /// A product plus tensors. Operands: the weight in planes, the terms of the activations, the tensors. A weight in
    /// the layout of the file takes the activations themselves and exactly one tensor.
    MulMatAdd,
    /// An expert product plus a bias per expert. Operands: the weight in planes, the terms of the activations, the
    /// expert indices, the biases.
    MulMatIdAdd(MulMatId),
    /// The weighted sum of the expert products of a token. Each product may have a bias. The `usize` is the number of
    /// tensors added to the sum. Operands, in order:
    ///
    /// - the weight in planes
    /// - the terms of the activations
    /// - the expert indices
    /// - the biases, if present
    /// - the expert weights
    /// - the tensors added to the sum
    MulMatIdSum(MulMatId, ExpertBias, usize),
    /// A gated activation of two products. Operands: the weights in planes (gate first), or one weight whose first half
    /// is the gate, then the terms of the activations. An optional second result receives the terms of the first.
    MulMatGlu(Glu),
    /// A gated activation of two expert products. The expert indices follow the terms, then optional biases per expert,
    /// one tensor per product.
    MulMatIdGlu(Glu, MulMatId),
    /// Several products of the same activations. Operands: the terms of the activations, then for each product its
    /// weight in planes and added tensors, whose number is the `usize`. Each product has one result.
    GroupedMulMat(Vec<usize>),
    /// Q/K norm, RoPE and KV-cache write.
    Heads(Heads),
    /// The choice of experts for a token, and their weights.
    Router(Router),
}

/// How a product reads [`Halves`](super::Halves) in batches of many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideForm {
    /// Tokens are columns of the activations.
    Columns,
    /// Entries are ordered by expert. Tokens are axis 2 of the activations.
    Experts,
}

impl FusedOp {
    /// Returns the op after a sum over devices, with the sum as one operand instead of the tensors of all devices;
    /// `None` for ops that do not follow a sum.
    pub fn of_sum(&self) -> Option<FusedOp> {
        match self {
            FusedOp::NormMul(op, rows, kept) => {
                Some(FusedOp::NormMul(op.clone(), rows.of_sum(), *kept))
            }
            FusedOp::MulSumAdd(rows) => Some(FusedOp::MulSumAdd(rows.of_sum())),
            _ => None,
        }
    }

    /// Returns how the kernel reads [`Halves`](super::Halves) in batches of many tokens; `None` if it does not.
    pub fn wide_form(&self) -> Option<WideForm> {
        match self {
            FusedOp::MulMatAdd | FusedOp::MulMatGlu(_) | FusedOp::GroupedMulMat(_) => {
                Some(WideForm::Columns)
            }
            FusedOp::MulMatIdAdd(_) | FusedOp::MulMatIdSum(..) | FusedOp::MulMatIdGlu(..) => {
                Some(WideForm::Experts)
            }
            FusedOp::NormMul(..)
            | FusedOp::MulSumAdd(_)
            | FusedOp::Heads(_)
            | FusedOp::Router(_) => None,
        }
    }

    /// Returns the expert product; `None` for other ops.
    pub fn experts(&self) -> Option<&MulMatId> {
        match self {
            FusedOp::MulMatIdAdd(op)
            | FusedOp::MulMatIdSum(op, ..)
            | FusedOp::MulMatIdGlu(_, op) => Some(op),
            _ => None,
        }
    }
}

/// Selects the kernel of a fused op.
///
/// # Errors
///
/// Returns [`Unsupported`] if the kernel does not support the operands.
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
