//! Codes of 1 to 8 bits per element: a block of 32 elements of 16 rows.
//!
//! A body is whole cache lines. Lane `r` of a line is a word of row `r`. Byte `i` of the word holds fields of element
//! `4·u + i` for several units `u`:
//!
//! | fields   | line `l`, bit `b` of a byte    |
//! |----------|--------------------------------|
//! | 8 bits   | unit `l`                       |
//! | 4 bits   | unit `l + 4·(b/4)`, 4 lines    |
//! | 2 bits   | unit `4·l + b/2`, 2 lines      |
//! | 1 bit    | unit `b`, one line             |
//!
//! Codes of 3, 5 and 6 bits are two fields: the low 2 or 4 bits, then the high 1 or 2 bits in further lines.
#![expect(unsafe_code, reason = "kernels")]
#![allow(unsafe_op_in_unsafe_fn, reason = "every body has BYTES bytes")]

use super::{Codes, ROWS};
use crate::product::simd::{Simd, Width};

/// The prefetch distance in bytes; each line read prefetches one line. Out-of-order execution cannot look this far
/// ahead, because the instructions between loads fill its window. Lines go to the second-level cache, because the
/// first level supports too few misses in flight for full bandwidth. The distance is not a multiple of 4 KiB, because
/// such lines would share a cache set with lines in use.
pub(in crate::product) const AHEAD: usize = 6080;

/// Loads a line of a body, and prefetches the line [`AHEAD`] bytes later.
#[inline(always)]
unsafe fn line<S: Simd>(body: *const u8, l: usize) -> S::I {
    S::prefetch(body.wrapping_add(64 * l + AHEAD));
    S::load(body.add(64 * l))
}

fn word(body: &mut [u8], l: usize, row: usize) -> &mut [u8; 4] {
    let at = 64 * l + 4 * row;
    body[at..]
        .first_chunk_mut()
        .expect("invariant: a body has its lines")
}

fn put4(codes: &[u8; 32], row: usize, body: &mut [u8]) {
    for l in 0..4 {
        let word = word(body, l, row);
        for (i, byte) in word.iter_mut().enumerate() {
            *byte = (codes[4 * l + i] & 15) | ((codes[16 + 4 * l + i] & 15) << 4);
        }
    }
}

fn put2(codes: &[u8; 32], shift: u32, row: usize, body: &mut [u8]) {
    for l in 0..2 {
        let word = word(body, l, row);
        for (i, byte) in word.iter_mut().enumerate() {
            let field = |p: usize| ((codes[4 * (4 * l + p) + i] >> shift) & 3) << (2 * p);
            *byte = field(0) | field(1) | field(2) | field(3);
        }
    }
}

fn put1(codes: &[u8; 32], shift: u32, row: usize, body: &mut [u8]) {
    let word = word(body, 0, row);
    for (i, byte) in word.iter_mut().enumerate() {
        *byte = (0..8).fold(0, |byte, u| byte | (((codes[4 * u + i] >> shift) & 1) << u));
    }
}

#[inline(always)]
unsafe fn mask<S: Simd>(mask: u8) -> S::I {
    S::splat(i32::from_ne_bytes([mask; 4]))
}

#[inline(always)]
unsafe fn moved<S: Simd>(v: S::I, from: u32, to: u32) -> S::I {
    match from.cmp(&to) {
        std::cmp::Ordering::Less => S::shl(v, to - from),
        std::cmp::Ordering::Equal => v,
        std::cmp::Ordering::Greater => S::shr(v, from - to),
    }
}

#[inline(always)]
unsafe fn get4<S: Simd>(body: *const u8) -> [S::I; 8] {
    let low = mask::<S>(15);
    let w = [
        line::<S>(body, 0),
        line::<S>(body, 1),
        line::<S>(body, 2),
        line::<S>(body, 3),
    ];
    [
        S::and(w[0], low),
        S::and(w[1], low),
        S::and(w[2], low),
        S::and(w[3], low),
        S::and(S::shr(w[0], 4), low),
        S::and(S::shr(w[1], 4), low),
        S::and(S::shr(w[2], 4), low),
        S::and(S::shr(w[3], 4), low),
    ]
}

/// Returns the 2-bit fields of two lines, moved to bit `to` of every byte.
#[inline(always)]
unsafe fn get2<S: Simd>(body: *const u8, to: u32) -> [S::I; 8] {
    let field = mask::<S>(3 << to);
    let w = [line::<S>(body, 0), line::<S>(body, 1)];
    [
        S::and(moved::<S>(w[0], 0, to), field),
        S::and(moved::<S>(w[0], 2, to), field),
        S::and(moved::<S>(w[0], 4, to), field),
        S::and(moved::<S>(w[0], 6, to), field),
        S::and(moved::<S>(w[1], 0, to), field),
        S::and(moved::<S>(w[1], 2, to), field),
        S::and(moved::<S>(w[1], 4, to), field),
        S::and(moved::<S>(w[1], 6, to), field),
    ]
}

