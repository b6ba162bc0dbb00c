//! Splits blocks into their parts, with the layouts of [`tpc_runtime::quant`].

use tpc_ir::DType;

pub(super) struct Block {
    pub(super) codes: [u8; 256],
    /// The steps of all groups of 32 elements, as stored.
    pub(super) steps: [u8; 16],
    /// The heads of all spans, as stored.
    pub(super) head: [u8; 8],
}

/// Decodes fields of `BITS` bits, lowest first, from runs of `width` bytes. Inserts them into the codes at bit `to`.
fn fields<const BITS: u32>(bytes: &[u8], width: usize, to: u32, codes: &mut [u8]) {
    let mask = (1_u8 << BITS) - 1;
    let per = (8 / BITS) as usize;
    for (run, codes) in bytes
        .chunks_exact(width)
        .zip(codes.chunks_exact_mut(width * per))
    {
        for (field, codes) in codes.chunks_exact_mut(width).enumerate() {
            for (code, byte) in codes.iter_mut().zip(run) {
                *code |= (byte >> (field as u32 * BITS) & mask) << to;
            }
        }
    }
}

/// Inserts bit `i` of the bytes as bit 4 of code `i`.
fn fifth_bits(bytes: &[u8], codes: &mut [u8]) {
    for (i, code) in codes.iter_mut().enumerate() {
        *code |= (bytes[i / 8] >> (i % 8) & 1) << 4;
    }
}

/// Decodes the 6-bit scales and minima of q4_k and q5_k, a pair for each group of 32 elements.
fn six_bit_pairs(bytes: &[u8], steps: &mut [u8; 16]) {
    for j in 0..8 {
        let (scale, least) = match j {
            0..4 => (bytes[j] & 63, bytes[j + 4] & 63),
            _ => (
                (bytes[j + 4] & 15) | bytes[j - 4] >> 6 << 4,
                bytes[j + 4] >> 4 | bytes[j] >> 6 << 4,
            ),
        };
        steps[2 * j] = scale;
        steps[2 * j + 1] = least;
    }
}

fn trits(bytes: &[u8], codes: &mut [u8]) {
    const POWERS: [u8; 5] = [1, 3, 9, 27, 81];
    let digit = |byte: u8, n: usize| ((u16::from(byte.wrapping_mul(POWERS[n])) * 3) >> 8) as u8;
    for (i, code) in codes.iter_mut().enumerate() {
        let (at, n) = match i {
            0..160 => (i % 32, i / 32),
            160..240 => (32 + (i - 160) % 16, (i - 160) / 16),
            _ => (48 + (i - 240) % 4, (i - 240) / 4),
        };
        *code = digit(bytes[at], n);
    }
}

pub(super) fn block(dtype: DType, b: &[u8]) -> Block {
    let mut out = Block {
        codes: [0; 256],
        steps: [0; 16],
        head: [0; 8],
    };
    match dtype.block_len() {
        256 => decode_256(dtype, b, &mut out),
        _ => decode_32(dtype, b, &mut out),
    }
    out
}

/// Decodes blocks of 32 elements, and nvfp4 blocks of 64 elements with four steps.
fn decode_32(dtype: DType, b: &[u8], Block { codes, steps, head }: &mut Block) {
    // The bytes of the head, steps and fifth bits, which precede the codes.
    let (heads, scales, fifths) = match dtype {
        DType::Q4_0 | DType::Iq4Nl | DType::Q8_0 => (2, 0, 0),
        DType::Q4_1 => (4, 0, 0),
        DType::Q5_0 => (2, 0, 4),
        DType::Q5_1 => (4, 0, 4),
        DType::Mxfp4 => (0, 1, 0),
        DType::Nvfp4 => (0, 4, 0),
        // Other types are not stored in planes.
        _ => return,
    };
    let (before, rest) = b.split_at(heads + scales + fifths);
    head[..heads].copy_from_slice(&before[..heads]);
    steps[..scales].copy_from_slice(&before[heads..heads + scales]);
    match dtype {
        DType::Q8_0 => codes[..32].copy_from_slice(rest),
        DType::Nvfp4 => fields::<4>(rest, 8, 0, codes),
        _ => fields::<4>(rest, 16, 0, codes),
    }
    if fifths > 0 {
        fifth_bits(&before[heads..], &mut codes[..32]);
    }
}

fn decode_256(dtype: DType, b: &[u8], Block { codes, steps, head }: &mut Block) {
    let mut heads = |bytes: &[u8]| head[..bytes.len()].copy_from_slice(bytes);
    match dtype {
        DType::Q2K => {
            steps.copy_from_slice(&b[..16]);
            fields::<2>(&b[16..80], 32, 0, codes);
            heads(&b[80..84]);
        }
        DType::Q3K => {
            for (j, step) in steps.iter_mut().enumerate() {
                let low = b[96 + j % 8] >> (4 * (j / 8)) & 15;
                let high = b[104 + j % 4] >> (2 * (j / 4)) & 3;
                *step = (low | high << 4).wrapping_sub(32);
            }
            fields::<2>(&b[32..96], 32, 0, codes);
            fields::<1>(&b[..32], 32, 2, codes);
            heads(&b[108..110]);
        }
        DType::Q4K => {
            heads(&b[..4]);
            six_bit_pairs(&b[4..16], steps);
            fields::<4>(&b[16..], 32, 0, codes);
        }
        DType::Q5K => {
            heads(&b[..4]);
            six_bit_pairs(&b[4..16], steps);
            fields::<4>(&b[48..], 32, 0, codes);
            fields::<1>(&b[16..48], 32, 4, codes);
        }
        DType::Q6K => {
            fields::<4>(&b[..128], 64, 0, codes);
            fields::<2>(&b[128..192], 32, 4, codes);
            steps.copy_from_slice(&b[192..208]);
            heads(&b[208..210]);
        }
        DType::Iq4Xs => {
            heads(&b[..2]);
            let high = u16::from_le_bytes([b[2], b[3]]);
            for (j, step) in steps[..8].iter_mut().enumerate() {
                let low = b[4 + j / 2] >> (4 * (j % 2)) & 15;
                let high = (high >> (2 * j) & 3) as u8;
                *step = (low | high << 4).wrapping_sub(32);
            }
            fields::<4>(&b[8..], 16, 0, codes);
        }
        DType::Tq1_0 => {
            trits(b, codes);
            heads(&b[52..54]);
        }
        DType::Tq2_0 => {
            fields::<2>(&b[..64], 32, 0, codes);
            heads(&b[64..66]);
        }
        _ => {}
    }
}
