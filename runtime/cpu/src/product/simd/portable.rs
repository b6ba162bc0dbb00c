//! Operations on arrays of sixteen lanes, for machines without vector instructions. They define the operations.
#![expect(unsafe_code, reason = "the functions of the trait are unsafe")]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "functions access only the bytes that the trait names"
)]

use super::{Kernel, Simd, Width};
use half::f16;
use std::array::from_fn;

#[derive(Clone, Copy)]
pub(crate) struct Portable;

fn dot4(w: u32, x: u32) -> i32 {
    let (w, x) = (w.to_le_bytes(), x.to_le_bytes());
    let products = w
        .iter()
        .zip(x)
        .map(|(&w, x)| i32::from(w) * i32::from(x.cast_signed()));
    products.sum()
}

fn bytes(a: [u32; 16], b: [u32; 16], op: impl Fn(u8, u8) -> u8) -> [u32; 16] {
    from_fn(|r| {
        let (a, b) = (a[r].to_le_bytes(), b[r].to_le_bytes());
        u32::from_le_bytes(from_fn(|i| op(a[i], b[i])))
    })
}

// SAFETY of all functions: only the bytes that the trait names are read or written.
impl Simd for Portable {
    type I = [u32; 16];
    type F = [f32; 16];
    const TOKENS: usize = 4;
    const PANELS: usize = 1;
    const CHAINS: bool = false;
    const FEW: usize = 192;

