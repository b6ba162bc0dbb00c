//! Kernels of several ops at once.

use tpc_ir::op::{Glu, Norm};

use super::kernel::{Kernel, Request, Unsupported};
use super::{norm, product, unsupported};

/// Ops that one kernel computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Fused {
    /// A norm times a tensor: the operands are what is normalised and the tensor. A second result is the [`Terms`](super::Terms)
    /// of the first.
    NormMul(Norm),
    /// A product plus a tensor: the operands are the weight in planes, the terms of the activations, and the tensor.
    MulMatAdd,
    /// A gated activation of two products: the operands are the weights in planes, that of the gate first, and the terms of the
    /// activations.
    Gated(Glu),
}

/// The kernel of several ops.
///
/// # Errors
/// [`Unsupported`] when there is none for these elements.
pub fn select_fused(fused: &Fused, request: &Request<'_>) -> Result<Kernel, Unsupported> {
    let (name, chosen) = match fused {
        Fused::NormMul(op) => ("norm_mul", norm::norm_mul(op, request)),
        Fused::MulMatAdd => ("mul_mat_add", product::mul_mat_add(request)),
        Fused::Gated(op) => ("mul_mat_mul_mat_glu", product::gated(op, request)),
    };
    chosen.map_err(|reason| unsupported(name, request, reason))
}
