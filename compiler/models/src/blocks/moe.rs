use tpc_ir::op::{AddId, Glu, MulMatId, Repeat, Sum, UnaryKind};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::activation::{self, GateUp};
use super::builder::Builder;
use super::context::LayerContext;
use super::ffn_input::FfnInput;
use super::router::{self, Routing};
use super::{network, norm};
use crate::description::{
    Activation, ExpertForm, ExpertInput, Presence, RouterInput, SharedForm, WeightedSide,
};
use crate::error::ArchError;
use crate::hparams::{ExpertHParams, ExpertWidths, FfnWidth};
use crate::size::Size;
use crate::source::{Form, TensorRole};

/// Returns the experts' output, `[n_embd, n_tokens]`.
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
        ExpertInput::Stream(norm) => norm::stream(b, &cx.model, norm, input.stream, norm)?,
    };
    let routed_by = match form.router_input {
        RouterInput::Experts => x,
        RouterInput::Layer => input.layer,
        RouterInput::ScaledStream => router::scaled_input(b, cx, input.stream)?,
    };
    let routing = router::route(b, cx, form, hp, routed_by)?;
    let routing = router::scale_outputs(b, form, hp, routing)?;
    let y = selected_experts(b, cx, form, hp, widths, &routing, x)?;
    let y = normalise(b, cx, form.norm, y)?;
    let mut y = with_groups(b, cx, form, hp, &routing, y)?;
    if let (Some(form), Some(width)) = (&form.shared, widths.shared) {
        let shared = shared_expert(b, cx, form, width, x)?;
        y = b.add(y, shared, "ffn_moe_out_merged")?;
        y = scale_sum(b, form.scale, y)?;
    }
    if let (Some(form), Some(width)) = (&form.dense, widths.dense)
        && (form.presence == Presence::Required
            || b.offers(&b.tensor_name(network::DENSE.up, "weight"), Form::Unusual))
    {
        let dense = network::dense(b, cx, width, input.x)?;
        let dense = normalise(b, cx, form.norm, dense)?;
        y = b.add(y, dense, "ffn_out_merged")?;
        y = scale_sum(b, form.scale, y)?;
    }
    Ok(y)
}

fn normalise(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    norm: Option<&str>,
    y: Value,
) -> Result<Value, ArchError> {
    norm.map_or(Ok(y), |norm| norm::stream(b, &cx.model, norm, y, norm))
}

fn scale_sum(b: &mut Builder<'_>, scale: f32, y: Value) -> Result<Value, ArchError> {
    if scale == 1.0 {
        return Ok(y);
    }
    b.scale(y, scale, "ffn_merged_scaled")
}

/// Returns the weighted sum of the selected experts for `x: [n_embd, n_tokens]`.
fn selected_experts(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &ExpertForm,
    hp: &ExpertHParams,
    widths: &ExpertWidths,
    routing: &Routing,
    mut x: Value,
) -> Result<Value, ArchError> {
    let model = cx.model.hparams;
    let latent = form.latent.zip(hp.latent);
    let embd = match latent {
        None => model.embd(),
        Some((form, latent)) => {
            x = b.project(form.down, x, [model.embd(), latent], "ffn_moe_latent")?;
            if let Some(norm) = form.norm {
                x = norm::with_weight(b, &cx.model, norm, &[latent], x, "ffn_moe_latent")?;
            }
            latent
        }
    };
    let experts = Experts {
        tensors: &EACH,
        width: embd,
        inner: widths.each,
        count: router::expert_count(hp),
        routing,
    };
    let y = experts.weighted_sum(b, cx, form, hp, x)?;
    let Some((form, latent)) = latent else {
        return Ok(y);
    };
    let mut y = y;
    if let Some(norm) = form.sum_norm
        && norm::exists(b, &cx.model, norm, &[latent], Presence::Optional)?
    {
        y = norm::with_weight(b, &cx.model, norm, &[latent], y, "ffn_moe_normed")?;
    }
    b.project(form.up, y, [latent, model.embd()], "ffn_moe_out")
}

/// Adds the output of group experts, which read the selected experts' output `y`. The result is `[n_embd, n_tokens]`.
fn with_groups(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &ExpertForm,
    hp: &ExpertHParams,
    routing: &Routing,
    y: Value,
) -> Result<Value, ArchError> {
    let Some(groups) = &hp.of_groups else {
        return Ok(y);
    };
    let routing = router::route_groups(b, hp, groups, routing)?;
    let experts = Experts {
        tensors: &OF_GROUPS,
        width: cx.model.hparams.embd(),
        inner: groups.width,
        count: groups.count,
        routing: &routing,
    };
    let used = groups.used;
    let more = experts.weighted_sum(b, cx, form, &ExpertHParams { used, ..*hp }, y)?;
    let more = b.scale(more, groups.scale, "ffn_moe_groups_scaled")?;
    b.add(y, more, "ffn_moe_out_merged")
}

/// Returns the shared expert's output for `x: [n_embd, n_tokens]`.
fn shared_expert(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &SharedForm,
    width: Size,
    x: Value,
) -> Result<Value, ArchError> {
    let y = network::shared_expert(b, cx, form, width, x)?;
    let gate = b.tensor_name("ffn_gate_inp_shexp", "weight");
    let embd = cx.model.hparams.embd();
    let Some(gate) = b.optional(&gate, &[embd], TensorRole::Router, form.gate)? else {
        return Ok(y);
    };
    let gate = b.mul_mat(gate, x, "ffn_shexp_gate_inp")?;
    let gate = b.unary(&[UnaryKind::Sigmoid], gate, "ffn_shexp_gate")?;
    b.mul(y, gate, "ffn_shexp_gated")
}

