//! A stand-in for ops that tpc does not know. It is a fixed linear function of all elements of all operands, so it
//! shows whether the programs give the op the model's operands, but not what the op computes.

use tpc_ir::op::Opaque;

use super::call::Call;
use crate::error::ExecError;
use crate::tensor::Tensor;

/// Computes, per element, the mean over the operands of an element of the operand plus a weighted sum of all. Weights
/// depend on the op's name and parameters. Integers are 0, a valid index.
pub(super) fn stand_in(op: &Opaque, call: &Call<'_>, operands: usize) -> Result<Tensor, ExecError> {
    let elements = call.result.dims.iter().product::<usize>();
    if call.result.dtype.is_integer() {
        return call.elements(vec![0.0; elements]);
    }
    let params = op.params.iter().flat_map(|p| p.to_le_bytes());
    let seed = op.name.bytes().chain(params).fold(FIRST, mix);
    let mut out = vec![0.0; elements];
    for operand in 0..operands {
        let x = call.array(op.source(operand))?;
        // Masks have elements of −∞.
        let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
        let own = mix(seed, operand as u8);
        let terms = x.data.iter().enumerate();
        let sum: f64 = terms.map(|(i, &x)| weight(own, i) * finite(x)).sum();
        let sum = sum / (x.data.len().max(1) as f64).sqrt();
        for (i, y) in out.iter_mut().enumerate() {
            let here = x.data.get(i % x.data.len().max(1)).copied();
            *y += (finite(here.unwrap_or(0.0)) + sum * weight(!own, i)) / operands as f64;
        }
    }
    call.elements(out)
}

const FIRST: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds a byte to a hash (FNV-1a).
fn mix(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Returns a number from −1 to 1.
fn weight(seed: u64, index: usize) -> f64 {
    let bytes = (index as u64).to_le_bytes();
    let hash = bytes.into_iter().fold(seed, mix);
    ((hash ^ (hash >> 29)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}
