//! Arithmetic on two tensors; the second is repeated to the size of the first.
#![allow(unsafe_code)]

use tpc_ir::op::{Binary, BinaryKind};

use super::pointwise::{each_chunk, read_piece, read_repeated};
use crate::elements::CHUNK;
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, ensure};
use crate::simd::vectorised;

/// Computes `a ← f(a, b)` for every pair of numbers.
type Apply = fn(&mut [f32], &[f32]);

macro_rules! pairs {
    ($($name:ident = |$a:ident, $b:ident| $y:expr;)*) => {
        $(vectorised! {
            fn $name(a: &mut [f32], b: &[f32]) {
                for (a, b) in a.iter_mut().zip(b) {
                    let ($a, $b) = (*a, *b);
                    *a = $y;
                }
            }
        })*
    };
}

pairs! {
    add = |a, b| a + b;
    sub = |a, b| a - b;
    mul = |a, b| a * b;
    div = |a, b| a / b;
}

/// Applies a function to pairs of numbers. The result may share the memory of an operand of its sizes.
#[derive(Debug)]
struct Pairs {
    apply: Apply,
}

pub(super) fn binary(op: &Binary, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real; 2], &[Elements::Real])?;
    let apply = match op.kind {
        BinaryKind::Add => add,
        BinaryKind::Sub => sub,
        BinaryKind::Mul => mul,
        BinaryKind::Div => div,
    };
    Ok(Box::new(Pairs { apply }))
}

impl Launch for Pairs {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([a, b], [y]) = call.views()?;
        ensure(a.ne == y.ne, "mismatched sizes of a and the result")?;
        if y.is_empty() {
            return Ok(());
        }
        let fits = |i: usize| b.ne[i] > 0 && a.ne[i].is_multiple_of(b.ne[i]);
        ensure((0..4).all(fits), "sizes of b do not divide sizes of a")?;
        let flat = (a.ne == b.ne).then(|| Some((a.flat()?, b.flat()?, y.flat()?)));
        let (a, b, y) = flat.flatten().unwrap_or((a, b, y));
        let same = a.ne == b.ne;
        let mut other = [0.0; CHUNK];
        // SAFETY: caller's contract; every index of the result is an index of `a`, and modulo the sizes of `b` an
        // index of `b`.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                let other = &mut other[..chunk.len()];
                read_piece(&a, piece, chunk);
                if same {
                    read_piece(&b, piece, other);
                } else {
                    read_repeated(&b, piece, other);
                }
                (self.apply)(chunk, other);
                Ok(())
            })
        }
    }
}
