//! Bytes of leaves: random numbers in the leaves' types.

use std::collections::BTreeMap;

use tpc_ggml::capture::Record;
use tpc_ir::DType;
use tpc_runtime::quant::{dequantise, quantise};

use crate::bisect::content::{Contents, elements};
use crate::bisect::reduce::number_in;

/// Returns the bytes of each leaf that owns memory.
pub(super) fn bytes(
    records: &[Record],
    contents: &Contents,
) -> Result<BTreeMap<usize, Vec<u8>>, String> {
    let mut out = BTreeMap::new();
    for (i, t) in records.iter().enumerate() {
        if !t.is_leaf() || t.is_view {
            continue;
        }
        let n = usize::try_from(t.elements()).map_err(|e| e.to_string())?;
        let row = usize::try_from(t.ne()[0]).map_err(|e| e.to_string())?;
        let leaf = number_in(&t.name).unwrap_or_default();
        let numbers = elements(leaf, contents.of(leaf), n, row);
        out.insert(i, encoded(t.dtype, &numbers)?);
    }
    Ok(out)
}

fn encoded(dtype: DType, numbers: &[f64]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    match dtype {
        DType::I8 => out.extend(numbers.iter().map(|&x| x as i8 as u8)),
        DType::I16 => out.extend(numbers.iter().flat_map(|&x| (x as i16).to_le_bytes())),
        DType::I32 => out.extend(numbers.iter().flat_map(|&x| (x as i32).to_le_bytes())),
        DType::I64 => out.extend(numbers.iter().flat_map(|&x| (x as i64).to_le_bytes())),
        DType::F64 => out.extend(numbers.iter().flat_map(|x| x.to_le_bytes())),
        _ => {
            let narrow: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
            quantise(dtype, &narrow, &mut out).map_err(|e| e.to_string())?;
        }
    }
    Ok(out)
}

/// Returns the numbers of bytes in a type.
pub(super) fn decoded(dtype: DType, bytes: &[u8]) -> Result<Vec<f64>, String> {
    fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        let (all, _) = bytes.as_chunks::<N>();
        all.iter().map(|x| number(*x)).collect()
    }
    Ok(match dtype {
        DType::I8 => each(bytes, |x| f64::from(i8::from_le_bytes(x))),
        DType::I16 => each(bytes, |x| f64::from(i16::from_le_bytes(x))),
        DType::I32 => each(bytes, |x| f64::from(i32::from_le_bytes(x))),
        DType::I64 => each(bytes, |x| i64::from_le_bytes(x) as f64),
        DType::F64 => each(bytes, f64::from_le_bytes),
        _ => {
            let blocks = bytes.len() as u64 / dtype.block_bytes();
            let n = usize::try_from(blocks * dtype.block_len()).map_err(|e| e.to_string())?;
            let mut out = vec![0.0; n];
            dequantise(dtype, bytes, &mut out).map_err(|e| e.to_string())?;
            out.into_iter().map(f64::from).collect()
        }
    })
}
