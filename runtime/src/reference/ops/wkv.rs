use super::matmul::dot;
use crate::error::ExecError;
use crate::tensor::{Tensor, buffer, count};

/// Runs one recurrence per row of the state: one per element of a value.
pub(super) fn wkv(operands: &[&Tensor]) -> Result<Vec<Tensor>, ExecError> {
    let [dk, ..] = operands[0].dims();
    let dims = operands[3].dims();
    let [dv, heads, n_t, n_s] = dims;
    let state_dims = operands[4].dims();
    let (r, w, k) = (
        operands[0].reals()?,
        operands[1].reals()?,
        operands[2].reals()?,
    );
    let v = operands[3].reals()?;
    let mut state = operands[4].reals()?.into_owned();
    let bonus = match operands {
        [_, _, _, _, _, bonus] => Some(bonus.reals()?),
        _ => None,
    };
    let correction = match operands {
        [_, _, _, _, _, a, b] => Some((a.reals()?, b.reals()?)),
        _ => None,
    };
    let mut y = buffer(dims)?;
    y.resize(count(dims)?, 0.0);
    for s in 0..n_s {
        for h in 0..heads {
            for j in 0..dv {
                let row = &mut state[((s * heads + h) * dv + j) * dk..][..dk];
                for t in 0..n_t {
                    let head = (s * n_t + t) * heads + h;
                    let of = |x: &[f64], i: usize| x[head * dk + i];
                    let value = v[head * dv + j];
                    let old: Vec<f64> = row.to_vec();
                    let sum = correction
                        .as_ref()
                        .map_or(0.0, |(a, _)| dot(&old, &a[head * dk..][..dk]));
                    for (i, x) in row.iter_mut().enumerate() {
                        let more = correction.as_ref().map_or(0.0, |(_, b)| of(b, i) * sum);
                        *x = *x * of(&w, i) + of(&k, i) * value + more;
                    }
                    y[head * dv + j] = match &bonus {
                        None => dot(row, &r[head * dk..][..dk]),
                        Some(u) => (0..dk)
                            .map(|i| of(&r, i) * (old[i] + u[h * dk + i] * of(&k, i) * value))
                            .sum(),
                    };
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
    use super::super::testing::{close, noise, pad, real, results};
    use super::*;
    use crate::tensor::Shape;
    use tpc_ir::DType;
    use tpc_ir::op::Wkv;

    fn two(operands: &[&Tensor], dims: [&[usize]; 2]) -> [Tensor; 2] {
        let shapes = dims.map(|d| Shape {
            dtype: DType::F32,
            dims: pad(d),
        });
        let out = results(Wkv, operands, &shapes).expect("the op fits its operands");
        out.try_into().expect("two results")
    }

    #[test]
    fn every_form_by_hand() {
        // The state (4, 8) becomes (4·½ + 1·6, 8·¼ + 2·6) = (8, 14); r reads 8 + 28.
        let (r, w) = (real(&[2], &[1.0, 2.0]), real(&[2], &[0.5, 0.25]));
        let (k, v) = (real(&[2], &[1.0, 2.0]), real(&[1], &[6.0]));
        let state = real(&[2], &[4.0, 8.0]);
        let dims: [&[usize]; 2] = [&[1], &[2]];
        let [y, s] = two(&[&r, &w, &k, &v, &state], dims);
        close(&s, &[8.0, 14.0]);
        close(&y, &[36.0]);
        // With a bonus, r reads the old state and the bonus: 4 + 16 + 3·6 + 2·0·12.
        let u = real(&[2], &[3.0, 0.0]);
        let [y, s] = two(&[&r, &w, &k, &v, &state, &u], dims);
        close(&s, &[8.0, 14.0]);
        close(&y, &[38.0]);
        // The correction reads 4 − 8 = −4 from the old state and adds (10, 0) times that.
        let (a, b) = (real(&[2], &[1.0, -1.0]), real(&[2], &[10.0, 0.0]));
        let [y, s] = two(&[&r, &w, &k, &v, &state, &a, &b], dims);
        close(&s, &[-32.0, 14.0]);
        close(&y, &[-4.0]);
    }

    #[test]
    fn batches_one_after_another_are_one_batch() {
        let keys: Vec<Tensor> = (1..6).map(|seed| noise(&[5, 4, 6, 1], seed)).collect();
        let v = noise(&[3, 4, 6, 1], 7);
        let scan = |state: &Tensor, from: usize, len: usize| {
            let part = |t: &Tensor| t.slice(2, from, len).expect("ok");
            let [r, w, k, a, b] = [0, 1, 2, 3, 4].map(|i| part(&keys[i]));
            let operands = [&r, &w, &k, &part(&v), state, &a, &b];
            two(&operands, [&[3, 4, len, 1], &[5, 3, 4, 1]])
        };
        let start = noise(&[5, 3, 4, 1], 8);
        let [whole, end] = scan(&start, 0, 6);
        let [first, middle] = scan(&start, 0, 2);
        let [second, last] = scan(&middle, 2, 4);
        assert_eq!(end, last);
        assert_eq!(whole.slice(2, 0, 2).expect("ok"), first);
        assert_eq!(whole.slice(2, 2, 4).expect("ok"), second);
    }
}