struct ExpertTensors {
    gate: &'static str,
    up: &'static str,
    gate_up: &'static str,
    down: &'static str,
}

const EACH: ExpertTensors = ExpertTensors {
    gate: "ffn_gate_exps",
    up: "ffn_up_exps",
    gate_up: "ffn_gate_up_exps",
    down: "ffn_down_exps",
};

const OF_GROUPS: ExpertTensors = ExpertTensors {
    gate: "ffn_gate_chexps",
    up: "ffn_up_chexps",
    gate_up: "ffn_gate_up_chexps",
    down: "ffn_down_chexps",
};

struct Experts<'a> {
    tensors: &'static ExpertTensors,
    /// Number of input and output elements.
    width: Size,
    /// Width between an expert's matrices.
    inner: FfnWidth,
    count: Size,
    routing: &'a Routing,
}

impl Experts<'_> {
    /// Returns the experts' weighted sum, `[width, n_tokens]`, for `x` of the same shape.
    fn weighted_sum(
        &self,
        b: &mut Builder<'_>,
        cx: &LayerContext<'_>,
        form: &ExpertForm,
        hp: &ExpertHParams,
        x: Value,
    ) -> Result<Value, ArchError> {
        let (width, inner) = (self.width, self.inner.n);
        let mut x = b.reshape(x, [width.n.into(), Dim::ONE, b.n_tokens()], "ffn_moe_in")?;
        if form.weighted == WeightedSide::Inputs {
            let each: [Dim; 3] = [width.n.into(), hp.used.into(), b.n_tokens()];
            let dims = TensorType::new(DType::F32, each).dims;
            x = b.push(Repeat { dims }, vec![x], "ffn_moe_in")?;
            x = b.mul(x, self.routing.weights, "ffn_moe_weighted")?;
        }
        let bias = form.bias;
        let y = match &cx.model.arch.ffn.activation {
            Activation::Gated(glu) | Activation::GatedFused(glu) => {
                self.activate(b, cx, bias, Some(glu), x)?
            }
            Activation::Situ => self.activate(b, cx, bias, None, x)?,
            Activation::Xielu => {
                let up = self.apply(b, self.tensors.up, [width, inner], bias, x, "ffn_moe_up")?;
                activation::xielu(b, cx, up, "ffn_moe_act")?
            }
            Activation::Plain(kinds) => {
                let up = self.apply(b, self.tensors.up, [width, inner], bias, x, "ffn_moe_up")?;
                b.unary(kinds, up, "ffn_moe_act")?
            }
        };
        let sizes = [inner, width];
        let mut y = self.apply(b, self.tensors.down, sizes, bias, y, "ffn_moe_down")?;
        if let Some(norm) = form.latent.and_then(|latent| latent.each_norm) {
            y = norm::post(b, &cx.model, Some(norm), width, y, "ffn_moe_each_norm")?;
        }
        if form.weighted == WeightedSide::Outputs {
            y = b.mul(y, self.routing.weights, "ffn_moe_weighted")?;
        }
        let y = b.push(Sum { axis: 1 }, vec![y], "ffn_moe_sum")?;
        b.reshape(y, [width.n.into(), b.n_tokens()], "ffn_moe_out")
    }

    fn activate(
        &self,
        b: &mut Builder<'_>,
        cx: &LayerContext<'_>,
        bias: Presence,
        glu: Option<&Glu>,
        x: Value,
    ) -> Result<Value, ArchError> {
        let ExpertTensors {
            gate, up, gate_up, ..
        } = *self.tensors;
        let both = if b.offers(&b.tensor_name(gate_up, "weight"), Form::Unusual) {
            let sizes = [self.width, self.inner.gate_up];
            GateUp::Fused(self.apply(b, gate_up, sizes, bias, x, "ffn_moe_gate_up")?)
        } else {
            let sizes = [self.width, self.inner.n];
            let gate = self.apply(b, gate, sizes, bias, x, "ffn_moe_gate")?;
            let up = self.apply(b, up, sizes, bias, x, "ffn_moe_up")?;
            GateUp::Separate([gate, up])
        };
        activation::activate(b, cx, glu, cx.layer.limits.experts, both, "ffn_moe_act")
    }

    /// Multiplies each selected expert's matrix by the expert's row of `x`, and adds the bias.
    fn apply(
        &self,
        b: &mut Builder<'_>,
        tensor: &str,
        [rows, columns]: [Size; 2],
        bias: Presence,
        x: Value,
        name: &str,
    ) -> Result<Value, ArchError> {
        let (count, ids) = (self.count, self.routing.ids);
        let weight = b.tensor_name(tensor, "weight");
        let weight = b.require(&weight, &[rows, columns, count], TensorRole::Experts)?;
        let y = b.push(MulMatId { window: None }, vec![weight, x, ids], name)?;
        let of_bias = b.tensor_name(tensor, "bias");
        match b.optional(&of_bias, &[columns, count], TensorRole::Bias, bias)? {
            Some(bias) => b.push(AddId { window: None }, vec![y, bias, ids], name),
            None => Ok(y),
        }
    }
}
