//! Random operands.

use tpc_ir::DType;
use tpc_runtime::Data;

use super::Arg;
use crate::random::Random;

/// Types of a KV cache.
pub const CACHES: [DType; 9] = [
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::Q8_0,
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q5_1,
    DType::Iq4Nl,
];

pub(super) fn float(random: &Random) -> DType {
    random.pick(&[
        DType::F32,
        DType::F32,
        DType::F32,
        DType::F32,
        DType::F16,
        DType::Bf16,
    ])
}

pub(super) fn readable(random: &Random, n: usize) -> DType {
    let more = [
        DType::Mxfp4,
        DType::Q4K,
        DType::Q6K,
        DType::Q2K,
        DType::Iq4Xs,
    ];
    let dtype = match random.below(3) {
        0 => float(random),
        1 => random.pick(&CACHES),
        _ => random.pick(&more),
    };
    if n.is_multiple_of(dtype.block_len() as usize) {
        dtype
    } else {
        float(random)
    }
}

pub(super) fn integer(random: &Random) -> DType {
    random.pick(&[DType::I32, DType::I64])
}

/// Returns sizes of any rank. Some rows exceed a chunk, and one tensor in 30 has an axis of size 0.
pub(super) fn sizes(random: &Random) -> [usize; 4] {
    let row = match random.below(8) {
        0 => 1,
        1 => random.within(500, 1100),
        2 => 256 * random.within(1, 5),
        3 => 32 * random.within(1, 4),
        _ => random.within(1, 70),
    };
    let mut out = [row, 1, 1, 1];
    for n in &mut out[1..] {
        if !random.one_in(3) {
            *n = random.within(1, 4);
        }
    }
    if random.one_in(30) {
        out[random.below(4)] = 0;
    }
    out
}

pub(super) fn count(dims: [usize; 4]) -> usize {
    dims.iter().product()
}

/// Makes an operand of real numbers in `[-scale, scale)`.
pub(super) fn real(random: &Random, dtype: DType, dims: [usize; 4], scale: f64) -> Arg {
    let data = (0..count(dims)).map(|_| random.real() * scale).collect();
    Arg {
        dtype,
        dims,
        data: Data::F64(data),
    }
}

/// Makes an operand with element `i` equal to `f(i)`.
pub(super) fn ints(
    random: &Random,
    dims: [usize; 4],
    mut f: impl FnMut(&Random, usize) -> usize,
) -> Arg {
    let dtype = integer(random);
    let data = (0..count(dims)).map(|i| f(random, i) as i64).collect();
    Arg {
        dtype,
        dims,
        data: Data::Int(data),
    }
}

pub(super) fn result(random: &Random) -> DType {
    if random.one_in(6) {
        random.pick(&[DType::F16, DType::Bf16])
    } else {
        DType::F32
    }
}
