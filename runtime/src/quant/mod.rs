//! Conversion between quantised rows and f32: the scalar definition of every readable block format.
//!
//! [`dequantise`] decodes whole blocks along axis 0 to f32; [`quantise`] encodes. Both compute in f32 without fused
//! operations, in the order of ggml's scalar `dequantize_row_*` and `quantize_row_*_ref`. Decoded weights therefore
//! have the same bits as in ggml.
//!
//! Every file states the layouts of its formats (ggml's `block_*` structures):
//!
//! | file       | formats                                         | decoded value                       |
//! |------------|-------------------------------------------------|-------------------------------------|
//! | `plain`    | f32 f16 bf16 f64 i8 i16 i32 i64                 | the element                         |
//! | `legacy`   | q4_0 q4_1 q5_0 q5_1 q8_0 q8_1                   | `d·q` or `d·q + m`, blocks of 32    |
//! | `k`        | q2_k q3_k q4_k q5_k q6_k q8_k                   | two-level scales, blocks of 256     |
//! | `k_encode` | encoders of the K formats                       |                                     |
//! | `k_search` | encoders of the K formats with ggml's search    |                                     |
//! | `iq4`      | iq4_nl iq4_xs                                   | a 16-entry non-linear codebook      |
//! | `fp4`      | mxfp4 nvfp4                                     | e2m1 elements under a small float   |
//! | `ternary`  | tq1_0 tq2_0 q1_0 q2_0                           | `d` times a number from −1 to 2     |
//! | `iq`       | iq1_s iq1_m iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s  | rows of the grids in `grids`        |

mod bits;
mod fp4;
mod grids;
mod iq;
mod iq4;
mod k;
mod k_encode;
mod k_search;
mod legacy;
mod plain;
mod ternary;
#[cfg(test)]
mod tests;

pub use grids::grid;
pub use iq::{GridBlock, grid_block};

use bits::{decode_blocks, encode_blocks};
use tpc_ir::dtype::DType;

/// Error of converting a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantError {
    /// No decoder for the format.
    #[error("no decoder for {dtype}")]
    Unsupported {
        /// The requested format.
        dtype: DType,
    },
    /// No encoder for the format.
    #[error("no encoder for {dtype}")]
    NoEncoder {
        /// The requested format.
        dtype: DType,
    },
    /// The elements are not whole blocks.
    #[error("{elements} elements are not whole blocks of {dtype}, which have {} each", dtype.block_len())]
    PartialBlock {
        /// The requested format.
        dtype: DType,
        /// Requested elements.
        elements: usize,
    },
    /// The bytes do not match the requested elements.
    #[error("{elements} elements of {dtype} take {expected} bytes, not {found}")]
    Length {
        /// The requested format.
        dtype: DType,
        /// Requested elements.
        elements: usize,
        /// Bytes of these elements.
        expected: u64,
        /// Bytes given.
        found: usize,
    },
}

/// True if [`dequantise`] reads `dtype`.
pub fn can_dequantise(dtype: DType) -> bool {
    decoder(dtype).is_some()
}

/// True if [`quantise`] writes `dtype`.
pub fn can_quantise(dtype: DType) -> bool {
    encoder(dtype).is_some()
}

/// Decodes `bytes`, whole blocks of `dtype`, into `out`, one f32 per element.
///
/// Integers and f64 convert to the nearest f32. Any byte pattern of the right length decodes. NaN or infinite scales
/// give NaN or infinite elements.
///
/// # Errors
/// Returns [`QuantError::Unsupported`] without a decoder, [`QuantError::PartialBlock`] or [`QuantError::Length`] if
/// `out` or `bytes` is not exactly whole blocks. `out` is untouched on error.
pub fn dequantise(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
    let decode = decoder(dtype).ok_or(QuantError::Unsupported { dtype })?;
    let expected = row_bytes(dtype, out.len())?;
    if bytes.len() as u64 != expected {
        return Err(QuantError::Length {
            dtype,
            elements: out.len(),
            expected,
            found: bytes.len(),
        });
    }
    decode(bytes, out);
    Ok(())
}

