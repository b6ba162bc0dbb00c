//! A mixture of experts: the weighted sum of the outputs of the experts that the router selects.

use tpc_ir::op::{AddId, Glu, MulMatId, Repeat, Sum, UnaryKind};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::activation::{self, GateUp};
use super::builder::Builder;
use super::context::LayerContext;
use super::ffn::FfnInput;
use super::router::{self, Routing};
use super::{network, norm};
use crate::description::{
    Activation, ExpertForm, ExpertInput, Presence, RouterInput, SharedForm, WeightedSide,
};
use crate::error::ArchError;
use crate::hparams::{ExpertHParams, ExpertWidths, FfnWidth};
use crate::size::Size;
use crate::source::{Form, TensorRole};

/// The output of the experts: `[n_embd, n_tokens]`.
pub(super) fn moe(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &ExpertForm,
    hp: &ExpertHParams,
    widths: &ExpertWidths,
    input: FfnInput,
) -> Result<Value, ArchError> {
    let x = match form.input {
        ExpertInput::Sublayer => input.x,
        ExpertInput::Layer(norm) => norm::stream(b, &cx.model, norm, input.layer, norm)?,
    };
    let routed_by = match form.router_input {
        RouterInput::Experts => x,
        RouterInput::Layer => input.layer,
    };
    let routing = router::route(b, cx, form, hp, routed_by)?;
    let mut y = selected(b, cx, form, hp, widths, &routing, x)?;
    if let (Some(form), Some(width)) = (&form.shared, widths.shared) {
        let shared = shared(b, cx, form, width, x)?;
        y = b.add(y, shared, "ffn_moe_out_merged")?;
        y = scaled(b, form.scale, y)?;
    }
    if let (Some(form), Some(width)) = (&form.dense, widths.dense)
        && (form.presence == Presence::Required
            || b.offers(&b.tensor_name(network::DENSE.up, "weight"), Form::Unusual))
    {
        let dense = network::dense(b, cx, width, input.x)?;
        y = b.add(y, dense, "ffn_out_merged")?;
        y = scaled(b, form.scale, y)?;
    }
    Ok(y)
}

/// The sum of two networks as the sublayer gives it.
fn scaled(b: &mut Builder<'_>, scale: f32, y: Value) -> Result<Value, ArchError> {
    if scale == 1.0 {
        return Ok(y);
    }
    b.scale(y, scale, "ffn_merged_scaled")
}

/// The weighted sum of the outputs of the selected experts for `x: [n_embd, n_tokens]`.
fn selected(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &ExpertForm,
    hp: &ExpertHParams,
    widths: &ExpertWidths,
    routing: &Routing,
    mut x: Value,
) -> Result<Value, ArchError> {
    let width = widths.each;
    let model = cx.model.hparams;
    let (absent, role) = (Presence::Never, TensorRole::Matrix);
    let embd = match hp.latent {
        None => model.embd(),
        Some(latent) => {
            let sizes = [model.embd(), latent];
            x = b.linear("ffn_routed_down", x, sizes, absent, role, "ffn_moe_latent")?;
            latent
        }
    };
    let experts = Experts {
        width: embd,
        count: router::expert_count(hp),
        ids: routing.ids,
        bias: form.bias,
    };
    x = b.reshape(x, [embd.n.into(), Dim::ONE, b.n_tokens()], "ffn_moe_in")?;
    if form.weighted == WeightedSide::Inputs {
        let each: [Dim; 3] = [embd.n.into(), hp.used.into(), b.n_tokens()];
        let dims = TensorType::new(DType::F32, each).dims;
        x = b.push(Repeat { dims }, vec![x], "ffn_moe_in")?;
        x = b.mul(x, routing.weights, "ffn_moe_weighted")?;
    }
    let y = match &cx.model.arch.ffn.activation {
        Activation::Gated(glu) | Activation::GatedFused(glu) => {
            gated(b, cx, &experts, Some(glu), width, x)?
        }
        Activation::Situ => gated(b, cx, &experts, None, width, x)?,
        Activation::Plain(kinds) => {
            let up = experts.apply(b, "ffn_up_exps", [embd, width.n], x, "ffn_moe_up")?;
            b.unary(kinds, up, "ffn_moe_act")?
        }
    };
    let mut y = experts.apply(b, "ffn_down_exps", [width.n, embd], y, "ffn_moe_down")?;
    if form.weighted == WeightedSide::Outputs {
        y = b.mul(y, routing.weights, "ffn_moe_weighted")?;
    }
    let y = b.push(Sum { axis: 1 }, vec![y], "ffn_moe_sum")?;
    let mut y = b.reshape(y, [embd.n.into(), b.n_tokens()], "ffn_moe_out")?;
    let Some(latent) = hp.latent else {
        return Ok(y);
    };
    const NORM: &str = "ffn_routed_norm";
    if norm::exists(b, &cx.model, NORM, &[latent], Presence::Optional)? {
        y = norm::weighted(b, &cx.model, NORM, &[latent], y, "ffn_moe_normed")?;
    }
    let sizes = [latent, model.embd()];
    b.linear("ffn_routed_up", y, sizes, absent, role, "ffn_moe_out")
}

