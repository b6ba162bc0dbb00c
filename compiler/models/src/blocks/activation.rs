use tpc_ir::op::{Clamp, Glu, GluKind, Unary, UnaryKind};
use tpc_ir::{Dim, Value};

use super::builder::Builder;
use super::context::LayerContext;
use crate::description::SwigluLimits;
use crate::error::ArchError;

/// Gate and up: each `[n, …]`, or both in one value, `[2·n, …]`.
#[derive(Clone, Copy)]
pub(super) enum GateUp {
    Separate([Value; 2]),
    Fused(Value),
}

pub(super) fn activate(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    glu: Option<&Glu>,
    limit: Option<f32>,
    operands: GateUp,
    name: &str,
) -> Result<Value, ArchError> {
    let Some(glu) = glu else {
        return situ(b, cx, operands, name);
    };
    let glu = &match cx.model.hparams.ffn.named {
        Some(kind) => Glu::new(kind),
        None => glu.clone(),
    };
    let Some(limit) = limit else {
        return apply(b, glu.clone(), operands, name);
    };
    match cx.model.arch.ffn.limits {
        SwigluLimits::Ignored => apply(b, glu.clone(), operands, name),
        SwigluLimits::OnGate | SwigluLimits::OnGateOfAll => {
            let glu = Glu {
                limit,
                ..Glu::new(GluKind::SwigluClamp)
            };
            apply(b, glu, operands, name)
        }
        SwigluLimits::OnActivated => {
            let [gate, up] = split_gate_up(b, operands, name)?;
            let kind = UnaryKind::Silu;
            let gate = b.push(Unary { kind }, vec![gate], "ffn_silu")?;
            let below = Clamp {
                min: f32::NEG_INFINITY,
                max: limit,
            };
            let gate = b.push(below, vec![gate], "ffn_silu_clamped")?;
            let within = Clamp {
                min: -limit,
                max: limit,
            };
            let up = b.push(within, vec![up], "ffn_up_clamped")?;
            b.mul(gate, up, name)
        }
    }
}

/// Applies the layer's xIELU.
pub(super) fn xielu(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let hp = cx.layer.xielu;
    let hp = hp.expect("invariant: layers have the parameters of the description's activation");
    b.push(hp.op(), vec![x], name)
}

/// Applies SiTU, a SiLU with soft bounds on gate and up.
fn situ(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    operands: GateUp,
    name: &str,
) -> Result<Value, ArchError> {
    let (bound, linear) = cx.model.hparams.ffn.situ.unwrap_or((1.0, None));
    let [gate, mut up] = split_gate_up(b, operands, name)?;
    let share = b.unary(&[UnaryKind::Sigmoid], gate, "ffn_situ")?;
    let gate = soft_bound(b, gate, bound)?;
    let gate = b.mul(gate, share, "ffn_situ")?;
    if let Some(bound) = linear {
        up = soft_bound(b, up, bound)?;
    }
    b.mul(gate, up, name)
}

fn soft_bound(b: &mut Builder<'_>, x: Value, bound: f32) -> Result<Value, ArchError> {
    let x = b.scale(x, 1.0 / bound, "ffn_situ")?;
    let x = b.unary(&[UnaryKind::Tanh], x, "ffn_situ")?;
    b.scale(x, bound, "ffn_situ")
}

fn apply(b: &mut Builder<'_>, glu: Glu, operands: GateUp, name: &str) -> Result<Value, ArchError> {
    let operands = match operands {
        GateUp::Separate(both) => both.to_vec(),
        GateUp::Fused(both) => vec![both],
    };
    b.push(glu, operands, name)
}

fn split_gate_up(
    b: &mut Builder<'_>,
    operands: GateUp,
    name: &str,
) -> Result<[Value; 2], ArchError> {
    match operands {
        GateUp::Separate(both) => Ok(both),
        GateUp::Fused(both) => {
            let twice = b.dims(both)[0].as_const();
            let n = twice.expect("invariant: widths are constant") / 2;
            let half = |b: &mut Builder<'_>, start| b.slice(both, 0, start, Dim::constant(n), name);
            Ok([half(b, 0)?, half(b, n)?])
        }
    }
}
