//! A mixture of experts: a router chooses a few experts per token and weighs what they say.

use tpc_ir::op::{AddId, Binary, BinaryKind, Clamp, GetRows, Glu, MulMatId, SoftMax, Sum, TopK};
use tpc_ir::{Dim, Value};

use super::LayerContext;
use super::builder::Builder;
use super::hparams::ExpertCounts;
use crate::arch::description::{Activation, ExpertForm, Gating, Presence};
use crate::arch::error::ArchError;
use crate::arch::source::{Form, Size, TensorRole};

/// The least that a sum of weights is taken for, 2⁻¹⁴: the least normal number of f16.
const LEAST_SUM: f32 = 6.103_515_6e-5;

/// The experts of each token, `[n_used, n_tokens]`, and their weights, `[1, n_used, n_tokens]`.
struct Choice {
    ids: Value,
    weights: Value,
}

/// What the experts add to the residual stream: `[n_embd, n_tokens]`.
pub(super) fn moe(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &ExpertForm,
    counts: ExpertCounts,
    x: Value,
) -> Result<Value, ArchError> {
    let (embd, n_ff) = (cx.model.hparams.embd(), cx.layer.n_ff);
    let choice = route(b, cx, form, counts, x)?;
    let experts = Experts {
        count: expert_count(counts),
        ids: choice.ids,
        bias: form.bias,
    };
    let x = b.reshape(x, [embd.n.into(), Dim::ONE, b.n_tokens()], "ffn_moe_in")?;
    let y = match &cx.model.arch.ffn.activation {
        Activation::Gated(glu) | Activation::GatedFused(glu) => gated(b, cx, &experts, glu, x)?,
        Activation::Plain(kinds) => {
            let up = experts.apply(b, "ffn_up_exps", [embd, n_ff], x, "ffn_moe_up")?;
            b.unary(kinds, up, "ffn_moe_act")?
        }
    };
    let y = experts.apply(b, "ffn_down_exps", [n_ff, embd], y, "ffn_moe_down")?;
    let y = b.mul(y, choice.weights, "ffn_moe_weighted")?;
    let y = b.push(Sum { axis: 1 }, vec![y], "ffn_moe_sum")?;
    b.reshape(y, [embd.n.into(), b.n_tokens()], "ffn_moe_out")
}

fn expert_count(counts: ExpertCounts) -> Size {
    Size {
        n: counts.count,
        from: "expert_count",
    }
}

fn gated(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    experts: &Experts,
    glu: &Glu,
    x: Value,
) -> Result<Value, ArchError> {
    let (embd, n_ff) = (cx.model.hparams.embd(), cx.layer.n_ff);
    const FUSED: &str = "ffn_gate_up_exps";
    let operands = if b.offers(&b.tensor_name(FUSED, "weight"), Form::Unusual) {
        let sizes = [embd, cx.layer.gate_up_width];
        vec![experts.apply(b, FUSED, sizes, x, "ffn_moe_gate_up")?]
    } else {
        let gate = experts.apply(b, "ffn_gate_exps", [embd, n_ff], x, "ffn_moe_gate")?;
        let up = experts.apply(b, "ffn_up_exps", [embd, n_ff], x, "ffn_moe_up")?;
        vec![gate, up]
    };
    b.push(glu.clone(), operands, "ffn_moe_act")
}

/// The selected experts.
struct Experts {
    count: Size,
    ids: Value,
    bias: Presence,
}

impl Experts {
    /// What each selected expert's matrix of that stem makes of its row of `x`, plus its bias.
    fn apply(
        &self,
        b: &mut Builder<'_>,
        stem: &str,
        [rows, columns]: [Size; 2],
        x: Value,
        name: &str,
    ) -> Result<Value, ArchError> {
        let weight = b.tensor_name(stem, "weight");
        let weight = b.required(&weight, &[rows, columns, self.count], TensorRole::Experts)?;
        let y = b.push(MulMatId { window: None }, vec![weight, x, self.ids], name)?;
        let bias = b.tensor_name(stem, "bias");
        match b.optional(&bias, &[columns, self.count], TensorRole::Bias, self.bias)? {
            Some(bias) => b.push(AddId { window: None }, vec![y, bias, self.ids], name),
            None => Ok(y),
        }
    }
}

/// Chooses the experts of each token of `x: [n_embd, n_tokens]`.
fn route(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &ExpertForm,
    counts: ExpertCounts,
    x: Value,
) -> Result<Choice, ArchError> {
    let sizes = [cx.model.hparams.embd(), expert_count(counts)];
    let logits = b.linear(
        "ffn_gate_inp",
        x,
        sizes,
        form.router_bias,
        TensorRole::Router,
        "ffn_moe_logits",
    )?;
    let soft_max = SoftMax { scale: 1.0 };
    let probs = match form.gating {
        Gating::SoftmaxNormalised => b.push(soft_max.clone(), vec![logits], "ffn_moe_probs")?,
        Gating::SoftmaxOfSelected => logits,
    };
    let ids = b.push(TopK { k: counts.used }, vec![probs], "ffn_moe_topk")?;
    let rows = [Dim::ONE, counts.count.into(), b.n_tokens()];
    let rows = b.reshape(probs, rows, "ffn_moe_probs")?;
    let selected = b.push(GetRows { window: None }, vec![rows, ids], "ffn_moe_weights")?;
    let weights = match form.gating {
        Gating::SoftmaxNormalised => {
            let sum = b.push(Sum { axis: 1 }, vec![selected], "ffn_moe_weights_sum")?;
            let clamp = Clamp {
                min: LEAST_SUM,
                max: f32::INFINITY,
            };
            let sum = b.push(clamp, vec![sum], "ffn_moe_weights_sum_clamped")?;
            let kind = BinaryKind::Div;
            b.push(Binary { kind }, vec![selected, sum], "ffn_moe_weights_norm")?
        }
        Gating::SoftmaxOfSelected => {
            const NAME: &str = "ffn_moe_weights_softmax";
            let used: Dim = counts.used.into();
            let flat = b.reshape(selected, [used.clone(), b.n_tokens()], NAME)?;
            let flat = b.push(soft_max, vec![flat], NAME)?;
            b.reshape(flat, [Dim::ONE, used, b.n_tokens()], NAME)?
        }
    };
    Ok(Choice { ids, weights })
}
