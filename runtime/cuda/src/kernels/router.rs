//! Selects the kernel that chooses experts for each token and computes their weights.

use tpc_ir::DType;
use tpc_ir::op::{Clamp, Scale};

use super::kernel::{OPERANDS, Request, Selection, grid_per_row, index, instance, kernel, real};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "router",
    text: concat!(
        include_str!("pointwise.cuh"),
        "\n#line 1 \"order.cuh\"\n",
        include_str!("order.cuh"),
        "\n#line 1 \"router.cu\"\n",
        include_str!("router.cu")
    ),
};

/// The maximum number of experts per token.
pub const MAX_ROUTED_EXPERTS: u64 = 31;
const EXPERTS: usize = 4096;

/// The choice of experts for each token, and their weights. Operands: logits and optional bias. Results: expert indices
/// and weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Router {
    /// The scores of experts.
    pub scores: Scores,
    /// True if a bias is added before the choice.
    pub has_bias: bool,
    /// The normalisation of the weights.
    pub weights: WeightNorm,
    /// The axis that holds the weights of one token.
    pub along: WeightAxis,
    /// The scale and bias, applied to the weights last.
    pub scale: Option<Scale>,
}

/// The scores that determine choice and weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// The logits.
    Logits,
    /// The softmax of the logits.
    SoftMax,
    /// The sigmoid of the logits.
    Sigmoid,
}

/// The axis that holds the weights of one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightAxis {
    /// Axis 0; tokens are along axis 1.
    Axis0,
    /// Axis 1; tokens are along axis 2.
    Axis1,
}

/// The normalisation of the weights of one token.
#[derive(Clone, Debug, PartialEq)]
pub enum WeightNorm {
    /// No normalisation.
    None,
    /// Division by the sum, which may be clamped first.
    Sum(Option<Clamp>),
    /// The softmax of the weights.
    SoftMax,
}

pub(super) fn router(op: &Router, request: &Request<'_>) -> Selection {
    let (x, bias) = match (request.operands, op.has_bias) {
        ([x], false) => (x, DType::F32),
        ([x, bias], true) => (x, bias.dtype),
        _ => return Err(OPERANDS),
    };
    let [experts, weights] = request.results else {
        return Err("wrong number of results");
    };
    real(bias)?;
    index(experts.dtype)?;
    if x.dtype != DType::F32 || weights.dtype != DType::F32 {
        return Err("scores or weights are not f32");
    }
    if experts.max_dims[0] > MAX_ROUTED_EXPERTS as usize || x.max_dims[0] > EXPERTS {
        return Err("too many experts");
    }
    let scores = match op.scores {
        Scores::Logits => 0,
        Scores::SoftMax => 1,
        Scores::Sigmoid => 2,
    };
    let (kind, least, most) = match &op.weights {
        WeightNorm::None => (0, 0.0, 0.0),
        WeightNorm::Sum(Some(clamp)) => (1, clamp.min, clamp.max),
        WeightNorm::Sum(None) => (1, f32::NEG_INFINITY, f32::INFINITY),
        WeightNorm::SoftMax => (2, 0.0, 0.0),
    };
    let (scale, add) = op.scale.as_ref().map_or((1.0, 0.0), |s| (s.scale, s.bias));
    let params = Params::new().u32(scores).u32(op.has_bias.into()).u32(kind);
    let params = params.f32(least).f32(most).f32(scale).f32(add);
    let params = params.u32(op.scale.is_some().into());
    let params = params.u32((op.along == WeightAxis::Axis0).into());
    let types = [bias, experts.dtype];
    let template = instance(FAMILY, "router", &types, Arguments::Params);
    let mut geometry = grid_per_row(x.max_dims[1], x.max_dims[0]);
    geometry.shared_bytes = 8 * x.max_dims[0] as u32;
    kernel(template, params, geometry)
}