/// Encodes `values` as whole blocks of `dtype` and appends them to `out`.
///
/// f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, iq4_nl (the types of a KV cache), mxfp4, nvfp4, tq1_0, tq2_0, q1_0 and q2_0
/// follow ggml's `quantize_row_*_ref`. q2_k, q3_k, q4_k, q5_k, q6_k and iq4_xs are slightly coarser: their scales come
/// from each group's extremes, without ggml's search ([`quantise_searched`]).
///
/// No input panics, but only finite values whose scale fits f16 (magnitudes up to 65504, to be safe) survive.
///
/// # Errors
/// Returns [`QuantError::NoEncoder`] without an encoder, [`QuantError::PartialBlock`] if `values` is not whole blocks.
/// `out` is unchanged on error.
pub fn quantise(dtype: DType, values: &[f32], out: &mut Vec<u8>) -> Result<(), QuantError> {
    if encoder(dtype).is_none() {
        return Err(QuantError::NoEncoder { dtype });
    }
    let (at, bytes) = (out.len(), row_bytes(dtype, values.len())?);
    out.resize(at + bytes as usize, 0);
    quantise_into(dtype, values, &mut out[at..])
}

/// Encodes as [`quantise`], into memory of exactly the blocks' length.
///
/// # Errors
/// Returns the errors of [`quantise`], and [`QuantError::Length`] if `out` has a different length. `out` is untouched
/// on error.
pub fn quantise_into(dtype: DType, values: &[f32], out: &mut [u8]) -> Result<(), QuantError> {
    let encode = encoder(dtype).ok_or(QuantError::NoEncoder { dtype })?;
    let expected = row_bytes(dtype, values.len())?;
    if out.len() as u64 != expected {
        return Err(QuantError::Length {
            dtype,
            elements: values.len(),
            expected,
            found: out.len(),
        });
    }
    encode(values, out);
    Ok(())
}

/// Encodes as [`quantise_into`], but searches for the scales of least error as ggml's CPU encoder does. Takes about
/// twenty times as long.
///
/// # Errors
/// Returns the errors of [`quantise_into`].
pub fn quantise_searched(dtype: DType, values: &[f32], out: &mut [u8]) -> Result<(), QuantError> {
    let expected = row_bytes(dtype, values.len())?;
    if out.len() as u64 != expected {
        return quantise_into(dtype, values, out);
    }
    match dtype {
        DType::Q2K => encode_blocks(values, out, k_search::encode_q2_k),
        DType::Q3K => encode_blocks(values, out, k_search::encode_q3_k),
        DType::Q4K => encode_blocks(values, out, k_search::encode_q4_k),
        DType::Q5K => encode_blocks(values, out, k_search::encode_q5_k),
        DType::Q6K => encode_blocks(values, out, k_search::encode_q6_k),
        DType::Iq4Xs => encode_blocks(values, out, iq4::search_iq4_xs),
        _ => return quantise_into(dtype, values, out),
    }
    Ok(())
}

fn row_bytes(dtype: DType, elements: usize) -> Result<u64, QuantError> {
    dtype
        .bytes(elements as u64)
        .ok_or(QuantError::PartialBlock { dtype, elements })
}

type Decoder = fn(&[u8], &mut [f32]);

type Encoder = fn(&[f32], &mut [u8]);

