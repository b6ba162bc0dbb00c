use std::f64::consts::TAU;

use tpc_ir::DType;
use tpc_ir::op::{Rope, RopeMode};

use super::kernel::{OPERANDS, Request, Selection, float, grid_1d, index, instance, kernel, real};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "rope",
    text: concat!(
        include_str!("rope.cuh"),
        "\n#line 1 \"rope.cu\"\n",
        include_str!("rope.cu")
    ),
};

fn correction_dim(op: &Rope, rotations: f64) -> f64 {
    let wave = op.n_ctx_orig as f64 / (rotations * TAU);
    op.n_dims as f64 * libm::log(wave) / (2.0 * libm::log(f64::from(op.freq_base)))
}

/// Returns the index of the position that determines the angle of a pair; `None` if the sections are empty.
fn position_of(mode: RopeMode, pair: u64) -> Option<u32> {
    let Some(sections) = mode.sections() else {
        return Some(0);
    };
    let total = sections.iter().fold(0_u64, |n, s| n.saturating_add(*s));
    let pair = pair.checked_rem(total)?;
    if let RopeMode::Imrope { .. } = mode {
        let turn = (pair % 3) as usize;
        return Some(if pair / 3 < sections[turn] {
            turn as u32
        } else {
            3
        });
    }
    let mut before = 0_u64;
    for (i, section) in sections[..3].iter().enumerate() {
        before = before.saturating_add(*section);
        if pair < before {
            return Some(i as u32);
        }
    }
    Some(3)
}

/// Appends parameters and tables of the embedding, aligned to eight bytes.
pub(super) fn rope_params(
    before: Params,
    op: &Rope,
    has_factors: bool,
) -> Result<Params, &'static str> {
    let pairs = op.n_dims / 2;
    let halves = match op.mode {
        RopeMode::Norm => false,
        RopeMode::Neox | RopeMode::Mrope { .. } | RopeMode::Imrope { .. } => true,
    };
    let (ext, scale) = (f64::from(op.ext_factor), f64::from(op.freq_scale));
    let yarn = if ext == 0.0 {
        1.0
    } else {
        1.0 + 0.1 * libm::log(1.0 / scale)
    };
    let mut params = before
        .aligned(8)
        .size(pairs)?
        .u32(halves.into())
        .u32(op.mode.positions() as u32)
        .u32(has_factors.into())
        .f64(scale)
        .f64(f64::from(op.attn_factor) * yarn);
    let plain = |i: u64| libm::pow(f64::from(op.freq_base), -2.0 * i as f64 / op.n_dims as f64);
    let low = correction_dim(op, f64::from(op.beta_fast)).floor().max(0.0);
    let high = correction_dim(op, f64::from(op.beta_slow)).ceil();
    let high = high.min(op.n_dims as f64 - 1.0);
    let mix = |i: u64| {
        let ramp = 1.0 - ((i as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
        if ext == 0.0 { 0.0 } else { ramp * ext }
    };
    params = (0..pairs).fold(params, |p, i| p.f64(plain(i)));
    params = (0..pairs).fold(params, |p, i| p.f64(mix(i)));
    for i in 0..pairs {
        params = params.u32(position_of(op.mode, i).ok_or("the sections are empty")?);
    }
    Ok(params)
}

pub(super) fn rope(op: &Rope, request: &Request<'_>) -> Selection {
    let (x, positions, factors) = match request.operands {
        [x, positions] => (x, positions, None),
        [x, positions, factors] => (x, positions, Some(factors)),
        _ => return Err(OPERANDS),
    };
    let y = request.real_result()?;
    real(x.dtype)?;
    index(positions.dtype)?;
    factors.map_or(Ok(()), |f| float(f.dtype))?;
    let params = rope_params(Params::new(), op, factors.is_some())?;
    let types = [
        x.dtype,
        positions.dtype,
        factors.map_or(DType::F32, |f| f.dtype),
        y.dtype,
    ];
    let template = instance(FAMILY, "rope", &types, Arguments::Params);
    let pairs = (op.n_dims / 2) as usize;
    let each = x.max_dims[0].saturating_sub(pairs);
    let units = each
        .saturating_mul(x.max_dims[2])
        .saturating_mul(x.max_dims[3]);
    kernel(template, params, grid_1d(units, request))
}
