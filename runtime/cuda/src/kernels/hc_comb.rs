use tpc_ir::op::HcComb;

use super::kernel::{Geometry, Request, Selection, grid_1d, instance, kernel};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "hc_comb",
    text: include_str!("hc_comb.cu"),
};

pub(super) fn hc_comb(op: &HcComb, request: &Request<'_>) -> Selection {
    let ([x, scale, base], y) = (request.reals()?, request.real_result()?);
    let types = [x, scale, base, y].map(|t| t.dtype);
    let template = instance(FAMILY, "hc_comb", &types, Arguments::Params);
    let params = Params::new().f32(op.eps).size(op.iterations)?;
    // Each thread keeps a matrix in shared memory.
    const THREADS: usize = 32;
    let bytes = 4 * y.max_dims[0] * y.max_dims[0] * THREADS;
    let geometry = Geometry {
        threads: THREADS as u32,
        shared_bytes: u32::try_from(bytes).map_err(|_| "the matrices are too large")?,
        ..grid_1d(y.max_dims[2].div_ceil(THREADS), request)
    };
    kernel(template, params, geometry)
}
