use tpc_ir::DType;
use tpc_ir::op::{ArgSort, SortOrder, Sum, TopKMask, TopMask};

use super::axis;
use super::kernel::{
    OPERANDS, Request, Selection, Tensor, grid_1d, index, instance, kernel, lanes, real,
};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "reduce",
    text: concat!(
        include_str!("order.cuh"),
        "\n#line 1 \"reduce.cu\"\n",
        include_str!("reduce.cu")
    ),
};

/// The minimum number of elements per lane.
const EACH: usize = 16;

fn reduce_axis(axis: usize, mean: bool, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let lanes = lanes(x.max_dims[axis], EACH);
    let template = instance(FAMILY, "sum", &[x.dtype, y.dtype], Arguments::Params);
    let params = Params::new()
        .u32(axis as u32)
        .u32(mean.into())
        .u32(lanes as u32);
    let units = y.elements().saturating_mul(lanes);
    kernel(template, params, grid_1d(units, request))
}

pub(super) fn sum(op: &Sum, request: &Request<'_>) -> Selection {
    reduce_axis(axis(op.axis)?, false, request)
}

/// The runtime size in the launch is the number of elements in a whole row.
pub(super) fn mean(request: &Request<'_>) -> Selection {
    reduce_axis(0, true, request)
}

pub(super) fn cumsum(request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "cumsum", &[x.dtype, y.dtype], Arguments::Views);
    kernel(template, Params::new(), grid_1d(x.rows(), request))
}

fn order(ascending: bool, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.result()?);
    index(y.dtype)?;
    let template = instance(FAMILY, "order", &[x.dtype, y.dtype], Arguments::Params);
    let params = Params::new().u32(ascending.into());
    kernel(template, params, grid_1d(x.elements(), request))
}

/// The width of the result is the number of indices.
pub(super) fn top_k(request: &Request<'_>) -> Selection {
    order(false, request)
}

pub(super) fn top_mask(op: &TopMask, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let template = instance(FAMILY, "top_mask", &[x.dtype, y.dtype], Arguments::Params);
    let params = Params::new().u32(u32::try_from(op.k).unwrap_or(u32::MAX));
    kernel(template, params, grid_1d(x.elements(), request))
}

pub(super) fn top_k_mask(op: TopKMask, request: &Request<'_>) -> Selection {
    let of = op.roles(request.operands).ok_or(OPERANDS)?;
    let y = request.real_result()?;
    let dtype_of = |tensor: Option<Tensor>, absent: DType| tensor.map_or(absent, |t| t.dtype);
    let scores = dtype_of(of.scores, DType::F32);
    let [members, extra] = [of.members, of.extra].map(|t| dtype_of(t, DType::I32));
    real(of.mask.dtype)?;
    real(scores)?;
    for ids in [of.picks.dtype, members, extra] {
        index(ids)?;
    }
    let types = [
        of.mask.dtype,
        of.picks.dtype,
        scores,
        members,
        extra,
        y.dtype,
    ];
    let template = instance(FAMILY, "top_k_mask", &types, Arguments::Params);
    let params = Params::new()
        .u32(op.has_scores.into())
        .u32(op.has_members.into())
        .u32(op.has_extra.into());
    kernel(template, params, grid_1d(y.elements(), request))
}

pub(super) fn arg_sort(op: &ArgSort, request: &Request<'_>) -> Selection {
    order(op.order == SortOrder::Ascending, request)
}
