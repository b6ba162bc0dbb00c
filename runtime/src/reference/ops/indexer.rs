use crate::error::ExecError;
use crate::tensor::{Tensor, buffer};

pub(super) fn lightning_indexer(operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let [d, heads, tokens, streams] = operands[0].dims();
    let cells = operands[1].dims()[2];
    let (q, k, w) = (
        operands[0].reals()?,
        operands[1].reals()?,
        operands[2].reals()?,
    );
    let dims = [cells, tokens, 1, streams];
    let mut out = buffer(dims)?;
    for stream in 0..streams {
        for token in 0..tokens {
            for cell in 0..cells {
                let key = &k[(stream * cells + cell) * d..][..d];
                let score = |head: usize| {
                    let at = (stream * tokens + token) * heads + head;
                    let query = &q[at * d..][..d];
                    let dot: f64 = query.iter().zip(key).map(|(a, b)| a * b).sum();
                    w[at] * dot.max(0.0)
                };
                out.push((0..heads).map(score).sum());
            }
        }
    }
    Tensor::reals_of(dims, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, real, run};
    use tpc_ir::op::LightningIndexer;

    #[test]
    fn heads_below_zero_count_nothing() {
        let q = real(&[2, 2, 1], &[1.0, 0.0, -1.0, 1.0]);
        let k = real(&[2, 1, 2], &[2.0, 3.0, -1.0, 4.0]);
        let w = real(&[2, 1], &[10.0, 1.0]);
        // Cell 0: 2 and 1; cell 1: -1 and 5.
        close(&run(LightningIndexer, &[&q, &k, &w], &[2, 1]), &[21.0, 5.0]);
    }
}