/// Returns the bits of a line, moved to bit `to` of every byte.
#[inline(always)]
unsafe fn get1<S: Simd>(body: *const u8, to: u32) -> [S::I; 8] {
    let bit = mask::<S>(1 << to);
    let w = line::<S>(body, 0);
    [
        S::and(moved::<S>(w, 0, to), bit),
        S::and(moved::<S>(w, 1, to), bit),
        S::and(moved::<S>(w, 2, to), bit),
        S::and(moved::<S>(w, 3, to), bit),
        S::and(moved::<S>(w, 4, to), bit),
        S::and(moved::<S>(w, 5, to), bit),
        S::and(moved::<S>(w, 6, to), bit),
        S::and(moved::<S>(w, 7, to), bit),
    ]
}

#[inline(always)]
unsafe fn join<S: Simd>(low: [S::I; 8], high: [S::I; 8]) -> [S::I; 8] {
    [
        S::or(low[0], high[0]),
        S::or(low[1], high[1]),
        S::or(low[2], high[2]),
        S::or(low[3], high[3]),
        S::or(low[4], high[4]),
        S::or(low[5], high[5]),
        S::or(low[6], high[6]),
        S::or(low[7], high[7]),
    ]
}

pub(in crate::product) const fn offset(log2: i32) -> Option<u32> {
    if log2 < 0 {
        None
    } else {
        Some(log2.cast_unsigned())
    }
}

/// One bit for the codes 0 and 2, with an offset of 1.
pub(in crate::product) struct Sign;

impl Codes for Sign {
    const BYTES: usize = 64;
    const OFFSET: Option<u32> = Some(0);
    const WIDTH: Width = Width::Narrow;
    const LARGEST: u8 = 2;
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]) {
        put1(codes, 0, row, body);
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8] {
        get1::<S>(body, 1)
    }
}

/// Two bits. `LOG2` is log2 of the offset, or -1 without offset.
pub(in crate::product) struct Two<const LOG2: i32>;

impl<const LOG2: i32> Codes for Two<LOG2> {
    const BYTES: usize = 128;
    const OFFSET: Option<u32> = offset(LOG2);
    const WIDTH: Width = Width::Narrow;
    const LARGEST: u8 = 3;
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]) {
        put2(codes, 0, row, body);
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8] {
        get2::<S>(body, 0)
    }
}

/// Three bits, offset by 4.
pub(in crate::product) struct Three;

impl Codes for Three {
    const BYTES: usize = 192;
    const OFFSET: Option<u32> = Some(2);
    const WIDTH: Width = Width::Narrow;
    const LARGEST: u8 = 7;
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]) {
        put2(codes, 0, row, body);
        put1(codes, 2, row, &mut body[128..]);
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8] {
        join::<S>(get2::<S>(body, 0), get1::<S>(body.add(128), 2))
    }
}

/// Four bits; `LOG2` as in [`Two`].
pub(in crate::product) struct Four<const LOG2: i32>;

impl<const LOG2: i32> Codes for Four<LOG2> {
    const BYTES: usize = 256;
    const OFFSET: Option<u32> = offset(LOG2);
    const WIDTH: Width = Width::Narrow;
    const LARGEST: u8 = 15;
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]) {
        put4(codes, row, body);
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8] {
        get4::<S>(body)
    }
}

/// Five bits; `LOG2` as in [`Two`].
pub(in crate::product) struct Five<const LOG2: i32>;

impl<const LOG2: i32> Codes for Five<LOG2> {
    const BYTES: usize = 320;
    const OFFSET: Option<u32> = offset(LOG2);
    const WIDTH: Width = Width::Narrow;
    const LARGEST: u8 = 31;
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]) {
        put4(codes, row, body);
        put1(codes, 4, row, &mut body[256..]);
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8] {
        join::<S>(get4::<S>(body), get1::<S>(body.add(256), 4))
    }
}

/// Six bits, offset by 32.
pub(in crate::product) struct Six;

impl Codes for Six {
    const BYTES: usize = 384;
    const OFFSET: Option<u32> = Some(5);
    const WIDTH: Width = Width::Narrow;
    const LARGEST: u8 = 63;
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]) {
        put4(codes, row, body);
        put2(codes, 4, row, &mut body[256..]);
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8] {
        join::<S>(get4::<S>(body), get2::<S>(body.add(256), 4))
    }
}

/// Signed bytes, stored with an offset of 128.
pub(in crate::product) struct Byte;

