//! Vectors of sixteen lanes, one per row of a weight. Kernels are written once for all instruction sets.
//!
//! A [`Kernel`] is generic over [`Simd`]; [`Simd::enter`] compiles it for an instruction set. Operations give the
//! same bits on every instruction set, except the payload of NaN.

#![expect(unsafe_code, reason = "traits of kernels")]

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_256;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_512;

/// The size of unsigned codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// Codes up to 127.
    Narrow,
    /// Codes up to 255, with an offset of 128.
    Wide,
}

pub(crate) trait Kernel {
    /// Runs the kernel.
    ///
    /// # Safety
    /// The machine has the instructions of `S`, and the implementor's requirements hold.
    unsafe fn run<S: Simd>(self);
}

/// Sixteen lanes of 32 bits. Some operations treat [`Simd::I`] as 64 bytes: byte `4·r + i` is byte `i` of lane `r`.
///
/// # Safety
/// The machine has the instructions. The bytes that a function reads or writes through a pointer exist. Pointers may
/// be unaligned.
pub(crate) trait Simd: Copy + 'static {
    type I: Copy;
    type F: Copy;

    /// Maximum number of tokens in a register tile.
    const TOKENS: usize;
    /// Panels multiplied together for a large batch.
    const PANELS: usize;
    /// True if sums of 16 bits are faster than [`Simd::dot`], if they cannot overflow.
    const CHAINS: bool;
    /// The largest batch whose weights are decoded in registers, again for every few tokens. Larger batches decode
    /// weights into a cache, once for all tokens.
    const FEW: usize;

    unsafe fn enter<K: Kernel>(kernel: K);

    unsafe fn load(p: *const u8) -> Self::I;
    unsafe fn store(p: *mut u8, v: Self::I);
    /// Prefetches the cache line of an address. The address may be invalid.
    unsafe fn prefetch(p: *const u8);
    /// Prefetches the cache line of an address into the first-level cache. The address may be invalid.
    unsafe fn prefetch_near(p: *const u8);
    unsafe fn splat(v: i32) -> Self::I;
    /// Broadcasts the 4 bytes at `p`.
    unsafe fn splat4(p: *const i8) -> Self::I;
    unsafe fn splat16(p: &[u8; 16]) -> Self::I;
    unsafe fn and(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn or(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn xor(a: Self::I, b: Self::I) -> Self::I;
    /// Adds lanes with wrapping.
    unsafe fn add(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn max(a: Self::I, b: Self::I) -> Self::I;
    /// Shifts lanes left; `n < 32`.
    unsafe fn shl(a: Self::I, n: u32) -> Self::I;
    /// Shifts lanes right, filling with zeros; `n < 32`.
    unsafe fn shr(a: Self::I, n: u32) -> Self::I;
    /// Looks up the low four bits of each byte in the table. The table's 16-byte groups are equal, and each index
    /// byte's top bit is clear.
    unsafe fn lookup(table: Self::I, index: Self::I) -> Self::I;
    unsafe fn u8x16(p: *const u8) -> Self::I;
    unsafe fn i8x16(p: *const u8) -> Self::I;

    /// Returns the initial accumulator of a block, for codes with an offset of `1 << log2`. `negative` is minus the sum
    /// of the activations. The result is `negative << log2`, unless [`Simd::dot`] subtracts the offset of wide codes
    /// itself.
    unsafe fn start(width: Width, negative: i32, log2: u32) -> Self::I;
    /// Adds to each lane the dot product of four unsigned codes `w` and four signed bytes `x`. No `x` is -128. Narrow
    /// codes are below 128; wide codes are offset by 128.
    unsafe fn dot(width: Width, acc: Self::I, w: Self::I, x: Self::I) -> Self::I;

    /// Adds to both 16-bit halves of each lane the products of two narrow codes `w` and two signed bytes `x`. No sum
    /// exceeds 16 bits.
    unsafe fn link(pairs: Self::I, w: Self::I, x: Self::I) -> Self::I;
    /// Adds both 16-bit halves of `pairs` to each lane.
    unsafe fn widen(acc: Self::I, pairs: Self::I) -> Self::I;

    /// Prevents the compiler from moving `a` after later operations, which would need too many registers. The core
    /// reorders loads itself.
    unsafe fn settled(a: Self::I) -> Self::I;

    unsafe fn to_f(a: Self::I) -> Self::F;
    unsafe fn bits(a: Self::I) -> Self::F;
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
