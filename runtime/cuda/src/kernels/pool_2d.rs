use tpc_ir::op::{Pool2d, PoolKind};

use super::kernel::{Request, Selection, grid_1d, instance, kernel};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "pool_2d",
    text: include_str!("pool_2d.cu"),
};

pub(super) fn pool_2d(op: &Pool2d, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let mut params = Params::new();
    for n in [op.window, op.stride, op.pad].into_iter().flatten() {
        params = params.size(n)?;
    }
    let params = params.u32((op.kind == PoolKind::Avg).into());
    let template = instance(FAMILY, "pool_2d", &[x.dtype, y.dtype], Arguments::Params);
    kernel(template, params, grid_1d(y.elements(), request))
}
