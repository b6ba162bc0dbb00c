use std::f64::consts::TAU;

use super::Function;
use super::call::Call;
use crate::error::ExecError;
use crate::tensor::Tensor;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("rope", |call| rotated(call, 1.0)),
    ("rope_back", |call| rotated(call, -1.0)),
];

const NEIGHBOURS: i32 = 0;
const HALVES: i32 = 2;
const SECTIONS: i32 = 8;
const IMAGES: i32 = 24;
const INTERLEAVED: i32 = 40;

struct Rotation {
    mode: i32,
    n_dims: i64,
    offset: i64,
    sections: [i64; 4],
    base: f64,
    scale: f64,
    /// YaRN's mix factor and the first and last pair of its ramp.
    ext: f64,
    ramp: [f64; 2],
    magnitude: f64,
}

impl Rotation {
    fn of(call: &Call<'_>) -> Result<Rotation, ExecError> {
        let mode = call.word(2);
        let known = [NEIGHBOURS, HALVES, SECTIONS, IMAGES, INTERLEAVED];
        call.ensure(known.contains(&mode), "an unknown mode")?;
        let n_dims = call.positive(1)?;
        let sections = [11, 12, 13, 14].map(|i| i64::from(call.word(i)));
        let sectioned = sections.iter().all(|&n| n >= 0) && sections.iter().sum::<i64>() > 0;
        call.ensure(mode < SECTIONS || sectioned, "sections without pairs")?;
        let (base, scale, ext) = (call.float(5), call.float(6), call.float(7));
        let corner = |rotations: f64| {
            let wave = f64::from(call.word(4)) / (rotations * TAU);
            n_dims as f64 * wave.ln() / (2.0 * base.ln())
        };
        let low = corner(call.float(9)).floor().max(0.0);
        let high = corner(call.float(10)).ceil().min(n_dims as f64 - 1.0);
        let more = match ext == 0.0 {
            true => 1.0,
            false => 1.0 + 0.1 * (1.0 / scale).ln(),
        };
        Ok(Rotation {
            mode,
            n_dims,
            offset: call.word(15).into(),
            sections,
            base,
            scale,
            ext,
            ramp: [low, high],
            magnitude: call.float(8) * more,
        })
    }

    /// Returns the pairs of a row and the distance between a pair's elements.
    fn pairs(&self) -> (i64, i64) {
        match self.mode {
            NEIGHBOURS => (self.n_dims / 2, 1),
            IMAGES => (self.n_dims, self.n_dims),
            _ => (self.n_dims / 2, self.n_dims / 2),
        }
    }

    /// Returns the position component that rotates a pair, and the pair's frequency index.
    fn source(&self, pair: i64) -> (usize, i64) {
        if self.mode < SECTIONS {
            return (0, pair);
        }
        let place = pair % self.sections.iter().sum::<i64>();
        let [t, h, w, _] = self.sections;
        if self.mode == INTERLEAVED {
            let position = match place % 3 {
                1 if place < 3 * h => 1,
                2 if place < 3 * w => 2,
                0 if place < 3 * t => 0,
                _ => 3,
            };
            return (position, pair);
        }
        let starts = [0, t, t + h, t + h + w];
        let position = starts.iter().rposition(|&start| place >= start);
        let position = position.unwrap_or(0);
        match self.mode == IMAGES {
            // Each section of an image restarts the frequencies.
            true => (position, place - starts[position]),
            false => (position, pair),
        }
    }

    fn angle(&self, position: f64, pair: i64, step: i64, factor: f64) -> f64 {
        let plain = position * self.base.powf(-2.0 * step as f64 / self.n_dims as f64) / factor;
        let [low, high] = self.ramp;
        let ramp = 1.0 - ((pair as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
        let mix = if self.ext == 0.0 {
            0.0
        } else {
            ramp * self.ext
        };
        plain * self.scale * (1.0 - mix) + plain * mix
    }
}

/// Rotates rows `[n, heads, tokens, …]`. Further sources: positions, optional divisors of frequencies.
fn rotated(call: &Call<'_>, sign: f64) -> Result<Tensor, ExecError> {
    let r = Rotation::of(call)?;
    let (x, positions) = (call.array(0)?, call.integers(1)?);
    let factors = match call.operand(2) {
        Some(_) => Some(call.array(2)?.data),
        None => None,
    };
    let [n, heads, tokens, _] = x.ne;
    let (pairs, distance) = r.pairs();
    let last = r.offset + (pairs - 1) * if distance == 1 { 2 } else { 1 } + distance;
    call.ensure(r.offset >= 0 && last < n as i64, "the pairs exceed the row")?;
    let of_token = if r.mode < SECTIONS { 1 } else { 4 };
    call.ensure(
        positions.len() >= of_token * tokens,
        "positions are missing",
    )?;
    let enough = factors.as_ref().is_none_or(|f| f.len() as i64 >= pairs);
    call.ensure(enough, "factors are missing")?;
    let mut out = x.data.into_owned();
    for (i, row) in out.chunks_exact_mut(n.max(1)).enumerate() {
        let token = i / heads.max(1) % tokens.max(1);
        for pair in 0..pairs {
            let (source, step) = r.source(pair);
            let position = positions[source * tokens + token] as f64;
            let factor = factors.as_ref().map_or(1.0, |f| f[pair as usize]);
            let (sin, cos) = r.angle(position, pair, step, factor).sin_cos();
            let (sin, cos) = (sign * sin * r.magnitude, cos * r.magnitude);
            let first = r.offset + if distance == 1 { 2 * pair } else { pair };
            let (p, q) = (first as usize, (first + distance) as usize);
            (row[p], row[q]) = (row[p] * cos - row[q] * sin, row[p] * sin + row[q] * cos);
        }
    }
    call.elements(out)
}
