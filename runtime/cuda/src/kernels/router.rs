//! The experts of tokens and their weights, in one launch.

use tpc_ir::DType;
use tpc_ir::op::{Clamp, Scale};

use super::kernel::{OPERANDS, Request, Selection, index, instance, kernel, per_row, real};
use super::params::Params;
use super::source::{Arguments, Family};

const FAMILY: Family = Family {
    name: "router",
    text: concat!(
        include_str!("pointwise.cuh"),
        "\n#line 1 \"order.cuh\"\n",
        include_str!("order.cuh"),
        "\n#line 1 \"router.cu\"\n",
        include_str!("router.cu")
    ),
};

/// The most experts of a token.
pub const MAX_ROUTED_EXPERTS: u64 = 31;
/// The most experts.
const EXPERTS: usize = 4096;

/// How experts are chosen and weighed: the operands are the logits and what is added before the choice, the results the experts' numbers
/// and their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Router {
    /// What experts are chosen and weighed by.
    pub scores: Scores,
    /// Whether something is added before the choice.
    pub biased: bool,
    /// What becomes of the weights.
    pub weights: Weights,
    /// Where the weights of a token lie.
    pub along: WeightAxis,
    /// The weights are scaled at the end.
    pub scale: Option<Scale>,
}

/// What experts are chosen and weighed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// The logits.
    Logits,
    /// Their soft maximum.
    SoftMax,
    /// The sigmoid of each.
    Sigmoid,
}

/// The axis along which the weights of a token lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightAxis {
    /// Axis 0, and tokens along axis 1.
    Axis0,
    /// Axis 1, and tokens along axis 2.
    Axis1,
}

/// What becomes of the weights of a token.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// Nothing.
    Plain,
    /// They are divided by their sum, which is clamped first.
    Normalised(Option<Clamp>),
    /// Their soft maximum.
    SoftMax,
}

pub(super) fn router(op: &Router, request: &Request<'_>) -> Selection {
    let (x, bias) = match (request.operands, op.biased) {
        ([x], false) => (x, DType::F32),
        ([x, bias], true) => (x, bias.dtype),
        _ => return Err(OPERANDS),
    };
    let [experts, weights] = request.results else {
        return Err("it has another number of results");
    };
    real(bias)?;
    index(experts.dtype)?;
    if x.dtype != DType::F32 || weights.dtype != DType::F32 {
        return Err("scores and weights are f32");
    }
    if experts.max_dims[0] > MAX_ROUTED_EXPERTS as usize || x.max_dims[0] > EXPERTS {
        return Err("there are too many experts");
    }
    let scores = match op.scores {
        Scores::Logits => 0,
        Scores::SoftMax => 1,
        Scores::Sigmoid => 2,
    };
    let (kind, least, most) = match &op.weights {
        Weights::Plain => (0, 0.0, 0.0),
        Weights::Normalised(Some(clamp)) => (1, clamp.min, clamp.max),
        Weights::Normalised(None) => (1, f32::NEG_INFINITY, f32::INFINITY),
        Weights::SoftMax => (2, 0.0, 0.0),
    };
    let (scale, add) = op.scale.as_ref().map_or((1.0, 0.0), |s| (s.scale, s.bias));
    let params = Params::new().u32(scores).u32(op.biased.into()).u32(kind);
    let params = params.f32(least).f32(most).f32(scale).f32(add);
    let params = params.u32(op.scale.is_some().into());
    let params = params.u32((op.along == WeightAxis::Axis0).into());
    let types = [bias, experts.dtype];
    let template = instance(FAMILY, "router", &types, Arguments::Params);
    let mut geometry = per_row(x.max_dims[1], x.max_dims[0]);
    geometry.shared_bytes = 8 * x.max_dims[0] as u32;
    kernel(template, params, geometry)
}
