//! Vectors of sixteen lanes, one per row of a weight. Kernels are written once, in these operations, for every
//! instruction set.
//!
//! A [`Kernel`] works over any [`Simd`]; [`Simd::enter`] compiles it for an instruction set. Every operation has the
//! same bits on each set, except the payload of a NaN.

#![expect(unsafe_code, reason = "traits of kernels")]

pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_256;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_512;

/// The size of unsigned codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// To 127.
    Narrow,
    /// To 255; their offset is 128.
    Wide,
}

pub(crate) trait Kernel {
    /// Runs the kernel.
    ///
    /// # Safety
    /// The machine has the instructions of `S`, and the implementor's requirements on its own fields hold.
    unsafe fn run<S: Simd>(self);
}

/// Sixteen lanes of 32 bits each. The 64 bytes of [`Simd::I`] are also seen as bytes: byte `4·r + i` is byte `i` of
/// lane `r`.
///
/// # Safety
/// Every function requires that the machine has the instructions. A function with a pointer also requires that the
/// bytes named in its text exist. Pointers need no alignment.
pub(crate) trait Simd: Copy + 'static {
    type I: Copy;
    type F: Copy;

    /// Tokens of the widest register tile.
    const TOKENS: usize;
    /// Panels multiplied together for a large batch.
    const PANELS: usize;

    unsafe fn enter<K: Kernel>(kernel: K);

    unsafe fn load(p: *const u8) -> Self::I;
    unsafe fn store(p: *mut u8, v: Self::I);
    /// Prefetches the cache line of an address, which need not be valid.
    unsafe fn prefetch(p: *const u8);
    /// Broadcasts an integer.
    unsafe fn splat(v: i32) -> Self::I;
    /// Broadcasts the 4 bytes at `p`.
    unsafe fn splat4(p: *const i8) -> Self::I;
    unsafe fn splat16(p: &[u8; 16]) -> Self::I;
    unsafe fn and(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn or(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn xor(a: Self::I, b: Self::I) -> Self::I;
    /// Adds lanes, wrapping.
    unsafe fn add(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn max(a: Self::I, b: Self::I) -> Self::I;
    /// Shifts lanes left; `n < 32`.
    unsafe fn shl(a: Self::I, n: u32) -> Self::I;
    /// Shifts lanes right, with zeros from the left; `n < 32`.
    unsafe fn shr(a: Self::I, n: u32) -> Self::I;
    /// Looks up each byte's low four bits in the table. All 16-byte groups of the table are equal, and the top bit of
    /// each byte is clear.
    unsafe fn lookup(table: Self::I, index: Self::I) -> Self::I;
    unsafe fn u8x16(p: *const u8) -> Self::I;
    unsafe fn i8x16(p: *const u8) -> Self::I;

    /// Returns the initial accumulator of a block. `offset` is minus the codes' offset times the sum of the
    /// activations. The result is `offset`, unless [`Simd::dot`] of wide codes subtracts it.
    unsafe fn start(width: Width, offset: i32) -> Self::I;
    /// Adds, per lane, the product of four unsigned codes `w` and four signed `x`; no `x` is -128. Codes are below 128
    /// unless they are wide, and then offset by 128.
    unsafe fn dot(width: Width, acc: Self::I, w: Self::I, x: Self::I) -> Self::I;

    /// Computes `a` before the following operations. A core reorders loads itself; a compiler that does so runs out of
    /// registers.
    unsafe fn settled(a: Self::I) -> Self::I;

    unsafe fn to_f(a: Self::I) -> Self::F;
    unsafe fn bits(a: Self::I) -> Self::F;
    /// Broadcasts an f32.
    unsafe fn fsplat(v: f32) -> Self::F;
    unsafe fn f32x16(p: *const u8) -> Self::F;
    unsafe fn f16x16(p: *const u8) -> Self::F;
    unsafe fn bf16x16(p: *const u8) -> Self::F;
    unsafe fn fstore(p: *mut f32, v: Self::F);
    unsafe fn fadd(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn fmul(a: Self::F, b: Self::F) -> Self::F;
    /// Computes `a·b + c`, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
}