fn decoder(dtype: DType) -> Option<Decoder> {
    Some(match dtype {
        DType::F32 => |b, o| decode_blocks(b, o, plain::decode_f32),
        DType::F16 => |b, o| decode_blocks(b, o, plain::decode_f16),
        DType::Bf16 => |b, o| decode_blocks(b, o, plain::decode_bf16),
        DType::F8E4M3 => |b, o| decode_blocks(b, o, plain::decode_f8_e4m3),
        DType::F64 => |b, o| decode_blocks(b, o, plain::decode_f64),
        DType::I8 => |b, o| decode_blocks(b, o, plain::decode_i8),
        DType::I16 => |b, o| decode_blocks(b, o, plain::decode_i16),
        DType::I32 => |b, o| decode_blocks(b, o, plain::decode_i32),
        DType::I64 => |b, o| decode_blocks(b, o, plain::decode_i64),
        DType::Q4_0 => |b, o| decode_blocks(b, o, legacy::decode_q4_0),
        DType::Q4_1 => |b, o| decode_blocks(b, o, legacy::decode_q4_1),
        DType::Q5_0 => |b, o| decode_blocks(b, o, legacy::decode_q5_0),
        DType::Q5_1 => |b, o| decode_blocks(b, o, legacy::decode_q5_1),
        DType::Q8_0 => |b, o| decode_blocks(b, o, legacy::decode_q8_0),
        DType::Q8_1 => |b, o| decode_blocks(b, o, legacy::decode_q8_1),
        DType::Q2K => |b, o| decode_blocks(b, o, k::decode_q2_k),
        DType::Q3K => |b, o| decode_blocks(b, o, k::decode_q3_k),
        DType::Q4K => |b, o| decode_blocks(b, o, k::decode_q4_k),
        DType::Q5K => |b, o| decode_blocks(b, o, k::decode_q5_k),
        DType::Q6K => |b, o| decode_blocks(b, o, k::decode_q6_k),
        DType::Q8K => |b, o| decode_blocks(b, o, k::decode_q8_k),
        DType::Iq4Nl => |b, o| decode_blocks(b, o, iq4::decode_iq4_nl),
        DType::Iq4Xs => |b, o| decode_blocks(b, o, iq4::decode_iq4_xs),
        DType::Mxfp4 => |b, o| decode_blocks(b, o, fp4::decode_mxfp4),
        DType::Nvfp4 => |b, o| decode_blocks(b, o, fp4::decode_nvfp4),
        DType::Tq1_0 => |b, o| decode_blocks(b, o, ternary::decode_tq1_0),
        DType::Tq2_0 => |b, o| decode_blocks(b, o, ternary::decode_tq2_0),
        DType::Q1_0 => |b, o| decode_blocks(b, o, ternary::decode_q1_0),
        DType::Q2_0 => |b, o| decode_blocks(b, o, ternary::decode_q2_0),
        DType::Iq1S => |b, o| decode_grids::<50>(DType::Iq1S, b, o),
        DType::Iq1M => |b, o| decode_grids::<56>(DType::Iq1M, b, o),
        DType::Iq2Xxs => |b, o| decode_grids::<66>(DType::Iq2Xxs, b, o),
        DType::Iq2Xs => |b, o| decode_grids::<74>(DType::Iq2Xs, b, o),
        DType::Iq2S => |b, o| decode_grids::<82>(DType::Iq2S, b, o),
        DType::Iq3Xxs => |b, o| decode_grids::<98>(DType::Iq3Xxs, b, o),
        DType::Iq3S => |b, o| decode_grids::<110>(DType::Iq3S, b, o),
        // Types of ik_llama.cpp. A test finds missing types of llama.cpp.
        _ => return None,
    })
}

fn decode_grids<const BYTES: usize>(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out| {
        iq::decode(dtype, block, out);
    });
}

fn encoder(dtype: DType) -> Option<Encoder> {
    Some(match dtype {
        DType::F32 => |x, o| encode_blocks(x, o, plain::encode_f32),
        DType::F16 => |x, o| encode_blocks(x, o, plain::encode_f16),
        DType::Bf16 => |x, o| encode_blocks(x, o, plain::encode_bf16),
        DType::F8E4M3 => |x, o| encode_blocks(x, o, plain::encode_f8_e4m3),
        DType::Q4_0 => |x, o| encode_blocks(x, o, legacy::encode_q4_0),
        DType::Q4_1 => |x, o| encode_blocks(x, o, legacy::encode_q4_1),
        DType::Q5_0 => |x, o| encode_blocks(x, o, legacy::encode_q5_0),
        DType::Q5_1 => |x, o| encode_blocks(x, o, legacy::encode_q5_1),
        DType::Q8_0 => |x, o| encode_blocks(x, o, legacy::encode_q8_0),
        DType::Q2K => |x, o| encode_blocks(x, o, k_encode::encode_q2_k),
        DType::Q3K => |x, o| encode_blocks(x, o, k_encode::encode_q3_k),
        DType::Q4K => |x, o| encode_blocks(x, o, k_encode::encode_q4_k),
        DType::Q5K => |x, o| encode_blocks(x, o, k_encode::encode_q5_k),
        DType::Q6K => |x, o| encode_blocks(x, o, k_encode::encode_q6_k),
        DType::Iq4Nl => |x, o| encode_blocks(x, o, iq4::encode_iq4_nl),
        DType::Iq4Xs => |x, o| encode_blocks(x, o, iq4::encode_iq4_xs),
        DType::Mxfp4 => |x, o| encode_blocks(x, o, fp4::encode_mxfp4),
        DType::Nvfp4 => |x, o| encode_blocks(x, o, fp4::encode_nvfp4),
        DType::Tq1_0 => |x, o| encode_blocks(x, o, ternary::encode_tq1_0),
        DType::Tq2_0 => |x, o| encode_blocks(x, o, ternary::encode_tq2_0),
        DType::Q1_0 => |x, o| encode_blocks(x, o, ternary::encode_q1_0),
        DType::Q2_0 => |x, o| encode_blocks(x, o, ternary::encode_q2_0),
        // Integers, f64, intermediate types, grids, and types of ik_llama.cpp.
        _ => return None,
    })
}
