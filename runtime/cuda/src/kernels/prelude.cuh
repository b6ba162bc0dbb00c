// The prelude of every module: names that kernels use instead of PTX. On the host, the emulator's `intrinsics.h`
// precedes it and defines the same names.
//
// - KERNEL(name, parameters) declares a kernel.
// - KERNEL_BOUNDED(threads, name, parameters) also limits the threads per block.
// - KERNEL_AT_ONCE(threads, blocks, name, parameters) limits registers so that `blocks` blocks fit on a multiprocessor,
//   or one block before compute capability 8.0, where the shared memory of two does not fit.
// - SHARED(type, name, count) declares shared memory.
// - DYN_SHARED(type, name) declares shared memory whose size the launch sets.

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

#ifdef __CUDACC__

#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__
#define CONSTANT static __device__ const
#define KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)
#define KERNEL_BOUNDED(threads, name, ...) extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#if __CUDA_ARCH__ >= 800
#define KERNEL_AT_ONCE(threads, blocks, name, ...) extern "C" __global__ void __launch_bounds__(threads, blocks) name(__VA_ARGS__)
#else
#define KERNEL_AT_ONCE(threads, blocks, name, ...) extern "C" __global__ void __launch_bounds__(threads, 1) name(__VA_ARGS__)
#endif
#define SHARED(T, name, n) __shared__ __align__(16) T name[n]
#define DYN_SHARED(T, name)                                   \
    extern __shared__ __align__(16) unsigned char dyn_shared_[]; \
    T *name = reinterpret_cast<T *>(dyn_shared_)

// Conversions of 16-bit floats, given as bits, rounded to nearest even.
DEVICE float h2f(u16 h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
DEVICE u16 f2h(float f) {
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}

// Flags between blocks and devices. A release orders all earlier accesses of one thread, an acquire all later ones.
// To release the writes of a whole block, call a barrier first.
DEVICE u32 load_acquire(const u32 *p) {
    u32 v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
DEVICE u64 load_acquire(const u64 *p) {
    u64 v;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
DEVICE void store_release(u32 *p, u32 v) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEVICE void store_release(u64 *p, u64 v) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
DEVICE u32 add_release(u32 *p, u32 v) {
    u32 old;
    asm volatile("atom.release.sys.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
    return old;
}
// Adds with acquire and release: the last of several blocks sees the writes of all blocks.
DEVICE u32 add_acq_rel(u32 *p, u32 v) {
    u32 old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
    return old;
}

// Asynchronous copies of 16 bytes to shared memory. cp_async_wait<n> leaves at most the last n groups pending. Copies
// are synchronous before compute capability 8.0.
#if __CUDA_ARCH__ >= 800
DEVICE void cp_async16(void *to, const void *from) {
    u32 a = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(a), "l"(from) : "memory");
}
DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
#else
DEVICE void cp_async16(void *to, const void *from) { *(uint4 *)to = *(const uint4 *)from; }
DEVICE void cp_async_commit() {}
template <int N> DEVICE void cp_async_wait() {}
#endif

// Loads of data that is read once. They bypass L1, and L2 evicts the data first. On compute capability 8.9 the L2 hint
// would cost an instruction, so it is omitted.
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ != 890
DEVICE uint4 load_once(const uint4 *p) {
    uint4 v;
    u64 first_to_go;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first_to_go));
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p), "l"(first_to_go));
    return v;
}
#else
DEVICE uint4 load_once(const uint4 *p) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
#endif
DEVICE u32 load_global(const u16 *p) {
    u16 v;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(p));
    return v;
}
DEVICE u32 load_global(const u32 *p) {
    u32 v;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}
