//! Vectors of sixteen lanes. The kernels are written once, in these operations, for every instruction set.
//!
//! A lane is a row of a weight. A kernel is a type that implements [`Kernel`] over any [`Simd`]; [`Simd::enter`]
//! compiles it for an instruction set. Every operation has the same result on each set, to the bit, except the payload
//! of a NaN. A kernel therefore has the same bits on every machine.

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

/// Work that runs on one instruction set.
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
    /// Sixteen 32-bit integers.
    type I: Copy;
    /// Sixteen f32.
    type F: Copy;

    /// Tokens of a register tile of the largest width.
    const TOKENS: usize;
    /// Panels that a tile of a large batch multiplies together.
    const PANELS: usize;

    /// Compiles `kernel` for the instruction set and runs it.
    unsafe fn enter<K: Kernel>(kernel: K);

    /// Loads 64 bytes.
    unsafe fn load(p: *const u8) -> Self::I;
    /// Stores 64 bytes.
    unsafe fn store(p: *mut u8, v: Self::I);
    /// Prefetches the cache line of an address, which need not be valid.
    unsafe fn prefetch(p: *const u8);
    /// Returns a vector with the same integer in all lanes.
    unsafe fn splat(v: i32) -> Self::I;
    /// Returns the 4 bytes at `p` in all lanes.
    unsafe fn splat4(p: *const i8) -> Self::I;
    /// Loads 16 bytes and repeats them four times.
    unsafe fn splat16(p: &[u8; 16]) -> Self::I;
    /// Computes bitwise and.
    unsafe fn and(a: Self::I, b: Self::I) -> Self::I;
    /// Computes bitwise or.
    unsafe fn or(a: Self::I, b: Self::I) -> Self::I;
    /// Computes bitwise exclusive or.
    unsafe fn xor(a: Self::I, b: Self::I) -> Self::I;
    /// Adds lanes, wrapping.
    unsafe fn add(a: Self::I, b: Self::I) -> Self::I;
    /// Returns the larger of signed lanes.
    unsafe fn max(a: Self::I, b: Self::I) -> Self::I;
    /// Shifts lanes left; `n` is below 32.
    unsafe fn shl(a: Self::I, n: u32) -> Self::I;
    /// Shifts lanes right, with zeros from the left; `n` is below 32.
    unsafe fn shr(a: Self::I, n: u32) -> Self::I;
    /// Returns, for each byte, the table's entry at the byte's low four bits. All 16-byte groups of the table are
    /// equal, and the top bit of each byte is clear.
    unsafe fn lookup(table: Self::I, index: Self::I) -> Self::I;
    /// Loads 16 unsigned bytes, one per lane.
    unsafe fn u8x16(p: *const u8) -> Self::I;
    /// Loads 16 signed bytes, one per lane.
    unsafe fn i8x16(p: *const u8) -> Self::I;

    /// Returns the initial accumulator of a block. `offset` is minus the codes' offset times the sum of the
    /// activations. The result is `offset`, unless [`Simd::dot`] of wide codes subtracts it on its own.
    unsafe fn start(width: Width, offset: i32) -> Self::I;
    /// Adds, in each lane, the product of four unsigned codes `w` and four signed `x`; no `x` is -128. Codes are below
    /// 128 unless they are wide, and then offset by 128.
    unsafe fn dot(width: Width, acc: Self::I, w: Self::I, x: Self::I) -> Self::I;

    /// Returns the same value, computed before the following operations. A core reorders loads itself; a compiler that
    /// does so runs out of registers.
    unsafe fn settled(a: Self::I) -> Self::I;

    /// Converts signed lanes to f32, rounded to nearest.
    unsafe fn to_f(a: Self::I) -> Self::F;
    /// Reinterprets lanes as f32.
    unsafe fn bits(a: Self::I) -> Self::F;
    /// Returns a vector with the same f32 in all lanes.
    unsafe fn fsplat(v: f32) -> Self::F;
    /// Loads 16 f32.
    unsafe fn f32x16(p: *const u8) -> Self::F;
    /// Loads 16 f16.
    unsafe fn f16x16(p: *const u8) -> Self::F;
    /// Loads 16 bf16.
    unsafe fn bf16x16(p: *const u8) -> Self::F;
    /// Stores 16 f32.
    unsafe fn fstore(p: *mut f32, v: Self::F);
    /// Computes the sum.
    unsafe fn fadd(a: Self::F, b: Self::F) -> Self::F;
    /// Computes the product.
    unsafe fn fmul(a: Self::F, b: Self::F) -> Self::F;
    /// Computes `a·b + c`, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
}
