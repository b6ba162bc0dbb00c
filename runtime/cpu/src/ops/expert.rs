//! A bias per expert.
#![allow(unsafe_code)]

use tpc_ir::Interval;
use tpc_ir::op::AddId;

use super::pointwise::{Piece, each_chunk, read_piece};
use super::rows::windowed;
use crate::elements::{CHUNK, int};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, ensure};

/// Computes `out[:, u, t] = x[:, u, t] + bias[:, ids[u, t]]`. Experts outside the window add 0. The result may share
/// the memory of `x`.
#[derive(Debug)]
struct Biased {
    window: Option<Interval>,
}

pub(super) fn add_id(op: &AddId, request: &Request<'_>) -> Selected {
    let operands = [Elements::Real, Elements::Real, Elements::Int];
    request.expect(&operands, &[Elements::Real])?;
    Ok(Box::new(Biased { window: op.window }))
}

impl Launch for Biased {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x, bias, ids], [y]) = call.views()?;
        let [m, used, tokens, more] = x.ne;
        let fits = bias.ne[0] == m && ids.ne == [used, tokens, 1, 1] && more == 1;
        let line = bias.ne[2..] == [1, 1];
        ensure(
            fits && line && y.ne == x.ne,
            "mismatched sizes of x, bias and ids",
        )?;
        let mut other = [0.0; CHUNK];
        // SAFETY: caller's contract; the views fit; experts are checked.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                let [u, t, _] = piece.row;
                read_piece(&x, piece, chunk);
                let id = int(&ids, [u, t, 0, 0]);
                if let Some(expert) = windowed("expert", id, self.window, bias.ne[1])? {
                    let other = &mut other[..chunk.len()];
                    let row = [expert, 0, 0];
                    read_piece(&bias, Piece { row, ..piece }, other);
                    for (y, b) in chunk.iter_mut().zip(other) {
                        *y += *b;
                    }
                }
                Ok(())
            })
        }
    }
}