impl Codes for Byte {
    const BYTES: usize = 512;
    const OFFSET: Option<u32> = Some(7);
    const WIDTH: Width = Width::Wide;
    const LARGEST: u8 = 255;
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]) {
        for (u, unit) in codes.as_chunks::<4>().0.iter().enumerate() {
            *word(body, u, row) = unit.map(|c| c ^ 0x80);
        }
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8] {
        [
            line::<S>(body, 0),
            line::<S>(body, 1),
            line::<S>(body, 2),
            line::<S>(body, 3),
            line::<S>(body, 4),
            line::<S>(body, 5),
            line::<S>(body, 6),
            line::<S>(body, 7),
        ]
    }
}

/// A table of 16 values, offset to be positive.
pub(in crate::product) trait Table {
    const OFFSET: u32;
    const WIDTH: Width;
    const VALUES: [u8; 16];
}

#[inline(always)]
unsafe fn looked_up<S: Simd, T: Table>(w: [S::I; 8]) -> [S::I; 8] {
    let table = S::splat16(&T::VALUES);
    [
        S::lookup(table, w[0]),
        S::lookup(table, w[1]),
        S::lookup(table, w[2]),
        S::lookup(table, w[3]),
        S::lookup(table, w[4]),
        S::lookup(table, w[5]),
        S::lookup(table, w[6]),
        S::lookup(table, w[7]),
    ]
}

pub(in crate::product) struct Indexed<T>(T);

impl<T: Table> Codes for Indexed<T> {
    const BYTES: usize = 256;
    const OFFSET: Option<u32> = Some(T::OFFSET);
    const WIDTH: Width = T::WIDTH;
    const LARGEST: u8 = largest(T::VALUES);
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]) {
        put4(codes, row, body);
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8] {
        looked_up::<S, T>(get4::<S>(body))
    }
}

/// Three-bit indices into a table's first eight entries.
pub(in crate::product) struct Indexed3<T>(T);

impl<T: Table> Codes for Indexed3<T> {
    const BYTES: usize = 192;
    const OFFSET: Option<u32> = Some(T::OFFSET);
    const WIDTH: Width = T::WIDTH;
    const LARGEST: u8 = largest(T::VALUES);
    fn put(codes: &[u8; 32], row: usize, body: &mut [u8]) {
        put2(codes, 0, row, body);
        put1(codes, 2, row, &mut body[128..]);
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(body: *const u8) -> [S::I; 8] {
        let low = get2::<S>(body, 0);
        looked_up::<S, T>(join::<S>(low, get1::<S>(body.add(128), 2)))
    }
}

const fn largest(values: [u8; 16]) -> u8 {
    let (mut most, mut i) = (0, 0);
    while i < values.len() {
        if values[i] > most {
            most = values[i];
        }
        i += 1;
    }
    most
}

const fn above<const N: usize>(values: [i8; N], offset: i16) -> [u8; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = (values[i] as i16 + offset) as u8;
        i += 1;
    }
    out
}

/// ggml's `kvalues_iq4nl`.
pub(in crate::product) struct Iq4;

impl Table for Iq4 {
    const OFFSET: u32 = 7;
    const WIDTH: Width = Width::Wide;
    const VALUES: [u8; 16] = above(
        [
            -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
        ],
        128,
    );
}

/// The values of e2m1, times two.
pub(in crate::product) struct Fp4;

impl Table for Fp4 {
    const OFFSET: u32 = 4;
    const WIDTH: Width = Width::Narrow;
    const VALUES: [u8; 16] = above(
        [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12],
        16,
    );
}

pub(in crate::product) struct Iq1;

impl Table for Iq1 {
    const OFFSET: u32 = 4;
    const WIDTH: Width = Width::Narrow;
    const VALUES: [u8; 16] = above([-9, -7, -1, 1, 7, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 16);
}

pub(in crate::product) struct Iq2;

impl Table for Iq2 {
    const OFFSET: u32 = 6;
    const WIDTH: Width = Width::Narrow;
    const VALUES: [u8; 16] = above([-43, -25, -8, 8, 25, 43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 64);
}

/// The values of iq3_xxs.
pub(in crate::product) struct Iq3Wide;

impl Table for Iq3Wide {
    const OFFSET: u32 = 6;
    const WIDTH: Width = Width::Narrow;
    const VALUES: [u8; 16] = above(
        [
            -62, -52, -44, -36, -28, -20, -12, -4, 4, 12, 20, 28, 36, 44, 52, 62,
        ],
        64,
    );
}

pub(in crate::product) struct Iq3;

impl Table for Iq3 {
    const OFFSET: u32 = 4;
    const WIDTH: Width = Width::Narrow;
    const VALUES: [u8; 16] = above(
        [-15, -13, -11, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15],
        16,
    );
}

const _: () = assert!(ROWS * 4 == 64);
