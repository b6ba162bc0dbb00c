//! Gated activations.
#![allow(unsafe_code)]

use tpc_ir::op::{Glu, GluKind};
use tpc_runtime::Gelu;

use super::elementwise::within;
use super::pointwise::{each_chunk, read_piece};
use crate::elements::CHUNK;
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, ensure};
use crate::math;
use crate::simd::vectorised;

/// Computes `gate ← f(gate) · up`, with the op's slope and limit.
type Apply = fn(&mut [f32], &[f32], f32, f32);

macro_rules! gates {
    ($($name:ident = |$g:ident, $u:ident, $alpha:ident, $limit:ident| $y:expr;)*) => {
        $(vectorised! {
            fn $name(gate: &mut [f32], up: &[f32], alpha: f32, limit: f32) {
                let ($alpha, $limit) = (alpha, limit);
                for (gate, up) in gate.iter_mut().zip(up) {
                    let ($g, $u) = (*gate, *up);
                    *gate = $y;
                }
            }
        })*
    };
}

gates! {
    swiglu = |g, u, _alpha, _limit| math::silu(g) * u;
    geglu_table = |g, u, _alpha, _limit| math::gelu(g, Gelu::GgmlTable) * u;
    geglu_exact = |g, u, _alpha, _limit| math::gelu(g, Gelu::Exact) * u;
    geglu_erf = |g, u, _alpha, _limit| math::gelu_erf(g) * u;
    quick_table = |g, u, _alpha, _limit| math::gelu_quick(g, Gelu::GgmlTable) * u;
    quick_exact = |g, u, _alpha, _limit| math::gelu_quick(g, Gelu::Exact) * u;
    reglu = |g, u, _alpha, _limit| if g > 0.0 { g * u } else { 0.0 * u };
    swiglu_clamp = |g, u, _alpha, limit| {
        // A NaN gate becomes the limit, as the op defines.
        let g = if g < limit { g } else { limit };
        math::silu(g) * within(u, -limit, limit)
    };
    swiglu_oai = |g, u, alpha, limit| {
        let g = if g > limit { limit } else { g };
        g / (1.0 + math::exp(-alpha * g)) * (within(u, -limit, limit) + 1.0)
    };
}

/// A gated activation. The result may share the memory of a whole operand, but not of half an operand.
#[derive(Debug)]
struct Gated {
    apply: Apply,
    alpha: f32,
    limit: f32,
}

pub(super) fn glu(op: &Glu, request: &Request<'_>) -> Selected {
    let operands = [Elements::Real; 2];
    request.expect(
        &operands[..request.operands.len().clamp(1, 2)],
        &[Elements::Real],
    )?;
    let apply: Apply = match (op.kind, request.options.gelu) {
        (GluKind::Swiglu, _) => swiglu,
        (GluKind::Geglu, Gelu::GgmlTable) => geglu_table,
        (GluKind::Geglu, Gelu::Exact) => geglu_exact,
        (GluKind::GegluErf, _) => geglu_erf,
        (GluKind::GegluQuick, Gelu::GgmlTable) => quick_table,
        (GluKind::GegluQuick, Gelu::Exact) => quick_exact,
        (GluKind::Reglu, _) => reglu,
        (GluKind::SwigluClamp, _) => swiglu_clamp,
        (GluKind::SwigluOai, _) => swiglu_oai,
    };
    Ok(Box::new(Gated {
        apply,
        alpha: op.alpha,
        limit: op.limit,
    }))
}

impl Launch for Gated {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let (gate, up, y) = match (call.operands, call.results) {
            (&[gate, up], &[y]) => (gate, up, y),
            (&[both], &[y]) => {
                let half = both.ne[0] / 2;
                let blocks = half.is_multiple_of(both.dtype.block_len() as usize);
                ensure(blocks, "halves of a row are not whole blocks")?;
                (both.sliced(0, 0, half), both.sliced(0, half, half), y)
            }
            _ => return ensure(false, "wrong number of operands or results"),
        };
        ensure(
            gate.ne == y.ne && up.ne == y.ne,
            "mismatched sizes of gate and up",
        )?;
        let flat = || Some((gate.flat()?, up.flat()?, y.flat()?));
        let (gate, up, y) = flat().unwrap_or((gate, up, y));
        let mut other = [0.0; CHUNK];
        // SAFETY: caller's contract; the views have equal sizes.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                let other = &mut other[..chunk.len()];
                read_piece(&gate, piece, chunk);
                read_piece(&up, piece, other);
                (self.apply)(chunk, other, self.alpha, self.limit);
                Ok(())
            })
        }
    }
}
