//! Sums and orders along an axis.

use tpc_ir::op::{ArgSort, SortOrder, Sum, TopMask};

use super::axis;
use super::kernel::{Request, Selection, flat, index, instance, kernel, lanes};
use super::params::Params;
use super::source::{Arguments, Family};

const FAMILY: Family = Family {
    name: "reduce",
    text: concat!(
        include_str!("order.cuh"),
        "\n#line 1 \"reduce.cu\"\n",
        include_str!("reduce.cu")
    ),
};

/// Elements that a lane adds at least.
const EACH: usize = 16;

fn along(axis: usize, mean: bool, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let lanes = lanes(x.max_dims[axis], EACH);
    let template = instance(FAMILY, "sum", &[x.dtype, y.dtype], Arguments::Params);
    let params = Params::new()
        .u32(axis as u32)
        .u32(mean.into())
        .u32(lanes as u32);
    let units = y.elements().saturating_mul(lanes);
    kernel(template, params, flat(units, request))
}

pub(super) fn sum(op: &Sum, request: &Request<'_>) -> Selection {
    along(axis(op.axis)?, false, request)
}

/// The number of elements of a whole row is the size of the launch.
pub(super) fn mean(request: &Request<'_>) -> Selection {
    along(0, true, request)
}

pub(super) fn cumsum(request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "cumsum", &[x.dtype, y.dtype], Arguments::Views);
    kernel(template, Params::new(), flat(x.rows(), request))
}

fn order(ascending: bool, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.result()?);
    index(y.dtype)?;
    let template = instance(FAMILY, "order", &[x.dtype, y.dtype], Arguments::Params);
    let params = Params::new().u32(ascending.into());
    kernel(template, params, flat(x.elements(), request))
}

/// The width of the result says how many.
pub(super) fn top_k(request: &Request<'_>) -> Selection {
    order(false, request)
}

pub(super) fn top_mask(op: &TopMask, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "top_mask", &[x.dtype, y.dtype], Arguments::Params);
    let params = Params::new().u32(u32::try_from(op.k).unwrap_or(u32::MAX));
    kernel(template, params, flat(x.elements(), request))
}

pub(super) fn arg_sort(op: &ArgSort, request: &Request<'_>) -> Selection {
    order(op.order == SortOrder::Ascending, request)
}