fn gated(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    experts: &Experts,
    glu: Option<&Glu>,
    width: FfnWidth,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = experts.width;
    const FUSED: &str = "ffn_gate_up_exps";
    let both = if b.offers(&b.tensor_name(FUSED, "weight"), Form::Unusual) {
        let sizes = [embd, width.gate_up];
        GateUp::Together(experts.apply(b, FUSED, sizes, x, "ffn_moe_gate_up")?)
    } else {
        let gate = experts.apply(b, "ffn_gate_exps", [embd, width.n], x, "ffn_moe_gate")?;
        let up = experts.apply(b, "ffn_up_exps", [embd, width.n], x, "ffn_moe_up")?;
        GateUp::Apart([gate, up])
    };
    activation::gated(b, cx, glu, cx.layer.limits.experts, both, "ffn_moe_act")
}

/// The output of the shared expert for `x: [n_embd, n_tokens]`.
fn shared(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &SharedForm,
    width: Size,
    x: Value,
) -> Result<Value, ArchError> {
    let y = network::shared(b, cx, form, width, x)?;
    let gate = b.tensor_name("ffn_gate_inp_shexp", "weight");
    let embd = cx.model.hparams.embd();
    let Some(gate) = b.optional(&gate, &[embd], TensorRole::Router, form.gate)? else {
        return Ok(y);
    };
    let gate = b.mul_mat(gate, x, "ffn_shexp_gate_inp")?;
    let gate = b.unary(&[UnaryKind::Sigmoid], gate, "ffn_shexp_gate")?;
    b.mul(y, gate, "ffn_shexp_gated")
}

/// The selected experts.
struct Experts {
    /// Elements of their inputs and outputs.
    width: Size,
    count: Size,
    ids: Value,
    bias: Presence,
}

impl Experts {
    /// The product of each selected expert's matrix and its row of `x`, plus its bias.
    fn apply(
        &self,
        b: &mut Builder<'_>,
        tensor: &str,
        [rows, columns]: [Size; 2],
        x: Value,
        name: &str,
    ) -> Result<Value, ArchError> {
        let weight = b.tensor_name(tensor, "weight");
        let weight = b.required(&weight, &[rows, columns, self.count], TensorRole::Experts)?;
        let y = b.push(MulMatId { window: None }, vec![weight, x, self.ids], name)?;
        let bias = b.tensor_name(tensor, "bias");
        match b.optional(&bias, &[columns, self.count], TensorRole::Bias, self.bias)? {
            Some(bias) => b.push(AddId { window: None }, vec![y, bias, self.ids], name),
            None => Ok(y),
        }
    }
}
