use tpc_ir::DType;

use crate::error::ExecError;
use crate::quant::{QuantError, dequantise, quantise};

/// Rounds rows of `row` elements to f32 and then to `dtype`. f32 and f64 stay unchanged, to compare programs in full
/// precision. Returns an error without an encoder, or if a row is not whole blocks.
pub(super) fn round_rows(dtype: DType, row: usize, data: &mut [f64]) -> Result<(), ExecError> {
    if matches!(dtype, DType::F32 | DType::F64) || data.is_empty() {
        return Ok(());
    }
    if dtype.bytes(row as u64).is_none() {
        let elements = row;
        return Err(QuantError::PartialBlock { dtype, elements }.into());
    }
    let mut values: Vec<f32> = data.iter().map(|&x| x as f32).collect();
    let mut bytes = Vec::new();
    quantise(dtype, &values, &mut bytes)?;
    dequantise(dtype, &bytes, &mut values)?;
    for (out, x) in data.iter_mut().zip(values) {
        *out = f64::from(x);
    }
    Ok(())
}

const BLOCK: usize = 32;

/// Rounds rows of `row` elements as the CPU executor does before products with quantised weights, in blocks of 32. The
/// scale is the largest magnitude over 127, in f32; codes round to nearest, ties to even. Each further term encodes the
/// remainder in f32.
pub(super) fn round_activations(row: usize, terms: usize, data: &mut [f64]) {
    for row in data.chunks_mut(row.max(1)) {
        for block in row.chunks_mut(BLOCK) {
            let mut left: Vec<f32> = block.iter().map(|&x| x as f32).collect();
            block.fill(0.0);
            for _ in 0..terms {
                round_term(&mut left, block);
            }
        }
    }
}

fn round_term(left: &mut [f32], sum: &mut [f64]) {
    let scale = left.iter().fold(0.0_f32, |a, &x| a.max(x.abs())) / 127.0;
    // The smallest scales have an infinite inverse.
    let inverse = match scale >= f32::MIN_POSITIVE {
        true => 1.0 / scale,
        false => 0.0,
    };
    for (x, sum) in left.iter_mut().zip(sum) {
        let code = (*x * inverse).round_ties_even();
        *sum += f64::from(code) * f64::from(scale);
        *x -= code * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_rounds_as_it_stores() {
        let third = 1.0 / 3.0;
        let mut x = [third];
        round_rows(DType::F32, 1, &mut x).expect("f32 keeps f64");
        assert_eq!(x, [third]);
        round_rows(DType::F16, 1, &mut x).expect("f16");
        assert_eq!(x, [0.333_251_953_125]);
        let mut row: Vec<f64> = (0..32).map(f64::from).collect();
        round_rows(DType::Q8_0, 32, &mut row).expect("one block");
        assert!((row[31] - 31.0).abs() < 0.02 && (row[7] - 7.0).abs() < 0.13);
        let mut row = vec![0.0; 34];
        (row[0], row[1], row[2], row[32]) = (127.0, 0.5, -1.6, 0.3);
        let mut twice = row.clone();
        round_activations(34, 1, &mut row);
        assert_eq!(row[..3], [127.0, 0.0, -2.0]);
        assert!((row[32] - 0.3).abs() < 1e-7);
        round_activations(34, 2, &mut twice);
        assert!((twice[1] - 0.5).abs() < 1e-7 && (twice[2] + 1.6).abs() < 1.0 / 500.0);
        let mut row: Vec<f64> = (0..32).map(f64::from).collect();
        let e = round_rows(DType::Q8_0, 16, &mut row).expect_err("half a block");
        assert_eq!(e.code(), "TPC0511");
    }
}
