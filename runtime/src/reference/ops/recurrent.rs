use super::elementwise::softplus;
use super::index;
use super::matmul::dot;
use crate::error::ExecError;
use crate::tensor::{Tensor, buffer, count};

fn zeros(dims: [usize; 4]) -> Result<Vec<f64>, ExecError> {
    let mut out = buffer(dims)?;
    out.resize(count(dims)?, 0.0);
    Ok(out)
}

pub(super) fn ssm_conv(operands: &[&Tensor], dims: [usize; 4]) -> Result<Tensor, ExecError> {
    let [steps, ..] = operands[0].dims();
    let [taps_len, ..] = operands[1].dims();
    let (x, taps) = (operands[0].reals()?, operands[1].reals()?);
    let [channels, n_t, n_s, _] = dims;
    let mut out = buffer(dims)?;
    for s in 0..n_s {
        for t in 0..n_t {
            for c in 0..channels {
                let seen = &x[(s * channels + c) * steps + t..][..taps_len];
                out.push(dot(seen, &taps[c * taps_len..][..taps_len]));
            }
        }
    }
    Tensor::reals_of(dims, out)
}

/// Runs one recurrence per row of the state: one per element of a head.
pub(super) fn ssm_scan(operands: &[&Tensor]) -> Result<Vec<Tensor>, ExecError> {
    let [d_state, _, _, cells] = operands[0].dims();
    let dims = operands[1].dims();
    let [head_dim, heads, n_t, n_s] = dims;
    let a_len = operands[3].dims()[0];
    let groups = operands[4].dims()[1];
    let ids = operands.get(6).map(|ids| ids.ints()).transpose()?;
    let (from, x) = (operands[0].reals()?, operands[1].reals()?);
    let (dt, a) = (operands[2].reals()?, operands[3].reals()?);
    let (b, c) = (operands[4].reals()?, operands[5].reals()?);
    // Inference ensures that the groups divide the heads.
    let per_group = heads.checked_div(groups).unwrap_or(1);
    let state_dims = [d_state, head_dim, heads, n_s];
    let (mut y, mut state) = (zeros(dims)?, zeros(state_dims)?);
    for s in 0..n_s {
        let cell = match &ids {
            Some(ids) => index("cell of a state", ids[s], cells)?,
            None => s,
        };
        for h in 0..heads {
            for d in 0..head_dim {
                let row = &mut state[((s * heads + h) * head_dim + d) * d_state..][..d_state];
                row.copy_from_slice(
                    &from[((cell * heads + h) * head_dim + d) * d_state..][..d_state],
                );
                for t in 0..n_t {
                    let token = s * n_t + t;
                    let delta = softplus(dt[token * heads + h]);
                    let at = (token * heads + h) * head_dim + d;
                    let input = x[at] * delta;
                    let group = (token * groups + h / per_group) * d_state;
                    for (i, v) in row.iter_mut().enumerate() {
                        let a = a[h * a_len + if a_len == 1 { 0 } else { i }];
                        *v = *v * (delta * a).exp() + b[group + i] * input;
                    }
                    y[at] = dot(row, &c[group..][..d_state]);
                }
            }
        }
    }
    Ok(vec![
        Tensor::reals_of(dims, y)?,
        Tensor::reals_of(state_dims, state)?,
    ])
}

