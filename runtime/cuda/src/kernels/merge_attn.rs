use tpc_ir::DType;

use super::kernel::{
    Geometry, OPERANDS, Request, Selection, float, grid_per_row, instance, kernel, real,
};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "merge_attn",
    text: include_str!("merge_attn.cu"),
};

/// The maximum shared memory of the weights of all parts, in bytes.
const SHARED: usize = 48 << 10;

pub(super) fn merge_attn(request: &Request<'_>) -> Selection {
    let (x, sinks) = match request.operands {
        [x] => (x, None),
        [x, sinks] => (x, Some(sinks)),
        _ => return Err(OPERANDS),
    };
    let y = request.real_result()?;
    real(x.dtype)?;
    sinks.map_or(Ok(()), |s| float(s.dtype))?;
    let of_sinks = sinks.map_or(DType::F32, |s| s.dtype);
    let types = [x.dtype, of_sinks, y.dtype];
    let template = instance(FAMILY, "merge_attn", &types, Arguments::Views);
    let bytes = 4 * x.max_dims[3];
    if bytes > SHARED {
        return Err("the parts are too many");
    }
    let geometry = Geometry {
        shared_bytes: bytes as u32,
        ..grid_per_row(y.rows(), y.max_dims[0])
    };
    let template = template.with(u32::from(sinks.is_some()));
    kernel(template, Params::new(), geometry)
}
