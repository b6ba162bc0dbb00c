//! The largest error of results that agree, per op.

use tpc_ggml::capture::Record;
use tpc_ggml::op::OpKind;

/// The tolerance of ops that round each element a few times in f32.
const PLAIN: f64 = 1e-7;
/// The tolerance of ops that round their operands to fewer bits: products with quantised weights round the other
/// operand to 8 bits, and attention rounds to f16. ggml's `test-backend-ops` allows the same error.
const ROUNDED: f64 = 5e-4;

/// Returns the tolerance of an op.
pub(super) fn of(t: &Record) -> f64 {
    let rounds = t.op.kind().is_some_and(|kind| {
        matches!(
            kind,
            OpKind::MulMat
                | OpKind::MulMatId
                | OpKind::OutProd
                | OpKind::FlashAttnExt
                | OpKind::Conv2d
                | OpKind::Conv2dDw
                | OpKind::Conv3d
                | OpKind::ConvTranspose1d
                | OpKind::ConvTranspose2d
        )
    });
    // Results with fewer bits may round to a neighbour.
    match rounds || t.dtype.block_len() > 1 {
        true => ROUNDED,
        false if t.dtype.block_bytes() == 2 => 10.0 * PLAIN,
        false => PLAIN,
    }
}
