//! Rotary position embedding, with YaRN (Peng et al. 2023) as in ggml.

use std::f64::consts::TAU;

use tpc_ir::op::{Rope, RopeMode};

use super::rank_at_most;
use crate::error::ExecError;
use crate::tensor::Tensor;

/// Returns the pair index at which the embedding turns `rotations` times over the training context.
fn corner(op: &Rope, rotations: f64) -> f64 {
    let wave = op.n_ctx_orig as f64 / (rotations * TAU);
    op.n_dims as f64 * wave.ln() / (2.0 * f64::from(op.freq_base).ln())
}

struct Frequencies {
    /// Radians per position of each pair. YaRN's ramp mixes scaled and unscaled positions.
    per_position: Vec<f64>,
    /// Factor of the rotated elements.
    magnitude: f64,
}

fn frequencies(op: &Rope, factors: Option<&[f64]>) -> Frequencies {
    let pairs = (op.n_dims / 2) as usize;
    let (base, scale) = (f64::from(op.freq_base), f64::from(op.freq_scale));
    let ext = f64::from(op.ext_factor);
    let mut magnitude = f64::from(op.attn_factor);
    let low = corner(op, f64::from(op.beta_fast)).floor().max(0.0);
    let high = corner(op, f64::from(op.beta_slow))
        .ceil()
        .min(op.n_dims as f64 - 1.0);
    if ext != 0.0 {
        magnitude *= 1.0 + 0.1 * (1.0 / scale).ln();
    }
    let per_position = (0..pairs)
        .map(|i| {
            let exponent = -2.0 * i as f64 / op.n_dims as f64;
            let plain = base.powf(exponent) / factors.map_or(1.0, |f| f[i]);
            let interpolated = scale * plain;
            if ext == 0.0 {
                return interpolated;
            }
            let ramp = 1.0 - ((i as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
            let mix = ramp * ext;
            interpolated * (1.0 - mix) + plain * mix
        })
        .collect();
    Frequencies {
        per_position,
        magnitude,
    }
}

/// Returns the position component that rotates `pair` (Wang et al. 2024; the interleaved form follows ggml).
const fn position_of(mode: RopeMode, pair: u64) -> usize {
    let Some([t, h, w, e]) = mode.sections() else {
        return 0;
    };
    let total = t.saturating_add(h).saturating_add(w).saturating_add(e);
    let pair = pair % total;
    match mode {
        RopeMode::Imrope { .. } => match pair % 3 {
            0 if pair / 3 < t => 0,
            1 if pair / 3 < h => 1,
            2 if pair / 3 < w => 2,
            _ => 3,
        },
        RopeMode::Norm | RopeMode::Neox | RopeMode::Mrope { .. } => {
            if pair < t {
                0
            } else if pair - t < h {
                1
            } else if pair - t - h < w {
                2
            } else {
                3
            }
        }
    }
}

pub(super) fn rope(op: &Rope, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    for (what, t) in ["positions", "factors"].into_iter().zip(&operands[1..]) {
        rank_at_most(1, what, t)?;
    }
    let positions = operands[1].ints()?;
    let factors = operands.get(2).map(|f| f.reals()).transpose()?;
    let f = frequencies(op, factors.as_deref());
    let [d, heads, tokens, batches] = x.dims();
    let half = f.per_position.len();
    let mut out = x.reals()?.into_owned();
    for t in 0..tokens {
        let turns: Vec<(f64, f64)> = f
            .per_position
            .iter()
            .zip(0..)
            .map(|(w, pair)| {
                let position = positions[position_of(op.mode, pair) * tokens + t];
                (position as f64 * w).sin_cos()
            })
            .map(|(s, c)| (s * f.magnitude, c * f.magnitude))
            .collect();
        for b in 0..batches {
            for h in 0..heads {
                let row = &mut out[((b * tokens + t) * heads + h) * d..][..d];
                for (i, &(sin, cos)) in turns.iter().enumerate() {
                    let (p, q) = match op.mode {
                        RopeMode::Norm => (2 * i, 2 * i + 1),
                        RopeMode::Neox | RopeMode::Mrope { .. } | RopeMode::Imrope { .. } => {
                            (i, i + half)
                        }
                    };
                    (row[p], row[q]) = (row[p] * cos - row[q] * sin, row[p] * sin + row[q] * cos);
                }
            }
        }
    }
    Tensor::reals_of(x.dims(), out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, ints, noise, real, run};
    use super::*;

    const PLAIN: Rope = Rope::with_defaults(RopeMode::Norm, 4);

    fn turn(x: f64, y: f64, angle: f64) -> [f64; 2] {
        let (s, c) = angle.sin_cos();
        [x * c - y * s, x * s + y * c]
    }

    #[test]
    fn pairs_are_neighbours_or_halves_and_the_rest_passes() {
        let x = real(&[5, 1, 1], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        let pos = ints(&[1], &[3]);
        // Frequencies 1 and 10000^(-1/2) = 0.01.
        let ([a, b], [c, d]) = (turn(1.0, 2.0, 3.0), turn(3.0, 4.0, 0.03));
        close(&run(PLAIN, &[&x, &pos], &[5]), &[a, b, c, d, 5.0]);
        let op = Rope {
            mode: RopeMode::Neox,
            ..PLAIN
        };
        let ([a, b], [c, d]) = (turn(1.0, 3.0, 3.0), turn(2.0, 4.0, 0.03));
        close(&run(op, &[&x, &pos], &[5]), &[a, c, b, d, 5.0]);
    }

    #[test]
    fn scale_factors_and_magnitude() {
        let x = real(&[4, 1, 1], &[1.0, 2.0, 3.0, 4.0]);
        let op = Rope {
            freq_scale: 0.5,
            attn_factor: 2.0,
            ..PLAIN
        };
        let factors = real(&[2], &[3.0, 8.0]);
        let ([a, b], [c, d]) = (turn(1.0, 2.0, 1.0), turn(3.0, 4.0, 0.06 / 16.0));
        close(
            &run(op, &[&x, &ints(&[1], &[6]), &factors], &[4]),
            &[2.0 * a, 2.0 * b, 2.0 * c, 2.0 * d],
        );
    }

    #[test]
    fn yarn_mixes_along_its_ramp() {
        // n_dims 8, base 10000, context 4096: corners at
        // 8·ln(4096/(32·2π))/(2·ln 10⁴) = 1.309… → 1 and 8·ln(4096/2π)/(2·ln 10⁴) = 2.814… → 3,
        // so pairs 0 and 1 extrapolate, pair 2 is half way and pair 3 interpolates.
        let op = Rope {
            n_dims: 8,
            freq_scale: 0.25,
            ext_factor: 1.0,
            ..PLAIN
        };
        let x = real(&[8, 1, 1], &[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
        let m = 1.0 + 0.1 * 4.0_f64.ln();
        let expected: Vec<f64> = [1.0, 0.1, 0.01 * 0.625, 0.001 * 0.25]
            .iter()
            .flat_map(|w| turn(m, 0.0, 40.0 * w))
            .collect();
        close(&run(op, &[&x, &ints(&[1], &[40])], &[8]), &expected);
    }

    #[test]
    fn every_token_turns_all_its_heads_by_its_own_position() {
        let x = noise(&[4, 2, 3], 5);
        let whole = run(PLAIN, &[&x, &ints(&[3], &[7, 0, 2])], &[4, 2, 3]);
        for (t, pos) in [7, 0, 2].into_iter().enumerate() {
            let one = x.slice(2, t, 1).expect("ok");
            let part = run(PLAIN, &[&one, &ints(&[1], &[pos])], &[4, 2, 1]);
            assert_eq!(part, whole.slice(2, t, 1).expect("ok"));
        }
        assert_eq!(
            x.slice(2, 1, 1).expect("ok"),
            whole.slice(2, 1, 1).expect("ok"),
            "position 0 turns nothing"
        );
    }

    #[test]
    fn no_heads() {
        let none = real(&[4, 0, 2], &[]);
        assert!(run(PLAIN, &[&none, &ints(&[2], &[0, 1])], &[4, 0, 2]).is_empty());
        let x = noise(&[3, 1, 1], 1);
        assert_eq!(code(PLAIN, &[&x, &ints(&[1], &[0])], &[3]), "TPC0502");
    }

    /// Compares a row of ones, for two tokens at four positions each, with rotations by one position at a time.
    fn check_sections(mode: RopeMode, expected: [usize; 8]) {
        let op = Rope {
            mode,
            n_dims: 16,
            ..PLAIN
        };
        let neox = Rope {
            mode: RopeMode::Neox,
            ..op.clone()
        };
        let x = noise(&[18, 1, 2], 3);
        let positions = [[3, 5], [7, 11], [13, 17], [19, 23]];
        let all = ints(&[8], positions.as_flattened());
        let found = run(op, &[&x, &all], &[18, 1, 2]);
        let found = found.reals().expect("real");
        for (pair, which) in expected.into_iter().enumerate() {
            let alone = ints(&[2], &positions[which]);
            let alone = run(neox.clone(), &[&x, &alone], &[18, 1, 2]);
            let alone = alone.reals().expect("real");
            for at in [pair, pair + 8, pair + 18, pair + 26] {
                assert_eq!(found[at], alone[at], "{mode:?} pair {pair}");
            }
        }
        assert_eq!(found[16..18], x.reals().expect("real")[16..18]);
    }

    #[test]
    fn sections_turn_by_positions_of_their_own() {
        let sections = |sections| RopeMode::Mrope { sections };
        check_sections(sections([3, 3, 2, 0]), [0, 0, 0, 1, 1, 1, 2, 2]);
        check_sections(sections([1, 1, 1, 1]), [0, 1, 2, 3, 0, 1, 2, 3]);
        check_sections(sections([2, 0, 4, 32]), [0, 0, 2, 2, 2, 2, 3, 3]);
        let sections = |sections| RopeMode::Imrope { sections };
        check_sections(sections([3, 3, 2, 0]), [0, 1, 2, 0, 1, 2, 0, 1]);
        check_sections(sections([3, 1, 2, 2]), [0, 1, 2, 0, 3, 2, 0, 3]);
        check_sections(sections([1, 1, 1, 1]), [0, 1, 2, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn sections_that_are_empty_or_lack_positions() {
        let op = |sections| Rope {
            mode: RopeMode::Mrope { sections },
            ..PLAIN
        };
        let x = noise(&[4, 1, 2], 1);
        let four = ints(&[8], &[0; 8]);
        assert_eq!(code(op([0; 4]), &[&x, &four], &[4, 1, 2]), "TPC0502");
        let one = ints(&[2], &[0; 2]);
        assert_eq!(code(op([1; 4]), &[&x, &one], &[4, 1, 2]), "TPC0502");
        run(op([u64::MAX; 4]), &[&x, &four], &[4, 1, 2]);
    }
}
