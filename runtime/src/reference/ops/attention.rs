use tpc_ir::op::{FlashAttn, HeadWindow, SoftMax};

use super::matmul::dot;
use super::rank_at_most;
use crate::error::ExecError;
use crate::tensor::{Tensor, buffer, count};

/// Replaces logits by `e^(x − max)` and returns their sum. Writes zeros if every logit is −∞.
fn exponentials(logits: &mut [f64], max: f64) -> f64 {
    if max == f64::NEG_INFINITY {
        logits.fill(0.0);
        return 0.0;
    }
    let mut sum = 0.0;
    for x in logits {
        *x = (*x - max).exp();
        sum += *x;
    }
    sum
}

fn max_of(logits: &[f64]) -> f64 {
    logits.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Returns row `i1` of the mask of batch (`i2`, `i3`). Mask batches repeat.
fn mask_row(mask: &[f64], dims: [usize; 4], i1: usize, i2: usize, i3: usize) -> &[f64] {
    let [n, rows, d2, d3] = dims;
    let row = ((i3 % d3.max(1)) * d2 + i2 % d2.max(1)) * rows + i1;
    &mask[row * n..][..n]
}

fn mask_covers(mask: &Tensor, what: &str) -> Result<(), ExecError> {
    if mask.dims()[2..].contains(&0) && mask.dims()[0] > 0 {
        return Err(ExecError::Parameter {
            what: format!("the mask of {what} has empty batches: {:?}", mask.dims()),
        });
    }
    Ok(())
}

fn sinks_of(operand: Option<&&Tensor>) -> Result<Option<Vec<f64>>, ExecError> {
    let Some(sinks) = operand else {
        return Ok(None);
    };
    rank_at_most(1, "sinks", sinks)?;
    Ok(Some(sinks.reals()?.into_owned()))
}

pub(super) fn soft_max(op: &SoftMax, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let [n, d1, d2, _] = x.dims();
    let mask = match operands.get(1) {
        Some(m) => {
            mask_covers(m, "soft_max")?;
            Some((m.reals()?, m.dims()))
        }
        None => None,
    };
    let sinks = sinks_of(operands.get(2))?;
    let slopes = slopes(op.max_bias, op.heads.as_ref(), d2)?;
    let scale = f64::from(op.scale);
    let mut out: Vec<f64> = x.reals()?.iter().map(|v| v * scale).collect();
    if n > 0 {
        for (i, row) in out.chunks_exact_mut(n).enumerate() {
            let head = i / d1 % d2;
            if let Some((mask, dims)) = &mask {
                let mask = mask_row(mask, *dims, i % d1, head, i / d1 / d2);
                for (v, m) in row.iter_mut().zip(mask) {
                    *v += slopes[head] * m;
                }
            }
            let sink = sinks.as_ref().map(|s| s[head]);
            let max = sink.map_or(max_of(row), |s| max_of(row).max(s));
            let sum = exponentials(row, max) + sink.map_or(0.0, |s| (s - max).exp());
            if sum > 0.0 {
                row.iter_mut().for_each(|v| *v /= sum);
            }
        }
    }
    Tensor::reals_of(x.dims(), out)
}

/// Returns ALiBi's slope per local head (Press et al. 2021), extended as in ggml to head counts that are not powers of
/// two.
fn slopes(max_bias: f32, window: Option<&HeadWindow>, local: usize) -> Result<Vec<f64>, ExecError> {
    let (heads, total): (Vec<u64>, u64) = match window {
        Some(w) => {
            let in_range =
                |r: &tpc_ir::Interval| r.start.checked_add(r.len).is_some_and(|end| end <= w.total);
            let named = w.heads.iter().try_fold(0, |n: u64, r| n.checked_add(r.len));
            if !w.heads.iter().all(in_range) || named != Some(local as u64) {
                return Err(ExecError::Parameter {
                    what: format!("heads {:?} of {} are not {local} heads", w.heads, w.total),
                });
            }
            let heads = w.heads.iter().flat_map(|r| r.start..r.end());
            (heads.collect(), w.total)
        }
        None => ((0..local as u64).collect(), local as u64),
    };
    if max_bias <= 0.0 {
        return Ok(vec![1.0; local]);
    }
    let max_bias = f64::from(max_bias);
    let power = 1_u64 << total.max(1).ilog2();
    let m0 = (-max_bias / power as f64).exp2();
    let m1 = (-max_bias / 2.0 / power as f64).exp2();
    let slope = |h: u64| {
        if h < power {
            m0.powf((h + 1) as f64)
        } else {
            m1.powf((2 * (h - power) + 1) as f64)
        }
    };
    Ok(heads.into_iter().map(slope).collect())
}

pub(super) fn flash_attn(op: &FlashAttn, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let (q, k, v, mask) = (operands[0], operands[1], operands[2], operands[3]);
    let [dk, tokens, heads, streams] = q.dims();
    let [_, cells, kv_heads, _] = k.dims();
    let dv = v.dims()[0];
    let slopes = slopes(op.max_bias, op.heads.as_ref(), heads)?;
    mask_covers(mask, "flash_attn")?;
    let row = dv + usize::from(op.lse);
    let dims = [row, heads, tokens, streams];
    let mut out: Vec<f64> = buffer(dims)?;
    out.resize(count(dims)?, 0.0);
    if heads == 0 || row == 0 {
        return Tensor::reals_of(dims, out);
    }
    let sinks = sinks_of(operands.get(4))?;
    let mask_dims = mask.dims();
    let (q, k, v, mask) = (q.reals()?, k.reals()?, v.reals()?, mask.reals()?);
    let (scale, cap) = (f64::from(op.scale), f64::from(op.softcap));
    // Inference ensures that the KV heads divide the heads.
    let group = heads / kv_heads;
    let mut logits = vec![0.0; cells];
    for s in 0..streams {
        for h in 0..heads {
            let kv = (s * kv_heads + h / group) * cells;
            for t in 0..tokens {
                let q = &q[((s * heads + h) * tokens + t) * dk..][..dk];
                let mask = mask_row(&mask, mask_dims, t, h, s);
                for (c, logit) in logits.iter_mut().enumerate() {
                    if mask[c] == f64::NEG_INFINITY {
                        *logit = f64::NEG_INFINITY;
                        continue;
                    }
                    let x = dot(&k[(kv + c) * dk..][..dk], q);
                    let x = if cap == 0.0 {
                        x * scale
                    } else {
                        cap * (x * (scale / cap)).tanh()
                    };
                    *logit = x + slopes[h] * mask[c];
                }
                let max = max_of(&logits);
                let sink = sinks.as_ref().map(|s| s[h]);
                let max = sink.map_or(max, |s| max.max(s));
                let sum = exponentials(&mut logits, max) + sink.map_or(0.0, |s| (s - max).exp());
                let out = &mut out[((s * tokens + t) * heads + h) * row..][..row];
                if op.lse {
                    out[dv] = max + sum.ln();
                }
                if sum > 0.0 {
                    for (c, w) in logits.iter().enumerate().filter(|(_, w)| **w != 0.0) {
                        let v = &v[(kv + c) * dv..][..dv];
                        for (o, v) in out.iter_mut().zip(v) {
                            *o += w / sum * v;
                        }
                    }
                }
            }
        }
    }
    Tensor::reals_of(dims, out)
}

pub(super) fn merge_attn(operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let [row, heads, tokens, parts] = operands[0].dims();
    let dv = row - 1;
    let dims = [dv, heads, tokens, 1];
    let mut out: Vec<f64> = buffer(dims)?;
    out.resize(count(dims)?, 0.0);
    let sinks = sinks_of(operands.get(1))?;
    let x = operands[0].reals()?;
    for i in 0..heads * tokens {
        let part = |p: usize| &x[(p * heads * tokens + i) * row..][..row];
        let mut weights: Vec<f64> = (0..parts).map(|p| part(p)[dv]).collect();
        let sink = sinks.as_ref().map(|s| s[i % heads]);
        let max = sink.map_or(max_of(&weights), |s| max_of(&weights).max(s));
        let sum = exponentials(&mut weights, max) + sink.map_or(0.0, |s| (s - max).exp());
        if sum > 0.0 {
            let out = &mut out[i * dv..][..dv];
            for (p, w) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
                for (o, v) in out.iter_mut().zip(part(p)) {
                    *o += w / sum * v;
                }
            }
        }
    }
    Tensor::reals_of(dims, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, noise, real, run};
    use super::*;
    use tpc_ir::Interval;
    use tpc_ir::op::MergeAttn;

    const INF: f64 = f64::INFINITY;

    const PLAIN: FlashAttn = FlashAttn {
        scale: 0.5,
        max_bias: 0.0,
        softcap: 0.0,
        heads: None,
        lse: false,
    };

    #[test]
    fn soft_max_by_hand() {
        let x = real(&[2, 2], &[0.0, 2.0 * 3.0_f64.ln(), 5.0, 5.0]);
        let op = SoftMax::with_scale(0.5);
        close(&run(op.clone(), &[&x], &[2, 2]), &[0.25, 0.75, 0.5, 0.5]);
        let mask = real(&[2, 2], &[-INF, 0.0, -INF, -INF]);
        close(&run(op, &[&x, &mask], &[2, 2]), &[0.0, 1.0, 0.0, 0.0]);
        let none = real(&[0, 2], &[]);
        assert!(run(SoftMax::with_scale(1.0), &[&none], &[0, 2]).is_empty());
    }

    #[test]
    fn the_mask_of_soft_max_repeats_over_batches() {
        let x = real(&[2, 1, 2], &[0.0; 4]);
        let mask = real(&[2, 1], &[0.0, -INF]);
        let op = SoftMax::with_scale(1.0);
        close(&run(op, &[&x, &mask], &[2, 1, 2]), &[1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn attention_by_hand() {
        // Logits ½·(2·1, 2·x): weights ¼ and ¾ if the second is ln 3 above the first.
        let q = real(&[1, 1, 1], &[2.0]);
        let k = real(&[1, 3, 1], &[1.0, 1.0 + 3.0_f64.ln(), 9.0]);
        let v = real(&[2, 3, 1], &[1.0, 10.0, 2.0, 20.0, 5.0, 50.0]);
        let mask = real(&[3, 1], &[0.0, 0.0, -INF]);
        let out = run(PLAIN, &[&q, &k, &v, &mask], &[2, 1, 1]);
        close(&out, &[1.75, 17.5]);
        // A sink with the first logit's weight makes the weights 1 : 3 : 1.
        let sinks = real(&[1], &[1.0]);
        let out = run(PLAIN, &[&q, &k, &v, &mask, &sinks], &[2, 1, 1]);
        close(&out, &[1.4, 14.0]);
    }

    #[test]
    fn the_log_sum_exp_ends_a_row() {
        let op = FlashAttn { lse: true, ..PLAIN };
        let q = real(&[1, 1, 1], &[2.0]);
        let k = real(&[1, 3, 1], &[1.0, 1.0 + 3.0_f64.ln(), 9.0]);
        let v = real(&[2, 3, 1], &[1.0, 10.0, 2.0, 20.0, 5.0, 50.0]);
        let mask = real(&[3, 1], &[0.0, 0.0, -INF]);
        let out = run(op.clone(), &[&q, &k, &v, &mask], &[3, 1, 1]);
        close(&out, &[1.75, 17.5, 1.0 + 4.0_f64.ln()]);
        let sinks = real(&[1], &[1.0]);
        let out = run(op.clone(), &[&q, &k, &v, &mask, &sinks], &[3, 1, 1]);
        close(&out, &[1.4, 14.0, 1.0 + 5.0_f64.ln()]);
        let hidden = real(&[3, 1], &[-INF; 3]);
        let out = run(op, &[&q, &k, &v, &hidden], &[3, 1, 1]);
        assert_eq!(*out.reals().expect("real"), [0.0, 0.0, -INF]);
    }

    #[test]
    fn merged_parts_by_hand() {
        // Weights 1 : 3 of parts with 1 and 3 cells; the third part is empty.
        let ln = f64::ln;
        let parts = real(
            &[3, 1, 1, 3],
            &[1.0, 10.0, 5.0, 2.0, 20.0, 5.0 + ln(3.0), 7.0, 7.0, -INF],
        );
        close(&run(MergeAttn, &[&parts], &[2, 1, 1]), &[1.75, 17.5]);
        let sinks = real(&[1], &[5.0]);
        close(&run(MergeAttn, &[&parts, &sinks], &[2, 1, 1]), &[1.4, 14.0]);
        let none = real(&[3, 1, 1, 2], &[7.0, 7.0, -INF, 7.0, 7.0, -INF]);
        close(&run(MergeAttn, &[&none], &[2, 1, 1]), &[0.0, 0.0]);
        close(&run(MergeAttn, &[&none, &sinks], &[2, 1, 1]), &[0.0, 0.0]);
    }

    /// Attention over parts of the cells, joined, equals attention over all cells in any order of the cells.
    #[test]
    fn merged_parts_are_the_whole() {
        let (q, k, v) = (
            noise(&[4, 3, 6], 1),
            noise(&[4, 9, 2], 2),
            noise(&[5, 9, 2], 3),
        );
        let mut seen = noise(&[9, 3], 4).reals().expect("real").into_owned();
        // Token 0 sees no cell of the second part, token 1 no cell at all.
        seen[2..7].fill(-INF);
        seen[9..18].fill(-INF);
        let (mask, sinks) = (real(&[9, 3], &seen), noise(&[6], 5));
        for (max_bias, softcap) in [(0.0, 0.0), (8.0, 0.0), (0.0, 1.5)] {
            let op = FlashAttn {
                max_bias,
                softcap,
                ..PLAIN
            };
            let part = |(start, len): (usize, usize)| {
                let cells = |t: &Tensor, axis| t.slice(axis, start, len).expect("ok");
                let operands = [&q, &cells(&k, 1), &cells(&v, 1), &cells(&mask, 0)];
                let op = FlashAttn {
                    lse: true,
                    ..op.clone()
                };
                let out = run(op, &operands, &[6, 6, 3]);
                out.reals().expect("real").into_owned()
            };
            let parts = [(7, 2), (0, 2), (2, 5)].map(part).concat();
            let parts = real(&[6, 6, 3, 3], &parts);
            for sinks in [None, Some(&sinks)] {
                let all = [&q, &k, &v, &mask];
                let whole: Vec<&Tensor> = all.into_iter().chain(sinks).collect();
                let joined: Vec<&Tensor> = [&parts].into_iter().chain(sinks).collect();
                let whole = run(op.clone(), &whole, &[5, 6, 3]);
                let joined = run(MergeAttn, &joined, &[5, 6, 3]);
                close(&joined, &whole.reals().expect("real"));
            }
        }
    }

    #[test]
    fn softcap_bounds_scaled_logits_before_the_mask() {
        let q = real(&[1, 1, 1], &[3.0]);
        let k = real(&[1, 2, 1], &[4.0, -2.0]);
        let v = real(&[1, 2, 1], &[1.0, 0.0]);
        let mask = real(&[2, 1], &[-1.0, 0.5]);
        let op = FlashAttn {
            softcap: 2.0,
            ..PLAIN
        };
        let logit = |x: f64, m: f64| (2.0 * (0.5 * x / 2.0).tanh() + m).exp();
        let (a, b) = (logit(12.0, -1.0), logit(-6.0, 0.5));
        close(&run(op, &[&q, &k, &v, &mask], &[1, 1, 1]), &[a / (a + b)]);
    }

    #[test]
    fn a_fully_masked_row_is_zero() {
        let (q, k, v) = (
            noise(&[4, 2, 2], 1),
            noise(&[4, 3, 1], 2),
            noise(&[2, 3, 1], 3),
        );
        let mask = real(&[3, 2], &[-INF, -INF, -INF, 0.0, -INF, -INF]);
        let out = run(PLAIN, &[&q, &k, &v, &mask], &[2, 2, 2]);
        let v = v.reals().expect("real");
        close(&out, &[0.0, 0.0, 0.0, 0.0, v[0], v[1], v[0], v[1]]);
        let sinks = noise(&[2], 4);
        let out = run(PLAIN, &[&q, &k, &v_of(), &mask, &sinks], &[2, 2, 2]);
        assert!(out.reals().expect("real").iter().all(|x| x.is_finite()));
    }

    fn v_of() -> Tensor {
        noise(&[2, 3, 1], 3)
    }

    /// Attention of each query head alone, with its KV head and sink, equals that head of the whole.
    #[test]
    fn grouped_heads_share_kv_heads_in_order() {
        let (q, k, v) = (
            noise(&[4, 2, 6], 1),
            noise(&[4, 5, 2], 2),
            noise(&[3, 5, 2], 3),
        );
        let (mask, sinks) = (noise(&[5, 2], 4), noise(&[6], 5));
        let whole = run(PLAIN, &[&q, &k, &v, &mask, &sinks], &[3, 6, 2]);
        for h in 0..6 {
            let one = |t: &Tensor, axis, i| t.slice(axis, i, 1).expect("ok");
            let operands = [
                &one(&q, 2, h),
                &one(&k, 2, h / 3),
                &one(&v, 2, h / 3),
                &mask,
                &one(&sinks, 0, h),
            ];
            let part = run(PLAIN, &operands, &[3, 1, 2]);
            assert_eq!(part, one(&whole, 1, h));
        }
    }

    #[test]
    fn streams_are_attended_apart() {
        let (q, k, v) = (
            noise(&[4, 2, 2, 3], 1),
            noise(&[4, 5, 1, 3], 2),
            noise(&[3, 5, 1, 3], 3),
        );
        let mask = noise(&[5, 2], 4);
        let whole = run(PLAIN, &[&q, &k, &v, &mask], &[3, 2, 2, 3]);
        for s in 0..3 {
            let one = |t: &Tensor| t.slice(3, s, 1).expect("ok");
            let part = run(PLAIN, &[&one(&q), &one(&k), &one(&v), &mask], &[3, 2, 2]);
            assert_eq!(part, one(&whole));
        }
    }

    #[test]
    fn slopes_halve_and_interleave() {
        let found = slopes(8.0, None, 6).expect("all heads");
        // Four heads: 2^-2, 2^-4, 2^-6, 2^-8; the rest 2^-1 and 2^-3.
        let expected = [0.25, 0.0625, 0.015_625, 0.003_906_25, 0.5, 0.125];
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-15);
        }
        assert_eq!(slopes(0.0, None, 2), Ok(vec![1.0, 1.0]));
    }

    #[test]
    fn alibi_of_a_head_window_is_that_part_of_the_whole() {
        let (q, k, v) = (
            noise(&[4, 2, 6], 1),
            noise(&[4, 5, 6], 2),
            noise(&[3, 5, 6], 3),
        );
        let mask = real(
            &[5, 2],
            &[0.0, -1.0, -2.0, -INF, -INF, -1.0, 0.0, -1.0, -2.0, -3.0],
        );
        let op = FlashAttn {
            max_bias: 8.0,
            ..PLAIN
        };
        let whole = run(op.clone(), &[&q, &k, &v, &mask], &[3, 6, 2]);
        for (start, len) in [(0, 2), (2, 3), (5, 1), (6, 0)] {
            let window = HeadWindow {
                heads: vec![Interval {
                    start: start as u64,
                    len: len as u64,
                }],
                total: 6,
            };
            let part = |t: &Tensor| t.slice(2, start, len).expect("ok");
            let op = FlashAttn {
                heads: Some(window),
                ..op.clone()
            };
            let out = run(op, &[&part(&q), &part(&k), &part(&v), &mask], &[3, len, 2]);
            assert_eq!(out, whole.slice(1, start, len).expect("ok"));
        }
    }

    #[test]
    fn slopes_and_sinks_of_soft_max_by_hand() {
        let ln = f64::ln;
        // Two heads: slopes 1/16 and 1/256.
        let x = real(&[2, 1, 2], &[0.0; 4]);
        let mask = real(&[2, 1], &[0.0, 16.0 * ln(3.0)]);
        let op = SoftMax {
            max_bias: 8.0,
            ..SoftMax::with_scale(1.0)
        };
        let small = 3.0_f64.powf(1.0 / 16.0);
        let second = [1.0 / (1.0 + small), small / (1.0 + small)];
        let expected = [0.25, 0.75, second[0], second[1]];
        close(&run(op.clone(), &[&x, &mask], &[2, 1, 2]), &expected);
        let sinks = real(&[2], &[ln(4.0), -INF]);
        let expected = [0.125, 0.375, second[0], second[1]];
        close(
            &run(op.clone(), &[&x, &mask, &sinks], &[2, 1, 2]),
            &expected,
        );
        let second_head = SoftMax {
            heads: Some(HeadWindow {
                heads: vec![Interval { start: 1, len: 1 }],
                total: 2,
            }),
            ..op
        };
        let x = real(&[2], &[0.0; 2]);
        close(&run(second_head, &[&x, &mask], &[2]), &second);
    }

    #[test]
    fn a_head_window_must_be_the_heads() {
        let heads = |start, len, total| FlashAttn {
            heads: Some(HeadWindow {
                heads: vec![Interval { start, len }],
                total,
            }),
            ..PLAIN
        };
        let (q, k, v) = (
            noise(&[4, 1, 2], 1),
            noise(&[4, 1, 2], 2),
            noise(&[3, 1, 2], 3),
        );
        let mask = real(&[1, 1], &[0.0]);
        for op in [heads(0, 3, 4), heads(3, 2, 4), heads(u64::MAX, 2, 4)] {
            assert_eq!(code(op, &[&q, &k, &v, &mask], &[3, 2, 1]), "TPC0502");
        }
    }

    #[test]
    fn no_heads_no_cells_no_tokens() {
        let mask = real(&[3, 2], &[0.0; 6]);
        let (q, k, v) = (
            real(&[4, 2, 0], &[]),
            real(&[4, 3, 0], &[]),
            real(&[2, 3, 0], &[]),
        );
        assert!(run(PLAIN, &[&q, &k, &v, &mask], &[2, 0, 2]).is_empty());
        let (k, v) = (noise(&[4, 3, 2], 1), noise(&[2, 3, 2], 1));
        assert!(run(PLAIN, &[&q, &k, &v, &mask], &[2, 0, 2]).is_empty());
        let q = noise(&[4, 2, 2], 1);
        let (k, v, mask) = (
            real(&[4, 0, 2], &[]),
            real(&[2, 0, 2], &[]),
            real(&[0, 2], &[]),
        );
        close(&run(PLAIN, &[&q, &k, &v, &mask], &[2, 2, 2]), &[0.0; 8]);
        let (q, k, v) = (
            real(&[4, 0, 2], &[]),
            noise(&[4, 3, 2], 1),
            noise(&[2, 3, 2], 1),
        );
        let mask = real(&[3, 0], &[]);
        assert!(run(PLAIN, &[&q, &k, &v, &mask], &[2, 2, 0]).is_empty());
    }
}
