//! Attention, and the soft maximum of rows.

use tpc_ir::DType;
use tpc_ir::op::{FlashAttn, HeadWindow, SoftMax};

use super::kernel::{
    GRID, Geometry, OPERANDS, Request, Selected, float, instance, kernel, per_row, real,
};
use super::params::Params;
use super::source::{Family, Needs};

const FAMILY: Family = Family {
    name: "attention",
    text: include_str!("attention.cu"),
};

/// Cells that a warp takes before there are more warps.
const CELLS: usize = 64;
/// The most warps that share a token's head.
const WARPS: usize = 8;

/// ALiBi's slope of each head of the device, as ggml extends it to numbers of heads that are no power of two.
fn slopes(
    max_bias: f32,
    heads: Option<&HeadWindow>,
    local: usize,
) -> Result<Vec<f32>, &'static str> {
    let (heads, total): (Vec<u64>, u64) = match heads {
        Some(window) => {
            let ends = window.heads.iter();
            let mut ends = ends.map(|r| r.start.checked_add(r.len));
            let named = window
                .heads
                .iter()
                .try_fold(0_u64, |n, r| n.checked_add(r.len));
            if !ends.all(|end| end.is_some_and(|end| end <= window.total))
                || named != Some(local as u64)
            {
                return Err("its window is not its heads");
            }
            let heads = window.heads.iter().flat_map(|r| r.start..r.end());
            (heads.collect(), window.total)
        }
        None => ((0..local as u64).collect(), local as u64),
    };
    if max_bias <= 0.0 {
        return Ok(vec![1.0; local]);
    }
    let power = 1_u64 << total.max(1).ilog2();
    let base = |bias: f64| libm::exp2(-bias / power as f64);
    let bias = f64::from(max_bias);
    let slope = |h: u64| match h < power {
        true => libm::pow(base(bias), (h + 1) as f64),
        false => libm::pow(base(bias / 2.0), (2 * (h - power) + 1) as f64),
    };
    Ok(heads.into_iter().map(|h| slope(h) as f32).collect())
}

pub(super) fn flash_attn(op: &FlashAttn, request: &Request<'_>) -> Selected {
    let (first, sinks) = match request.operands {
        [first @ .., sinks] if first.len() == 4 => (first, Some(sinks)),
        first if first.len() == 4 => (first, None),
        _ => return Err(OPERANDS),
    };
    let y = request.real_result()?;
    first.iter().try_for_each(|t| real(t.dtype))?;
    let [q, k, v, mask] = [first[0], first[1], first[2], first[3]];
    float(mask.dtype)?;
    sinks.map_or(Ok(()), |s| float(s.dtype))?;
    let mut params = Params::new()
        .f32(op.scale)
        .f32(op.softcap)
        .u32(sinks.is_some().into())
        .u32(0);
    for slope in slopes(op.max_bias, op.heads.as_ref(), q.most[2])? {
        params = params.f32(slope);
    }
    let types = [
        q.dtype,
        k.dtype,
        v.dtype,
        mask.dtype,
        sinks.map_or(DType::F32, |s| s.dtype),
        y.dtype,
    ];
    let template = instance(FAMILY, "flash_attn", &types, Needs::Params);
    let warps = k.most[1].div_ceil(CELLS).clamp(1, WARPS);
    let floats = q.most[0] + warps * (32 + 2 + v.most[0]);
    let units = q.most[1]
        .saturating_mul(q.most[2])
        .saturating_mul(q.most[3]);
    let geometry = Geometry {
        grid: [units.clamp(1, GRID * 1024) as u32, 1, 1],
        threads: 32 * warps as u32,
        shared_bytes: u32::try_from(4 * floats).map_err(|_| "its heads are too wide")?,
    };
    kernel(template, params, geometry)
}

pub(super) fn soft_max(op: &SoftMax, request: &Request<'_>) -> Selected {
    let (x, further) = match request.operands {
        [x, further @ ..] if further.len() < 3 => (x, further),
        _ => return Err(OPERANDS),
    };
    let y = request.real_result()?;
    real(x.dtype)?;
    further.iter().try_for_each(|t| float(t.dtype))?;
    let of = |i: usize| further.get(i).map_or(DType::F32, |t| t.dtype);
    let types = [x.dtype, of(0), of(1), y.dtype];
    let template = instance(FAMILY, "soft_max", &types, Needs::Params);
    let mut params = Params::new()
        .f32(op.scale)
        .u32((!further.is_empty()).into())
        .u32((further.len() > 1).into())
        .u32(0);
    for slope in slopes(op.max_bias, op.heads.as_ref(), x.most[2])? {
        params = params.f32(slope);
    }
    kernel(template, params, per_row(x.rows(), x.most[0]))
}
