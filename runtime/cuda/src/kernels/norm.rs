//! Normalisation over axis 0.

use tpc_ir::op::{Norm, NormApply, NormKind, NormStats};

use super::kernel::{Request, Selected, float, instance, kernel, per_row};
use super::params::Params;
use super::source::{Family, Needs};

const FAMILY: Family = Family {
    name: "norm",
    text: concat!(
        include_str!("terms.cuh"),
        "\n#line 1 \"norm.cu\"\n",
        include_str!("norm.cu")
    ),
};

fn params(kind: NormKind, eps: f32, n: u64) -> Params {
    let kind = match kind {
        NormKind::Rms => 0,
        NormKind::Layer => 1,
        NormKind::L2 => 2,
    };
    Params::new().u32(kind).f32(eps).f32(n as f32)
}

pub(super) fn norm(op: &Norm, request: &Request<'_>) -> Selected {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "norm", &[x.dtype, y.dtype], Needs::Params);
    kernel(
        template,
        params(op.kind, op.eps, 0),
        per_row(x.rows(), x.most[0]),
    )
}

/// A norm times its second operand; a second result is the terms of the first.
pub(super) fn norm_mul(op: &Norm, request: &Request<'_>) -> Selected {
    let [x, w] = request.reals()?;
    let (y, terms) = match request.results {
        [y] => (y, false),
        [y, _] => (y, true),
        _ => return Err("it has another number of results"),
    };
    float(y.dtype)?;
    let types = [x.dtype, w.dtype, y.dtype];
    let template = instance(FAMILY, "norm_mul", &types, Needs::Params).with(u32::from(terms));
    kernel(
        template,
        params(op.kind, op.eps, 0),
        per_row(x.rows(), x.most[0]),
    )
}

pub(super) fn norm_stats(op: &NormStats, request: &Request<'_>) -> Selected {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "norm_stats", &[x.dtype, y.dtype], Needs::Params);
    kernel(
        template,
        params(op.kind, 0.0, 0),
        per_row(x.rows(), x.most[0]),
    )
}

pub(super) fn norm_apply(op: &NormApply, request: &Request<'_>) -> Selected {
    let ([x, stats], y) = (request.reals()?, request.real_result()?);
    float(stats.dtype)?;
    let types = [x.dtype, stats.dtype, y.dtype];
    let template = instance(FAMILY, "norm_apply", &types, Needs::Params);
    kernel(
        template,
        params(op.kind, op.eps, op.n),
        per_row(x.rows(), x.most[0]),
    )
}
