use tpc_ir::op::NgramRows;

use crate::error::ExecError;
use crate::tensor::{Tensor, buffer};

pub(super) fn ngram_rows(op: &NgramRows, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0].reals()?;
    let [steps, seqs, ..] = operands[0].dims();
    let before = op.factors.len() - 1;
    let dims = [op.tables.len(), steps - before, seqs, 1];
    let mut out = buffer(dims)?;
    for ids in x.chunks_exact(steps.max(1)).take(seqs) {
        for last in before..steps {
            let backwards = ids[last - before..=last].iter().rev().copied();
            out.extend(op.rows(backwards).map(|row| row as i64));
        }
    }
    Tensor::ints_of(dims, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{code, real, run};
    use super::*;
    use tpc_ir::Interval;

    fn op() -> NgramRows {
        let table = |start| Interval { start, len: 10 };
        NgramRows {
            factors: vec![1, 3, 5],
            tables: vec![table(0), table(10)],
            end: 7,
        }
    }

    #[test]
    fn hashes_by_hand() {
        // Tokens 2, then 4 after 2, then 7 after both, then 1 after 7.
        let x = real(&[6], &[0.0, 0.0, 3.0, 5.0, 8.0, 2.0]);
        let out = run(op(), &[&x], &[2, 4]);
        let row = |hash: i64| hash % 10;
        let expected = [
            row(2 ^ 21),
            10 + row(2 ^ 21 ^ 35),
            row(4 ^ 6),
            10 + row(4 ^ 6 ^ 35),
            row(7 ^ 12),
            10 + row(7 ^ 12 ^ 10),
            // Tokens before the end of a text count as `end`.
            row(1 ^ 21),
            10 + row(1 ^ 21 ^ 35),
        ];
        assert_eq!(out.ints().expect("rows"), expected);
    }

    #[test]
    fn too_few_tokens_and_unequal_tables_do_not_fit() {
        assert_eq!(code(op(), &[&real(&[1], &[1.0])], &[2]), "TPC0502");
        let mut unequal = op();
        unequal.tables.pop();
        assert_eq!(code(unequal, &[&real(&[3], &[1.0; 3])], &[1, 1]), "TPC0502");
    }
}