DEVICE uint2 load_global(const uint2 *p) {
    uint2 v;
    asm volatile("ld.global.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
    return v;
}
DEVICE uint4 load_global(const uint4 *p) {
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
DEVICE void prefetch_l2(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// Selects bytes of `b:a` by the lowest four 4-bit fields of `s`. Bit 3 of a field repeats the highest bit of the byte.
DEVICE u32 byte_perm(u32 a, u32 b, u32 s) {
    u32 v;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(s));
    return v;
}

// Converts the lowest byte, a signed integer.
DEVICE float byte_to_float(u32 v) {
#if __CUDA_ARCH__ >= 1000
    return (float)(i8)v;
#else
    float f;
    asm("cvt.rn.f32.s8 %0, %1;" : "=f"(f) : "r"(v));
    return f;
#endif
}

// Hides how an address was computed, so that the compiler does not compute it again.
DEVICE const u8* opaque(const u8* p) {
    asm volatile("" : "+l"(p));
    return p;
}

// Programmatic edges. The functions are empty before compute capability 9.0, where edges are full dependencies.
#if __CUDA_ARCH__ >= 900
#define STARTS_EARLY 1
#else
#define STARTS_EARLY 0
#endif
DEVICE void launch_dependents() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
DEVICE void wait_dependencies() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Pairs of f16 numbers, rounded to nearest even.
DEVICE u32 add_f16x2(u32 a, u32 b) {
    u32 v;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}
DEVICE u32 mul_f16x2(u32 a, u32 b) {
    u32 v;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}
DEVICE u32 fma_f16x2(u32 a, u32 b, u32 c) {
    u32 v;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(c));
    return v;
}

// Loads four 8x8 matrices of 16-bit numbers. Lane `8 m + r` passes the address of row `r` of matrix `m`, in shared
// memory and 16-byte aligned. A lane receives two numbers of each matrix: row `lane / 4`, from column `lane % 4 * 2` on.
DEVICE void ldmatrix_x4(u32 *r, const void *row) {
    u32 a = (u32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(a)
                 : "memory");
}

// Warp matrix products: c += a b, with the fragments of the PTX instruction of the same name. All lanes must call them.
// Before compute capability 8.0 they use smaller instructions, and no tensor cores for bf16.
#if __CUDA_ARCH__ >= 800
DEVICE void mma_m16n8k16_f16(float *c, const u32 *a, const u32 *b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void mma_m16n8k16_bf16(float *c, const u32 *a, const u32 *b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void mma_m16n8k32_s8(i32 *c, const u32 *a, const u32 *b) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
DEVICE void mma_m16n8k16_f16(float *c, const u32 *a, const u32 *b) {
    for (int k = 0; k < 2; k++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
}
DEVICE void mma_m16n8k16_bf16(float *c, const u32 *a, const u32 *b) {
    u32 lane = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), group = lane % 32 / 4, pair = lane % 4 * 2;
    for (u32 i = 0; i < 4; i++)
        for (u32 k = 0; k < 16; k++) {
            u32 left = __shfl_sync(0xffffffffu, a[i / 2 + k / 8 * 2], group * 4 + k % 8 / 2);
            u32 right = __shfl_sync(0xffffffffu, b[k / 8], (pair + i % 2) * 4 + k % 8 / 2);
            left = k % 2 ? left & 0xffff0000u : left << 16;
            right = k % 2 ? right & 0xffff0000u : right << 16;
            c[i] = fmaf(__uint_as_float(left), __uint_as_float(right), c[i]);
        }
}
DEVICE void mma_m16n8k32_s8(i32 *c, const u32 *a, const u32 *b) {
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++)
            asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};"
                         : "+r"(c[2 * i]), "+r"(c[2 * i + 1])
                         : "r"(a[2 * k + i]), "r"(b[k]));
}
#endif

// Sums and maxima over 32 lanes. Every lane gets the same bits.
DEVICE float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}
DEVICE i32 warp_sum(i32 v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}
DEVICE float warp_max(float v) {
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

#endif

DEVICE u32 f2u(float f) { return __float_as_uint(f); }
DEVICE float u2f(u32 u) { return __uint_as_float(u); }
DEVICE float bf2f(u16 b) { return u2f((u32)b << 16); }
DEVICE u16 f2bf(float f) {
    u32 u = f2u(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (u16)(u >> 16 | 0x40);
    return (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
