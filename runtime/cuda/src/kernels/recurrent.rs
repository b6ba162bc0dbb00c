use tpc_ir::DType;

use super::kernel::float;
use super::kernel::{
    Geometry, OPERANDS, Request, Selection, Tensor, grid_1d, index, instance, kernel, lanes, real,
};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "recurrent",
    text: include_str!("recurrent.cu"),
};

/// The minimum number of state elements per lane.
const EACH: usize = 16;

pub(super) fn ssm_conv(request: &Request<'_>) -> Selection {
    let ([x, taps], y) = (request.reals()?, request.real_result()?);
    let types = [x.dtype, taps.dtype, y.dtype];
    let template = instance(FAMILY, "ssm_conv", &types, Arguments::Views);
    kernel(template, Params::new(), grid_1d(y.elements(), request))
}

fn results(request: &Request<'_>) -> Result<Tensor, &'static str> {
    let [y, state] = request.results else {
        return Err("wrong number of results");
    };
    float(y.dtype)?;
    f32(state)?;
    Ok(*y)
}

fn f32(state: &Tensor) -> Result<(), &'static str> {
    match state.dtype {
        DType::F32 => Ok(()),
        _ => Err("the state is not f32"),
    }
}

/// Returns the lanes per state row, and the geometry. `x` holds the values of the batch.
fn rows(state: &Tensor, x: &Tensor, request: &Request<'_>) -> (usize, Geometry) {
    let lanes = lanes(state.max_dims[0], EACH);
    let rows = x.max_dims[0]
        .saturating_mul(x.max_dims[1])
        .saturating_mul(x.max_dims[3]);
    (lanes, grid_1d(rows.saturating_mul(lanes), request))
}

pub(super) fn ssm_scan(request: &Request<'_>) -> Selection {
    let (parts, ids) = match request.operands {
        [parts @ .., ids] if parts.len() == 6 => (parts, Some(ids)),
        parts if parts.len() == 6 => (parts, None),
        _ => return Err(OPERANDS),
    };
    let y = results(request)?;
    parts.iter().try_for_each(|t| real(t.dtype))?;
    let [state, x, dt, a, b, c] = [parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]];
    f32(&state)?;
    f32(&a)?;
    ids.map_or(Ok(()), |ids| index(ids.dtype))?;
    let types = [
        x.dtype,
        dt.dtype,
        b.dtype,
        c.dtype,
        ids.map_or(DType::I32, |ids| ids.dtype),
        y.dtype,
    ];
    let template = instance(FAMILY, "ssm_scan", &types, Arguments::Faults);
    let (lanes, geometry) = rows(&state, &x, request);
    let params = Params::new().u32(lanes as u32).u32(ids.is_some().into());
    kernel(template, params, geometry)
}

pub(super) fn gated_delta_net(request: &Request<'_>) -> Selection {
    let [q, k, v, g, beta, state] = request.reals()?;
    let y = results(request)?;
    f32(&state)?;
    let types = [q, k, v, g, beta].map(|t| t.dtype);
    let types = [types.as_slice(), &[y.dtype]].concat();
    let template = instance(FAMILY, "gated_delta_net", &types, Arguments::Params);
    let (lanes, geometry) = rows(&state, &v, request);
    let params = Params::new().u32(lanes as u32).u32(0);
    kernel(template, params, geometry)
}

pub(super) fn wkv(request: &Request<'_>) -> Selection {
    let [r, w, k, v, state, more @ ..] = request.operands else {
        return Err(OPERANDS);
    };
    let y = results(request)?;
    request.operands.iter().try_for_each(|t| real(t.dtype))?;
    f32(state)?;
    let [seen, back] = match more {
        [] => [DType::F32; 2],
        [bonus] => [bonus.dtype, DType::F32],
        [a, b] => [a.dtype, b.dtype],
        _ => return Err(OPERANDS),
    };
    let types = [r.dtype, w.dtype, k.dtype, v.dtype, seen, back, y.dtype];
    let template = instance(FAMILY, "wkv", &types, Arguments::Params);
    let (lanes, geometry) = rows(state, v, request);
    let params = Params::new().u32(lanes as u32).u32(more.len() as u32);
    kernel(template, params, geometry)
}