    #[inline(always)]
    unsafe fn enter<K: Kernel>(kernel: K) {
        kernel.run::<Portable>();
    }
    #[inline(always)]
    unsafe fn load(p: *const u8) -> Self::I {
        let b = p.cast::<[[u8; 4]; 16]>().read_unaligned();
        from_fn(|r| u32::from_le_bytes(b[r]))
    }
    #[inline(always)]
    unsafe fn store(p: *mut u8, v: Self::I) {
        let b: [[u8; 4]; 16] = from_fn(|r| v[r].to_le_bytes());
        p.cast::<[[u8; 4]; 16]>().write_unaligned(b);
    }
    #[inline(always)]
    unsafe fn prefetch(_: *const u8) {}
    #[inline(always)]
    unsafe fn prefetch_near(_: *const u8) {}
    #[inline(always)]
    unsafe fn splat(v: i32) -> Self::I {
        [v.cast_unsigned(); 16]
    }
    #[inline(always)]
    unsafe fn splat4(p: *const i8) -> Self::I {
        [u32::from_le_bytes(p.cast::<[u8; 4]>().read_unaligned()); 16]
    }
    #[inline(always)]
    unsafe fn splat16(p: &[u8; 16]) -> Self::I {
        from_fn(|r| u32::from_le_bytes(from_fn(|i| p[r % 4 * 4 + i])))
    }
    #[inline(always)]
    unsafe fn and(a: Self::I, b: Self::I) -> Self::I {
        from_fn(|r| a[r] & b[r])
    }
    #[inline(always)]
    unsafe fn or(a: Self::I, b: Self::I) -> Self::I {
        from_fn(|r| a[r] | b[r])
    }
    #[inline(always)]
    unsafe fn xor(a: Self::I, b: Self::I) -> Self::I {
        from_fn(|r| a[r] ^ b[r])
    }
    #[inline(always)]
    unsafe fn add(a: Self::I, b: Self::I) -> Self::I {
        from_fn(|r| a[r].wrapping_add(b[r]))
    }
    #[inline(always)]
    unsafe fn max(a: Self::I, b: Self::I) -> Self::I {
        from_fn(|r| {
            let (a, b) = (a[r].cast_signed(), b[r].cast_signed());
            a.max(b).cast_unsigned()
        })
    }
    #[inline(always)]
    unsafe fn shl(a: Self::I, n: u32) -> Self::I {
        from_fn(|r| a[r] << n)
    }
    #[inline(always)]
    unsafe fn shr(a: Self::I, n: u32) -> Self::I {
        from_fn(|r| a[r] >> n)
    }
    #[inline(always)]
    unsafe fn lookup(table: Self::I, index: Self::I) -> Self::I {
        let entries: [u8; 16] = from_fn(|i| table[i / 4].to_le_bytes()[i % 4]);
        bytes(index, index, |i, _| entries[usize::from(i & 15)])
    }
    #[inline(always)]
    unsafe fn u8x16(p: *const u8) -> Self::I {
        p.cast::<[u8; 16]>().read_unaligned().map(u32::from)
    }
    #[inline(always)]
    unsafe fn i8x16(p: *const u8) -> Self::I {
        let b = p.cast::<[i8; 16]>().read_unaligned();
        b.map(|v| i32::from(v).cast_unsigned())
    }
    #[inline(always)]
    unsafe fn start(_: Width, negative: i32, log2: u32) -> Self::I {
        [(negative << log2).cast_unsigned(); 16]
    }
    #[inline(always)]
    unsafe fn dot(_: Width, acc: Self::I, w: Self::I, x: Self::I) -> Self::I {
        from_fn(|r| acc[r].wrapping_add_signed(dot4(w[r], x[r])))
    }
    #[inline(always)]
    unsafe fn link(pairs: Self::I, w: Self::I, x: Self::I) -> Self::I {
        let half = |v: u32, i: u32| v >> (16 * i) & 0xffff;
        from_fn(|r| {
            let of = |i| half(pairs[r], i).wrapping_add_signed(dot4(half(w[r], i), half(x[r], i)));
            of(0) & 0xffff | of(1) << 16
        })
    }
    #[inline(always)]
    unsafe fn widen(acc: Self::I, pairs: Self::I) -> Self::I {
        let half = |v: u32| i32::from((v as u16).cast_signed());
        from_fn(|r| acc[r].wrapping_add_signed(half(pairs[r]) + half(pairs[r] >> 16)))
    }
    #[inline(always)]
    unsafe fn settled(a: Self::I) -> Self::I {
        a
    }
    #[inline(always)]
    unsafe fn to_f(a: Self::I) -> Self::F {
        a.map(|v| v.cast_signed() as f32)
    }
    #[inline(always)]
    unsafe fn bits(a: Self::I) -> Self::F {
        a.map(f32::from_bits)
    }
    #[inline(always)]
    unsafe fn fsplat(v: f32) -> Self::F {
        [v; 16]
    }
    #[inline(always)]
    unsafe fn f32x16(p: *const u8) -> Self::F {
        let b = p.cast::<[[u8; 4]; 16]>().read_unaligned();
        b.map(f32::from_le_bytes)
    }
    #[inline(always)]
    unsafe fn f16x16(p: *const u8) -> Self::F {
        let b = p.cast::<[[u8; 2]; 16]>().read_unaligned();
        b.map(|b| f16::from_le_bytes(b).to_f32())
    }
    #[inline(always)]
    unsafe fn bf16x16(p: *const u8) -> Self::F {
        let b = p.cast::<[[u8; 2]; 16]>().read_unaligned();
        b.map(|b| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))
    }
    #[inline(always)]
    unsafe fn fstore(p: *mut f32, v: Self::F) {
        p.cast::<[f32; 16]>().write_unaligned(v);
    }
    #[inline(always)]
    unsafe fn fadd(a: Self::F, b: Self::F) -> Self::F {
        from_fn(|r| a[r] + b[r])
    }
    #[inline(always)]
    unsafe fn fmul(a: Self::F, b: Self::F) -> Self::F {
        from_fn(|r| a[r] * b[r])
    }
    #[inline(always)]
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        from_fn(|r| a[r].mul_add(b[r], c[r]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_equal_dot_products() {
        let lanes = |seed: u32, mask: u32| -> [u32; 16] {
            from_fn(|r| (r as u32 + seed).wrapping_mul(2_654_435_761) & mask)
        };
        let zero = [0; 16];
        let (w, x) = (lanes(1, 0x3f3f_3f3f), lanes(2, 0xf7f7_f7f7));
        // SAFETY: no pointers.
        unsafe {
            let pairs = Portable::link(Portable::link(zero, w, x), x.map(|x| x & 0x3f3f_3f3f), x);
            let acc = Portable::widen(lanes(3, 0xff), pairs);
            let dot = Portable::dot(Width::Narrow, lanes(3, 0xff), w, x);
            let dot = Portable::dot(Width::Narrow, dot, x.map(|x| x & 0x3f3f_3f3f), x);
            assert_eq!(acc, dot);
        }
    }
}