/// Runs one recurrence per row of the state: one per element of a value.
pub(super) fn gated_delta_net(operands: &[&Tensor]) -> Result<Vec<Tensor>, ExecError> {
    let [dk, key_heads, ..] = operands[0].dims();
    let dims = operands[2].dims();
    let [dv, heads, n_t, n_s] = dims;
    let gates = operands[3].dims()[0];
    let state_dims = operands[5].dims();
    let (q, k, v) = (
        operands[0].reals()?,
        operands[1].reals()?,
        operands[2].reals()?,
    );
    let (g, beta) = (operands[3].reals()?, operands[4].reals()?);
    let scale = 1.0 / (dk as f64).sqrt();
    let mut state = operands[5].reals()?.into_owned();
    let mut y = zeros(dims)?;
    for s in 0..n_s {
        for h in 0..heads {
            for j in 0..dv {
                let row = &mut state[((s * heads + h) * dv + j) * dk..][..dk];
                for t in 0..n_t {
                    let token = s * n_t + t;
                    let key = (token * key_heads + h % key_heads) * dk;
                    let (q, k) = (&q[key..][..dk], &k[key..][..dk]);
                    let head = token * heads + h;
                    for (i, x) in row.iter_mut().enumerate() {
                        *x *= g[head * gates + if gates == 1 { 0 } else { i }].exp();
                    }
                    let wanted = v[head * dv + j] - dot(row, k);
                    for (x, k) in row.iter_mut().zip(k) {
                        *x += k * beta[head] * wanted;
                    }
                    y[head * dv + j] = dot(row, q) * scale;
                }
            }
        }
    }
    Ok(vec![
        Tensor::reals_of(dims, y)?,
        Tensor::reals_of(state_dims, state)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, ints, noise, pad, real, results, run};
    use super::*;
    use crate::tensor::Shape;
    use tpc_ir::DType;
    use tpc_ir::op::{GatedDeltaNet, Op, SsmConv, SsmScan};

    fn at(t: &Tensor, i: [usize; 4]) -> f64 {
        let strides = t.strides();
        let place: usize = i.iter().zip(strides).map(|(i, s)| i * s).sum();
        t.reals().expect("real")[place]
    }

    fn two(op: impl Into<Op>, operands: &[&Tensor], dims: [&[usize]; 2]) -> [Tensor; 2] {
        let shapes = dims.map(|d| Shape {
            dtype: DType::F32,
            dims: pad(d),
        });
        let out = results(op, operands, &shapes).expect("the op fits its operands");
        out.try_into().expect("two results")
    }

    #[test]
    fn convolution_by_hand() {
        // Channel 0 sees 1 2 3 4 through (10, 1), channel 1 sees 5 6 7 8 through (0, 1).
        let x = real(&[4, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let taps = real(&[2, 2], &[10.0, 1.0, 0.0, 1.0]);
        close(
            &run(SsmConv, &[&x, &taps], &[2, 3]),
            &[12.0, 6.0, 23.0, 7.0, 34.0, 8.0],
        );
        let none = noise(&[1, 2], 1);
        assert!(run(SsmConv, &[&none, &taps], &[2, 0]).is_empty());
        assert_eq!(
            code(SsmConv, &[&noise(&[0, 2], 1), &taps], &[2, 0]),
            "TPC0502"
        );
    }

    #[test]
    fn sequences_and_channels_convolve_apart() {
        let (x, taps) = (noise(&[7, 3, 2], 1), noise(&[4, 3], 2));
        let out = run(SsmConv, &[&x, &taps], &[3, 4, 2]);
        for (c, t, s) in (0..3).flat_map(|c| (0..4).flat_map(move |t| [(c, t, 0), (c, t, 1)])) {
            let expected: f64 = (0..4)
                .map(|k| at(&taps, [k, c, 0, 0]) * at(&x, [t + k, c, s, 0]))
                .sum();
            assert!((at(&out, [c, t, s, 0]) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn scan_by_hand() {
        // softplus(0) = ln 2, so the state decays by 2^(-1) and takes in 3·ln 2 · (1, 2).
        let ln2 = std::f64::consts::LN_2;
        let state = real(&[2, 1, 1, 2], &[9.0, 9.0, 4.0, 8.0]);
        let (x, dt) = (real(&[1], &[3.0]), real(&[1], &[0.0]));
        let (b, c) = (real(&[2], &[1.0, 2.0]), real(&[2], &[1.0, -1.0]));
        let id = ints(&[1], &[1]);
        let a = real(&[1], &[-1.0]);
        let [y, s] = two(
            SsmScan,
            &[&state, &x, &dt, &a, &b, &c, &id],
            [&[1], &[2, 1, 1, 1]],
        );
        close(&s, &[2.0 + 3.0 * ln2, 4.0 + 6.0 * ln2]);
        close(&y, &[-2.0 - 3.0 * ln2]);
        // With one `a` per element, the second element of the state does not decay.
        let a = real(&[2], &[-1.0, 0.0]);
        let [_, s] = two(
            SsmScan,
            &[&state, &x, &dt, &a, &b, &c, &id],
            [&[1], &[2, 1, 1, 1]],
        );
        close(&s, &[2.0 + 3.0 * ln2, 8.0 + 6.0 * ln2]);
        let far = ints(&[1], &[2]);
        let operands = [&state, &x, &dt, &a, &b, &c, &far];
        let shapes = [[1, 1, 1, 1], [2, 1, 1, 1]].map(|dims| Shape {
            dtype: DType::F32,
            dims,
        });
        let e = results(SsmScan, &operands, &shapes);
        assert_eq!(e.expect_err("no such cell").code(), "TPC0506");
    }

    fn naive_scan(ops: &[&Tensor]) -> [Vec<f64>; 2] {
        let [n, dim, heads, _] = ops[0].dims();
        let [_, _, n_t, n_s] = ops[1].dims();
        let (a_len, groups) = (ops[3].dims()[0], ops[4].dims()[1]);
        let (mut ys, mut states) = (Vec::new(), Vec::new());
        for s in 0..n_s {
            let cell = ops[6].ints().expect("ids")[s] as usize;
            let mut state = vec![vec![vec![0.0; n]; dim]; heads];
            for (h, of_head) in state.iter_mut().enumerate() {
                for (d, of_dim) in of_head.iter_mut().enumerate() {
                    for (i, v) in of_dim.iter_mut().enumerate() {
                        *v = at(ops[0], [i, d, h, cell]);
                    }
                }
            }
            for t in 0..n_t {
                for (h, of_head) in state.iter_mut().enumerate() {
                    let delta = (1.0 + at(ops[2], [h, t, s, 0]).exp()).ln();
                    let group = h * groups / heads;
                    for (d, of_dim) in of_head.iter_mut().enumerate() {
                        let mut y = 0.0;
                        for (i, v) in of_dim.iter_mut().enumerate() {
                            let a = at(ops[3], [i % a_len, h, 0, 0]);
                            let gain = at(ops[4], [i, group, t, s]) * at(ops[1], [d, h, t, s]);
                            *v = *v * (a * delta).exp() + gain * delta;
                            y += *v * at(ops[5], [i, group, t, s]);
                        }
                        ys.push(y);
                    }
                }
            }
            states.extend(state.into_iter().flatten().flatten());
        }
        [ys, states]
    }

    #[test]
    fn scans_are_what_their_definition_says() {
        for (a_len, groups) in [(1, 2), (5, 1), (5, 4)] {
            let state = noise(&[5, 3, 4, 3], 1);
            let (x, dt) = (noise(&[3, 4, 6, 2], 2), noise(&[4, 6, 2], 3));
            let a = noise(&[a_len, 4], 4);
            let (b, c) = (noise(&[5, groups, 6, 2], 5), noise(&[5, groups, 6, 2], 6));
            let ids = ints(&[2], &[2, 0]);
            let operands = [&state, &x, &dt, &a, &b, &c, &ids];
            let found = two(SsmScan, &operands, [&[3, 4, 6, 2], &[5, 3, 4, 2]]);
            for (found, expected) in found.iter().zip(naive_scan(&operands)) {
                close(found, &expected);
            }
        }
    }

    #[test]
    fn delta_rule_by_hand() {
        // Half of (4, 8) is left: (2, 4). k reads 2, v is 6, β ½: (2, 4) + (1, 0)·½·4 = (4, 4). q reads 4 + 8 = 12.
        let ln2 = std::f64::consts::LN_2;
        let (q, k) = (real(&[2], &[1.0, 2.0]), real(&[2], &[1.0, 0.0]));
        let (v, g, beta) = (real(&[1], &[6.0]), real(&[1], &[-ln2]), real(&[1], &[0.5]));
        let state = real(&[2], &[4.0, 8.0]);
        let dims: [&[usize]; 2] = [&[1], &[2]];
        let [y, s] = two(GatedDeltaNet, &[&q, &k, &v, &g, &beta, &state], dims);
        close(&s, &[4.0, 4.0]);
        close(&y, &[12.0 / 2.0_f64.sqrt()]);
        // A gate per element of a key: (2, 8) becomes (4, 8).
        let g = real(&[2], &[-ln2, 0.0]);
        let [_, s] = two(GatedDeltaNet, &[&q, &k, &v, &g, &beta, &state], dims);
        close(&s, &[4.0, 8.0]);
    }

    /// Computes steps in closed form: `S ← S·diag(e^g)·(I − β·k·kᵀ) + β·v·kᵀ`.
    fn naive_delta(ops: &[&Tensor]) -> [Vec<f64>; 2] {
        let [dk, key_heads, ..] = ops[0].dims();
        let [dv, heads, n_t, n_s] = ops[2].dims();
        let gates = ops[3].dims()[0];
        let mut y = vec![0.0; dv * heads * n_t * n_s];
        let mut out = Vec::new();
        for s in 0..n_s {
            for h in 0..heads {
                let key = h % key_heads;
                let mut m: Vec<Vec<f64>> = (0..dv)
                    .map(|j| (0..dk).map(|i| at(ops[5], [i, j, h, s])).collect())
                    .collect();
                for t in 0..n_t {
                    let k = |i: usize| at(ops[1], [i, key, t, s]);
                    let beta = at(ops[4], [0, h, t, s]);
                    for (j, row) in m.iter_mut().enumerate() {
                        let old: Vec<f64> = (0..dk)
                            .map(|i| row[i] * at(ops[3], [i % gates, h, t, s]).exp())
                            .collect();
                        for (i, v) in row.iter_mut().enumerate() {
                            let turned: f64 = (0..dk)
                                .map(|l| {
                                    let unit = if l == i { 1.0 } else { 0.0 };
                                    old[l] * (unit - beta * k(l) * k(i))
                                })
                                .sum();
                            *v = turned + beta * at(ops[2], [j, h, t, s]) * k(i);
                        }
                        let read: f64 = (0..dk).map(|i| row[i] * at(ops[0], [i, key, t, s])).sum();
                        y[((s * n_t + t) * heads + h) * dv + j] = read / (dk as f64).sqrt();
                    }
                }
                out.extend(m.into_iter().flatten());
            }
        }
        [y, out]
    }

    #[test]
    fn the_delta_rule_is_what_its_definition_says() {
        for (gates, key_heads) in [(1, 2), (5, 1), (5, 4)] {
            let (q, k) = (
                noise(&[5, key_heads, 6, 2], 1),
                noise(&[5, key_heads, 6, 2], 2),
            );
            let v = noise(&[3, 4, 6, 2], 3);
            let (g, beta) = (noise(&[gates, 4, 6, 2], 4), noise(&[1, 4, 6, 2], 5));
            let state = noise(&[5, 3, 4, 2], 6);
            let operands = [&q, &k, &v, &g, &beta, &state];
            let found = two(GatedDeltaNet, &operands, [&[3, 4, 6, 2], &[5, 3, 4, 2]]);
            for (found, expected) in found.iter().zip(naive_delta(&operands)) {
                close(found, &expected);
            }
        }
    }

    #[test]
    fn batches_one_after_another_are_one_batch() {
        let (b, c) = (noise(&[5, 2, 6, 1], 5), noise(&[5, 2, 6, 1], 6));
        let (x, dt) = (noise(&[3, 4, 6, 1], 2), noise(&[4, 6, 1], 3));
        let a = noise(&[1, 4], 4);
        let id = ints(&[1], &[0]);
        let scan = |state: &Tensor, from: usize, len: usize| {
            let part = |t: &Tensor, axis| t.slice(axis, from, len).expect("ok");
            let (x, dt) = (part(&x, 2), part(&dt, 1));
            let (b, c) = (part(&b, 2), part(&c, 2));
            let operands = [state, &x, &dt, &a, &b, &c, &id];
            two(SsmScan, &operands, [&[3, 4, len, 1], &[5, 3, 4, 1]])
        };
        let start = noise(&[5, 3, 4, 1], 1);
        let [whole, end] = scan(&start, 0, 6);
        let [first, middle] = scan(&start, 0, 2);
        let [second, last] = scan(&middle, 2, 4);
        assert_eq!(end, last);
        assert_eq!(whole.slice(2, 0, 2).expect("ok"), first);
        assert_eq!(whole.slice(2, 2, 4).expect("ok"), second);
    }

    #[test]
    fn devices_without_heads() {
        let none = |dims: &[usize]| real(dims, &[]);
        let [y, s] = two(
            SsmScan,
            &[
                &none(&[5, 3, 0, 1]),
                &none(&[3, 0, 6, 1]),
                &none(&[0, 6, 1]),
                &none(&[1, 0]),
                &noise(&[5, 2, 6, 1], 1),
                &noise(&[5, 2, 6, 1], 2),
                &ints(&[1], &[0]),
            ],
            [&[3, 0, 6, 1], &[5, 3, 0, 1]],
        );
        assert!(y.is_empty() && s.is_empty());
        let [y, s] = two(
            GatedDeltaNet,
            &[
                &none(&[5, 0, 6, 1]),
                &none(&[5, 0, 6, 1]),
                &none(&[3, 0, 6, 1]),
                &none(&[1, 0, 6, 1]),
                &none(&[1, 0, 6, 1]),
                &none(&[5, 3, 0, 1]),
            ],
            [&[3, 0, 6, 1], &[5, 3, 0, 1]],
        );
        assert!(y.is_empty() && s.is_empty());
    }
}
