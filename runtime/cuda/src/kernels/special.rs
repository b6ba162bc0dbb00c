//! Ops of single architectures.

use tpc_ir::op::{HcComb, NgramRows, Pool2d, PoolKind};

use super::kernel::{Geometry, Request, Selected, flat, index, instance, kernel};
use super::params::Params;
use super::source::{Family, Needs};

const FAMILY: Family = Family {
    name: "special",
    text: include_str!("special.cu"),
};

pub(super) fn hc_comb(op: &HcComb, request: &Request<'_>) -> Selected {
    let ([x, scale, base], y) = (request.reals()?, request.real_result()?);
    let types = [x, scale, base, y].map(|t| t.dtype);
    let template = instance(FAMILY, "hc_comb", &types, Needs::Params);
    let params = Params::new().f32(op.eps).size(op.iterations)?;
    // A thread holds a matrix in shared memory.
    const THREADS: usize = 32;
    let bytes = 4 * y.most[0] * y.most[0] * THREADS;
    let geometry = Geometry {
        threads: THREADS as u32,
        shared_bytes: u32::try_from(bytes).map_err(|_| "its matrices are too large")?,
        ..flat(y.most[2].div_ceil(THREADS), request)
    };
    kernel(template, params, geometry)
}

pub(super) fn lightning_indexer(request: &Request<'_>) -> Selected {
    let ([q, k, w], y) = (request.reals()?, request.real_result()?);
    let types = [q, k, w, y].map(|t| t.dtype);
    let template = instance(FAMILY, "lightning_indexer", &types, Needs::Views);
    kernel(template, Params::new(), flat(y.elements(), request))
}

pub(super) fn ngram_rows(op: &NgramRows, request: &Request<'_>) -> Selected {
    let ([x], y) = (request.reals()?, request.result()?);
    index(y.dtype)?;
    let mut params = Params::new()
        .size(op.factors.len() as u64)?
        .size(op.tables.len() as u64)?
        .u64(op.end);
    for factor in &op.factors {
        params = params.u64(*factor);
    }
    for table in &op.tables {
        params = params.u64(table.start).u64(table.len);
    }
    let template = instance(FAMILY, "ngram_rows", &[x.dtype, y.dtype], Needs::Params);
    kernel(template, params, flat(y.most[1] * y.most[2], request))
}

pub(super) fn pool_2d(op: &Pool2d, request: &Request<'_>) -> Selected {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let mut params = Params::new();
    for n in [op.window, op.stride, op.pad].into_iter().flatten() {
        params = params.size(n)?;
    }
    let params = params.u32((op.kind == PoolKind::Avg).into());
    let template = instance(FAMILY, "pool_2d", &[x.dtype, y.dtype], Needs::Params);
    kernel(template, params, flat(y.elements(), request))
}
