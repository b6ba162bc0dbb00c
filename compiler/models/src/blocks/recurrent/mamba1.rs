//! Mamba-1: a convolution along time, then the selective scan. Step, `B` and `C` are projections of the convolved
//! channels.

use tpc_ir::Value;
use tpc_ir::op::{Glu, GluKind, Unary, UnaryKind};

use super::conv;
use super::scan::{self, ScanInputs, ScanSizes};
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::blocks::norm;
use crate::description::{Presence, ScanHeads, ScanNorms};
use crate::error::ArchError;
use crate::hparams::Mamba1HParams;
use crate::size::Size;
use crate::source::TensorRole;

pub(super) fn mamba1(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Mamba1HParams,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let linear = |b: &mut Builder<'_>, tensor, x, sizes, bias| {
        b.linear(tensor, x, sizes, bias, TensorRole::Matrix, tensor)
    };
    let absent = Presence::Absent;
    let projected = linear(b, "ssm_in", x, [embd, hp.projected], absent)?;
    let [x, gate] = input_and_gate(b, hp, projected)?;
    let x = conv::apply(b, cx, &hp.conv, x)?;
    let kind = UnaryKind::Silu;
    let x = b.push(Unary { kind }, vec![x], "ssm_x_silu")?;
    let selected = linear(b, "ssm_x", x, [hp.inner, hp.selected], absent)?;
    let (rank, state) = (hp.rank.n, hp.d_state.n);
    let [dt, taken, read] = match hp.form.heads {
        ScanHeads::Channels => [0, rank, rank + state],
        ScanHeads::Given => [2 * state, 0, state],
    };
    let dt = b.slice(selected, 0, dt, rank.into(), "ssm_dt")?;
    let taken = b.slice(selected, 0, taken, state.into(), "ssm_b")?;
    let read = b.slice(selected, 0, read, state.into(), "ssm_c")?;
    let dt = normalise(b, cx, hp, "ssm_dt_norm", hp.rank, dt)?;
    let taken = normalise(b, cx, hp, "ssm_b_norm", hp.d_state, taken)?;
    let read = normalise(b, cx, hp, "ssm_c_norm", hp.d_state, read)?;
    let dt = linear(b, "ssm_dt", dt, [hp.rank, hp.heads], Presence::Required)?;
    let y = passed_scan(b, cx, hp, [x, dt, taken, read])?;
    let y = b.push(Glu::new(GluKind::Swiglu), vec![gate, y], "ssm_gated")?;
    let y = b.reshape(y, [hp.inner.n.into(), b.n_tokens()], "ssm_y")?;
    linear(b, "ssm_out", y, [hp.inner, embd], absent)
}

/// Returns the convolution's input, `[inner, n_tokens]`, and the output gate, `[head_dim, heads, n_tokens]`.
fn input_and_gate(
    b: &mut Builder<'_>,
    hp: &Mamba1HParams,
    projected: Value,
) -> Result<[Value; 2], ArchError> {
    let (dim, heads, inner) = (hp.head_dim, hp.heads.n, hp.inner.n);
    match hp.form.heads {
        ScanHeads::Channels => {
            let x = b.slice(projected, 0, 0, inner.into(), "ssm_x")?;
            let gate = b.slice(projected, 0, inner, inner.into(), "ssm_z")?;
            let gate = b.reshape(gate, [dim.into(), heads.into(), b.n_tokens()], "ssm_z")?;
            Ok([x, gate])
        }
        ScanHeads::Given => {
            let both = [(2 * dim).into(), heads.into(), b.n_tokens()];
            let both = b.reshape(projected, both, "ssm_zx")?;
            let gate = b.slice(both, 0, 0, dim.into(), "ssm_z")?;
            let x = b.slice(both, 0, dim, dim.into(), "ssm_x")?;
            let x = b.reshape(x, [inner.into(), b.n_tokens()], "ssm_x")?;
            Ok([x, gate])
        }
    }
}

fn normalise(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Mamba1HParams,
    tensor: &str,
    size: Size,
    x: Value,
) -> Result<Value, ArchError> {
    if !hp.normed {
        return Ok(x);
    }
    match hp.form.norms {
        ScanNorms::PlainByKey => norm::without_weight(b, &cx.model, x, tensor),
        ScanNorms::Weighted => norm::with_weight(b, &cx.model, tensor, &[size], x, tensor),
    }
}

/// Returns the scan's output plus the scaled input, `[head_dim, heads, n_tokens]`.
fn passed_scan(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Mamba1HParams,
    [x, dt, taken, read]: [Value; 4],
) -> Result<Value, ArchError> {
    let decay = b.bare_name("ssm_a");
    let decay = match hp.form.heads {
        ScanHeads::Channels => b.require(&decay, &[hp.d_state, hp.heads], TensorRole::Decay)?,
        ScanHeads::Given => per_head(b, &decay, hp.heads, TensorRole::Decay)?,
    };
    let passed = b.bare_name("ssm_d");
    let passed = per_head(b, &passed, hp.heads, TensorRole::NormWeight)?;
    let sizes = ScanSizes {
        d_state: hp.d_state.n,
        head_dim: hp.head_dim,
        heads: hp.heads.n,
        groups: 1,
    };
    let inputs = ScanInputs {
        x,
        dt,
        decay,
        taken,
        read,
    };
    scan::passed_scan(b, cx, &sizes, inputs, passed)
}

/// Returns a tensor with one number per head, `[1, heads]`.
fn per_head(
    b: &mut Builder<'_>,
    tensor: &str,
    heads: Size,
    role: TensorRole,
) -> Result<Value, ArchError> {
    let numbers = b.require(tensor, &[heads], role)?;
    b.reshape(numbers, [1.into(), heads.n.into()], tensor)
}
