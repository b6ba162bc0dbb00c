//! Mamba-2: a convolution along time, then the selective scan, gated and normalised by groups of heads.

use tpc_ir::op::{Glu, GluKind, Unary, UnaryKind};
use tpc_ir::{Dim, Value};

use super::conv;
use super::scan::{self, ScanInputs, ScanSizes};
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::blocks::norm;
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::SsmHParams;
use crate::size::Size;
use crate::source::TensorRole;

pub(super) fn ssm(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &SsmHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let [inner, heads, group_width] = [hp.inner.n, hp.heads.n, hp.group_width.n];
    let projected = b.project("ssm_in", x, [embd, hp.projected], "ssm_in")?;
    let cut =
        |b: &mut Builder<'_>, of, start, len: u64, name| b.slice(of, 0, start, len.into(), name);
    let z = cut(b, projected, 0, inner, "ssm_z")?;
    let x = cut(b, projected, inner, hp.conv.channels.n, "ssm_xbc")?;
    let dt = cut(b, projected, inner + hp.conv.channels.n, heads, "ssm_dt")?;
    let convolved = conv::apply(b, cx, &hp.conv, x)?;
    let kind = UnaryKind::Silu;
    let convolved = b.push(Unary { kind }, vec![convolved], "ssm_xbc_silu")?;
    let x = cut(b, convolved, 0, inner, "ssm_x")?;
    let taken = cut(b, convolved, inner, group_width, "ssm_b")?;
    let read = cut(b, convolved, inner + group_width, group_width, "ssm_c")?;
    let dt = b.add_bias("ssm_dt", dt, hp.heads, Presence::Required, "ssm_dt")?;
    let y = passed_scan(b, cx, hp, [x, dt, taken, read])?;
    let by_head: [Dim; 3] = [hp.head_dim.into(), heads.into(), b.n_tokens()];
    let z = b.reshape(z, by_head, "ssm_z")?;
    let y = b.push(Glu::new(GluKind::Swiglu), vec![z, y], "ssm_gated")?;
    let y = grouped_norm(b, cx, hp, y)?;
    let y = b.reshape(y, [inner.into(), b.n_tokens()], "ssm_y")?;
    b.project("ssm_out", y, [hp.inner, embd], "ssm_out")
}

/// Returns the scan's output plus the scaled input, `[head_dim, heads, n_tokens]`.
fn passed_scan(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &SsmHParams,
    [x, dt, taken, read]: [Value; 4],
) -> Result<Value, ArchError> {
    let one = Size {
        n: 1,
        from: "one number per head",
    };
    let decay = b.bare_name("ssm_a");
    let decay = b.require(&decay, &[one, hp.heads], TensorRole::Decay)?;
    let passed = b.bare_name("ssm_d");
    let passed = b.require(&passed, &[one, hp.heads], TensorRole::NormWeight)?;
    let sizes = ScanSizes {
        d_state: hp.d_state,
        head_dim: hp.head_dim,
        heads: hp.heads.n,
        groups: hp.groups.n,
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

/// Normalises the heads of each group of `y` together, if the file has the norm.
fn grouped_norm(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &SsmHParams,
    y: Value,
) -> Result<Value, ArchError> {
    let sizes = [hp.normed, hp.groups];
    if !norm::exists(b, &cx.model, "ssm_norm", &sizes, Presence::Optional)? {
        return Ok(y);
    }
    let by_group = [hp.normed.n.into(), hp.groups.n.into(), b.n_tokens()];
    let y = b.reshape(y, by_group, "ssm_grouped")?;
    norm::with_weight(b, &cx.model, "ssm_norm", &sizes, y, "ssm_normed")
}
