//! A feed-forward network: up, activation, down.

use tpc_ir::Value;
use tpc_ir::op::{Binary, BinaryKind, Glu};

use super::activation::{self, GateUp};
use super::adapters;
use super::builder::Builder;
use super::context::LayerContext;
use crate::description::{Activation, Presence, SharedForm, SharedGate};
use crate::error::ArchError;
use crate::hparams::FfnWidth;
use crate::size::Size;
use crate::source::{Form, TensorRole};

/// Tensor names of a network, without `weight` or `bias`. Values have the same names.
pub(super) struct NetworkTensors {
    gate: &'static str,
    pub(super) up: &'static str,
    down: &'static str,
    act: &'static str,
    out: &'static str,
}

pub(super) const DENSE: NetworkTensors = NetworkTensors {
    gate: "ffn_gate",
    up: "ffn_up",
    down: "ffn_down",
    act: "ffn_act",
    out: "ffn_out",
};

const SHARED: NetworkTensors = NetworkTensors {
    gate: "ffn_gate_shexp",
    up: "ffn_up_shexp",
    down: "ffn_down_shexp",
    act: "ffn_act_shexp",
    out: "ffn_shexp",
};

#[derive(Clone, Copy)]
struct OptionalTensors {
    bias: Presence,
    gate_bias: Presence,
    act_scales: Presence,
}

/// Returns the dense network's output, `[n_embd, n_tokens]`.
pub(super) fn dense(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    width: FfnWidth,
    x: Value,
) -> Result<Value, ArchError> {
    let form = &cx.model.arch.ffn;
    let extras = OptionalTensors {
        bias: form.bias,
        gate_bias: match form.gate_biased {
            true => form.bias,
            false => Presence::Absent,
        },
        act_scales: form.act_scales,
    };
    match &form.activation {
        Activation::GatedFused(glu) if is_fused(b, &DENSE) => match form.narrow {
            Some(kind) if is_narrow(b, width) => {
                let y = up(b, cx, &DENSE, extras, width.n, x)?;
                let y = b.unary(&[kind], y, DENSE.act)?;
                down(b, cx, &DENSE, extras, width.n, y)
            }
            _ => fused_network(b, cx, &DENSE, extras, glu, width, x),
        },
        _ => separate_network(b, cx, &DENSE, extras, width.n, x),
    }
}

/// True if the file's `ffn_up` has the width once.
fn is_narrow(b: &Builder<'_>, width: FfnWidth) -> bool {
    b.columns(&b.tensor_name(DENSE.up, "weight")) == Some(width.n.n)
}

/// True if the file has gate and up in one tensor, the usual form.
fn is_fused(b: &Builder<'_>, names: &NetworkTensors) -> bool {
    !b.offers(&b.tensor_name(names.gate, "weight"), Form::Unusual)
}

fn fused_network(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    names: &NetworkTensors,
    extras: OptionalTensors,
    glu: &Glu,
    width: FfnWidth,
    x: Value,
) -> Result<Value, ArchError> {
    let sizes = [cx.model.hparams.embd(), width.gate_up];
    let role = TensorRole::Matrix;
    let both = b.linear(names.up, x, sizes, extras.bias, role, names.up)?;
    let (limit, both) = (cx.layer.limits.dense, GateUp::Fused(both));
    let y = activation::activate(b, cx, Some(glu), limit, both, names.act)?;
    down(b, cx, names, extras, width.n, y)
}

/// Returns the output of a shared expert of this width, `[n_embd, n_tokens]`.
pub(super) fn shared_expert(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    form: &SharedForm,
    width: Size,
    x: Value,
) -> Result<Value, ArchError> {
    let extras = OptionalTensors {
        bias: Presence::Absent,
        gate_bias: Presence::Absent,
        act_scales: Presence::Absent,
    };
    match &cx.model.arch.ffn.activation {
        Activation::Gated(glu) if form.gate_up == SharedGate::Fused && is_fused(b, &SHARED) => {
            let width = FfnWidth {
                n: width,
                gate_up: Size::product(2, width.n, "twice the width of the shared expert")?,
            };
            fused_network(b, cx, &SHARED, extras, glu, width, x)
        }
        _ => separate_network(b, cx, &SHARED, extras, width, x),
    }
}

fn separate_network(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    names: &NetworkTensors,
    extras: OptionalTensors,
    width: Size,
    x: Value,
) -> Result<Value, ArchError> {
    let gated = |b: &mut Builder<'_>, glu: Option<&Glu>| {
        let (sizes, role) = ([cx.model.hparams.embd(), width], TensorRole::Matrix);
        let gate = b.linear(names.gate, x, sizes, extras.gate_bias, role, names.gate)?;
        let gate = adapters::add(b, cx, names.gate, sizes, x, gate)?;
        let up = up(b, cx, names, extras, width, x)?;
        let (limit, both) = (cx.layer.limits.dense, GateUp::Separate([gate, up]));
        activation::activate(b, cx, glu, limit, both, names.act)
    };
    let y = match &cx.model.arch.ffn.activation {
        Activation::Gated(glu) | Activation::GatedFused(glu) => gated(b, Some(glu))?,
        Activation::Situ => gated(b, None)?,
        Activation::Xielu => {
            let y = up(b, cx, names, extras, width, x)?;
            activation::xielu(b, cx, y, names.act)?
        }
        Activation::Plain(kinds) => {
            let y = up(b, cx, names, extras, width, x)?;
            let y = b.unary(kinds, y, names.act)?;
            let scales = b.tensor_name("ffn.act", "scales");
            match b.optional(&scales, &[width], TensorRole::Scale, extras.act_scales)? {
                Some(scales) => {
                    let kind = BinaryKind::Div;
                    b.push(Binary { kind }, vec![y, scales], names.act)?
                }
                None => y,
            }
        }
    };
    down(b, cx, names, extras, width, y)
}

fn up(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    names: &NetworkTensors,
    extras: OptionalTensors,
    width: Size,
    x: Value,
) -> Result<Value, ArchError> {
    let (sizes, role) = ([cx.model.hparams.embd(), width], TensorRole::Matrix);
    let y = b.linear(names.up, x, sizes, extras.bias, role, names.up)?;
    adapters::add(b, cx, names.up, sizes, x, y)
}

fn down(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    names: &NetworkTensors,
    extras: OptionalTensors,
    width: Size,
    y: Value,
) -> Result<Value, ArchError> {
    let sizes = [width, cx.model.hparams.embd()];
    let role = TensorRole::Matrix;
    let out = b.linear(names.down, y, sizes, extras.bias, role, names.out)?;
    adapters::add(b, cx, names.down, sizes, y, out)
}
