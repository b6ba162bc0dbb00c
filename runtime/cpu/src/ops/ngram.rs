//! Hashes of n-grams.
#![allow(unsafe_code)]

use tpc_ir::op::NgramRows;

use crate::elements::{real, write_index};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, ensure};

#[derive(Debug)]
struct Hashed(NgramRows);

pub(super) fn ngram_rows(op: &NgramRows, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Int])?;
    if request.operands[0].is_quantised() {
        return Err("the operand is quantised");
    }
    Ok(Box::new(Hashed(op.clone())))
}

impl Launch for Hashed {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        let Hashed(op) = self;
        let before = op.factors.len().saturating_sub(1);
        let [tables, tokens, seqs, _] = y.ne;
        let fits = x.ne == [tokens + before, seqs, 1, 1] && tables == op.tables.len();
        ensure(fits && y.ne[3] == 1, "mismatched sizes of tokens and rows")?;
        for i in call.worker.items(tokens * seqs) {
            let (token, seq) = (i % tokens, i / tokens);
            // SAFETY: the tokens exist, and this token's rows are this worker's.
            unsafe {
                let id = |back: usize| f64::from(real(&x, [token + before - back, seq, 0, 0]));
                for (table, row) in op.rows((0..=before).map(id)).enumerate() {
                    write_index(&y, [table, token, seq, 0], row as usize);
                }
            }
        }
        Ok(())
    }
}
