//! Rotary position embedding.
#![allow(unsafe_code)]

use std::f64::consts::TAU;

use tpc_ir::op::{Rope, RopeMode};

use crate::elements::{int, read_row, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::sin_cos;
use crate::simd::vectorised;
use crate::view::View;

const PAIRS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pairing {
    Neighbours,
    Halves,
}

/// A rotation. The result may share the operand's memory.
#[derive(Debug)]
struct Rotation {
    pairing: Pairing,
    positions: usize,
    /// Index of the token position that gives the angle, per pair.
    which: Box<[u8]>,
    /// Angle per position in radians, before factors and scales, per pair.
    plain: Box<[f64]>,
    /// Share of the original frequency in YaRN, per pair.
    mix: Box<[f64]>,
    /// Factor of the interpolated frequency.
    scale: f64,
    magnitude: f64,
}

/// Returns the index of the pair that rotates `rotations` times in the training context.
fn corner(op: &Rope, rotations: f64) -> f64 {
    let wave = op.n_ctx_orig as f64 / (rotations * TAU);
    op.n_dims as f64 * libm::log(wave) / (2.0 * libm::log(f64::from(op.freq_base)))
}

/// Returns the index of the token position that gives pair `pair`'s angle.
fn position_of(mode: RopeMode, pair: u64) -> Option<u8> {
    let Some([t, h, w, e]) = mode.sections() else {
        return Some(0);
    };
    let total = t.saturating_add(h).saturating_add(w).saturating_add(e);
    let pair = pair.checked_rem(total)?;
    let alternating = matches!(mode, RopeMode::Imrope { .. });
    Some(if alternating {
        match pair % 3 {
            0 if pair / 3 < t => 0,
            1 if pair / 3 < h => 1,
            2 if pair / 3 < w => 2,
            _ => 3,
        }
    } else if pair < t {
        0
    } else if pair - t < h {
        1
    } else if pair - t - h < w {
        2
    } else {
        3
    })
}

pub(super) fn rope(op: &Rope, request: &Request<'_>) -> Selected {
    let operands = [Elements::Real, Elements::Int, Elements::Real];
    request.expect(
        &operands[..request.operands.len().clamp(2, 3)],
        &[Elements::Real],
    )?;
    let pairs = op.n_dims / 2;
    let which: Option<Box<[u8]>> = (0..pairs).map(|i| position_of(op.mode, i)).collect();
    let low = corner(op, f64::from(op.beta_fast)).floor().max(0.0);
    let high = corner(op, f64::from(op.beta_slow)).ceil();
    let high = high.min(op.n_dims as f64 - 1.0);
    let (ext, scale) = (f64::from(op.ext_factor), f64::from(op.freq_scale));
    let mix = |i: u64| {
        let ramp = 1.0 - ((i as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
        if ext == 0.0 { 0.0 } else { ramp * ext }
    };
    let plain = |i: u64| {
        let exponent = -2.0 * i as f64 / op.n_dims as f64;
        libm::pow(f64::from(op.freq_base), exponent)
    };
    let yarn = if ext == 0.0 {
        1.0
    } else {
        1.0 + 0.1 * libm::log(1.0 / scale)
    };
    Ok(Box::new(Rotation {
        pairing: match op.mode {
            RopeMode::Norm => Pairing::Neighbours,
            RopeMode::Neox | RopeMode::Mrope { .. } | RopeMode::Imrope { .. } => Pairing::Halves,
        },
        positions: op.mode.positions() as usize,
        which: which.ok_or("the sections are empty")?,
        plain: (0..pairs).map(plain).collect(),
        mix: (0..pairs).map(mix).collect(),
        scale,
        magnitude: f64::from(op.attn_factor) * yarn,
    }))
}

vectorised! {
    /// Computes sines and cosines of `position · frequency`, times `magnitude`. All slices have the same length.
    fn turns(
        frequencies: [&[f64]; 2],
        factors: &[f32],
        positions: &[f64],
        scale: f64,
        magnitude: f64,
        turns: [&mut [f32]; 2],
    ) {
        let [plain, mix] = frequencies;
        let [sin, cos] = turns;
        let n = plain.len();
        let (mix, factors, positions) = (&mix[..n], &factors[..n], &positions[..n]);
        let (sin, cos) = (&mut sin[..n], &mut cos[..n]);
        for i in 0..n {
            let plain = plain[i] / f64::from(factors[i]);
            let frequency = (scale * plain) * (1.0 - mix[i]) + plain * mix[i];
            let turn = sin_cos(positions[i] * frequency);
            sin[i] = (turn.sin * magnitude) as f32;
            cos[i] = (turn.cos * magnitude) as f32;
        }
    }
}

vectorised! {
    fn rotate_neighbours(row: &mut [f32], sin: &[f32], cos: &[f32]) {
        let (pairs, _) = row.as_chunks_mut::<2>();
        for (pair, (sin, cos)) in pairs.iter_mut().zip(sin.iter().zip(cos)) {
            let [p, q] = *pair;
            *pair = [p * cos - q * sin, p * sin + q * cos];
        }
    }
}

vectorised! {
    fn rotate_halves(row: &mut [f32], sin: &[f32], cos: &[f32]) {
        let n = sin.len();
        let (first, rest) = row.split_at_mut(n);
        let (second, cos) = (&mut rest[..n], &cos[..n]);
        for i in 0..n {
            let (p, q) = (first[i], second[i]);
            first[i] = p * cos[i] - q * sin[i];
            second[i] = p * sin[i] + q * cos[i];
        }
    }
}

impl Rotation {
    /// Computes sine and cosine of each pair of token `token`.
    ///
    /// # Safety
    /// `positions` has the token's positions, and `factors` has a factor per pair.
    unsafe fn turns_of(
        &self,
        positions: &View,
        factors: Option<&View>,
        [token, tokens]: [usize; 2],
        sin: &mut [f32],
        cos: &mut [f32],
    ) {
        let mut at = [0.0_f64; 4];
        for (i, at) in at.iter_mut().take(self.positions).enumerate() {
            // SAFETY: caller's contract.
            *at = unsafe { int(positions, [i * tokens + token, 0, 0, 0]) } as f64;
        }
        let n = self.plain.len();
        for from in (0..n).step_by(PAIRS) {
            let block = from..(from + PAIRS).min(n);
            let len = block.len();
            let (mut divisors, mut position) = ([1.0; PAIRS], [0.0; PAIRS]);
            if let Some(factors) = factors {
                // SAFETY: caller's contract.
                unsafe { read_row(factors, factors.ptr, from, &mut divisors[..len]) };
            }
            for (p, which) in position.iter_mut().zip(&self.which[block.clone()]) {
                *p = at[usize::from(*which)];
            }
            turns(
                [&self.plain[block.clone()], &self.mix[block.clone()]],
                &divisors,
                &position,
                self.scale,
                self.magnitude,
                [&mut sin[block.clone()], &mut cos[block]],
            );
        }
    }
}

impl Launch for Rotation {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        let pairs = self.plain.len();
        bytes_for(&[pairs, pairs, operands.first().map_or(0, |s| s[0])])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let (x, positions, factors, y) = match (call.operands, call.results) {
            ([x, p], [y]) => (x, p, None, y),
            ([x, p, f], [y]) => (x, p, Some(f), y),
            _ => return ensure(false, "wrong number of operands or results"),
        };
        let (d, tokens, pairs) = (x.ne[0], x.ne[2], self.plain.len());
        ensure(x.ne == y.ne, "mismatched sizes of x and the result")?;
        ensure(2 * pairs <= d, "a row has fewer elements than are rotated")?;
        let line = |v: &View| v.rows() == 1 && !v.dtype.is_quantised();
        let all = line(positions) && positions.ne[0] == self.positions * tokens;
        ensure(all, "wrong number of token positions")?;
        let enough = |f: &View| line(f) && f.ne[0] >= pairs;
        ensure(factors.is_none_or(enough), "too few frequency factors")?;
        let whole = d.is_multiple_of(y.dtype.block_len() as usize);
        ensure(whole, "rows of the result are not whole blocks")?;
        let [sin, cos, row] = floats(call.scratch, [pairs, pairs, d])?;
        let mut turned = None;
        for i in call.worker.items(x.rows()) {
            let at = x.indices(i);
            // SAFETY: the rows exist; the result row is this worker's, and is read before it is written.
            unsafe {
                if turned != Some(at[1]) {
                    self.turns_of(positions, factors, [at[1], tokens], sin, cos);
                    turned = Some(at[1]);
                }
                read_row(x, x.row(at), 0, row);
                match self.pairing {
                    Pairing::Neighbours => rotate_neighbours(row, sin, cos),
                    Pairing::Halves => rotate_halves(row, sin, cos),
                }
                write_row(y, y.row(at), 0, row);
            }
        }
        Ok(())
    }
}
