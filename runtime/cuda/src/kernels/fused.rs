//! Kernels of several ops at once.

use tpc_ir::op::{Glu, MulMatId, Norm};

use super::gated;
use super::heads::{self, Heads};
use super::kernel::{Kernel, Request, Unsupported};
use super::router::{self, Router};
use super::{joined, matmul, mixed, norm, product, unsupported};

/// Ops that one kernel computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Fused {
    /// A norm times a tensor: the operands are those of what is normalised, the tensor, and where it is known a weight in planes that the
    /// next launch reads, of which the first bytes are asked for. The results are what is normalised where
    /// it is kept, the product, and where there is one more the [`Terms`](super::Terms) of the product.
    NormMul(Norm, Rows, Kept),
    /// What could be normalised, alone.
    Summed(Rows),
    /// A product plus tensors, one after another: the operands are the weight in planes, the terms of the activations, and these. Where
    /// the weight is stored as in the file, the activations are no terms, and there is one tensor.
    MulMatAdd,
    /// A product of experts plus what a tensor has for each: the operands are the weight in planes, the terms of the activations, the
    /// experts' numbers, and the tensor.
    MulMatIdAdd(MulMatId),
    /// Products of experts, each with what a tensor has for it where there is one, times their weights, added up over the experts of a
    /// token, plus so many tensors: the operands are the weight in planes, the terms of the activations, the experts' numbers, the tensor,
    /// the weights, and what is added.
    MixedExperts(MulMatId, Biased, usize),
    /// A gated activation of two products: the operands are the weights in planes, that of the gate first, or one whose first half is
    /// that of the gate, and the terms of the activations. A second result is the terms of the first.
    Gated(Glu),
    /// The same of experts, with their numbers as the next operand, and behind it what tensors have for each expert, which is added to the
    /// first product and to the second.
    GatedExperts(Glu, MulMatId),
    /// Products side by side: the operands are the terms of the activations, and of each product the weight in planes and as many
    /// tensors as it says, which are added. The results are those of the products.
    Joined(Vec<usize>),
    /// What becomes of queries, keys and values before attention.
    Heads(Heads),
    /// The experts of tokens and their weights.
    Router(Router),
}

/// Whether experts have something that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Biased {
    /// A tensor has it.
    Yes,
    /// Nothing.
    No,
}

/// What is normalised.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// A tensor.
    Whole,
    /// A norm of what is made so, which has no norm in it, times a tensor.
    Normed(Norm, Box<Rows>),
    /// Parts times factors, added up along axis 1.
    Mixed,
    /// The sum over so many devices of a tensor of each.
    Reduced(usize),
    /// One of these plus a tensor.
    Added(Box<Rows>),
}

impl Rows {
    /// Whether tensors of several devices are read.
    pub fn reduces(&self) -> bool {
        match self {
            Rows::Reduced(_) => true,
            Rows::Added(of) | Rows::Normed(_, of) => of.reduces(),
            Rows::Whole | Rows::Mixed => false,
        }
    }
}

/// Whether what is normalised is a result, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// The kernel of several ops.
///
/// # Errors
/// [`Unsupported`] when there is none for these elements.
pub fn select_fused(fused: &Fused, request: &Request<'_>) -> Result<Kernel, Unsupported> {
    let (name, chosen) = match fused {
        Fused::NormMul(op, rows, kept) => ("norm_mul", norm::norm_mul(op, (rows, *kept), request)),
        Fused::Summed(rows) => ("mul_sum_add", norm::summed(rows, request)),
        Fused::MulMatAdd if product::in_planes(request) => {
            ("mul_mat_add", product::mul_mat_add(request))
        }
        Fused::MulMatAdd => ("mul_mat_add", matmul::mul_mat_add(request)),
        Fused::MulMatIdAdd(op) => ("mul_mat_id_add_id", product::mul_mat_id(op, request)),
        Fused::MixedExperts(op, biased, more) => (
            "mul_mat_id_mul_sum",
            mixed::mixed(op, (*biased, *more), request),
        ),
        Fused::Gated(op) => ("mul_mat_mul_mat_glu", gated::gated(op, request)),
        Fused::GatedExperts(op, of) => {
            ("mul_mat_id_mul_mat_id_glu", gated::experts(op, of, request))
        }
        Fused::Joined(added) => ("mul_mat_mul_mat", joined::joined(added, request)),
        Fused::Heads(op) => ("norm_mul_rope_set_rows", heads::heads(op, request)),
        Fused::Router(op) => ("top_k_get_rows", router::router(op, request)),
    };
    chosen.map_err(|reason| unsupported(name, request, reason))
}
