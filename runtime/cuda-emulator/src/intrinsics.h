// Host versions of the prelude's functions.

template <class A, class B> SHIM_INLINE A shim_bits(const B &b) {
    static_assert(sizeof(A) == sizeof(B));
    A a;
    memcpy(&a, &b, sizeof a);
    return a;
}
SHIM_INLINE float __uint_as_float(unsigned u) { return shim_bits<float>(u); }
SHIM_INLINE unsigned __float_as_uint(float f) { return shim_bits<unsigned>(f); }
SHIM_INLINE float __int_as_float(int u) { return shim_bits<float>(u); }
SHIM_INLINE int __float_as_int(float f) { return shim_bits<int>(f); }
SHIM_INLINE float h2f(unsigned short h) {
    // The multiplication adjusts the exponent and normalises subnormal numbers.
    unsigned u = (h & 0x7fffu) << 13;
    float f = shim_bits<float>(u) * 0x1p112f;
    if ((h & 0x7c00) == 0x7c00) f = shim_bits<float>(u | 0x7f800000u | (h & 0x3ff ? 0x400000u : 0u));
    return shim_bits<float>(shim_bits<unsigned>(f) | (h & 0x8000u) << 16);
}
SHIM_INLINE unsigned short f2h(float f) {
    unsigned u = shim_bits<unsigned>(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (unsigned short)(sign | 0x7fff);
    if (a >= 0x477ff000u) return (unsigned short)(sign | 0x7c00);
    if (a < 0x38800000u) {
        // Subnormal: adding a power of two leaves the rounded bits in the low end of the sum.
        float s = shim_bits<float>(a) + 0.5f;
        return (unsigned short)(sign | (shim_bits<unsigned>(s) - 0x3f000000u));
    }
    a += 0xc8000fffu + (a >> 13 & 1);
    return (unsigned short)(sign | a >> 13);
}
template <class T> SHIM_INLINE T min(T a, T b) { return b < a ? b : a; }
template <class T> SHIM_INLINE T max(T a, T b) { return a < b ? b : a; }
SHIM_INLINE float min(float a, float b) { return fminf(a, b); }
SHIM_INLINE float max(float a, float b) { return fmaxf(a, b); }
SHIM_INLINE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define __expf(x) expf(x)
#define __logf(x) logf(x)
SHIM_INLINE float __fdividef(float a, float b) { return a / b; }
SHIM_INLINE int __float2int_rn(float x) { return (int)rintf(x); }
SHIM_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
SHIM_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
SHIM_INLINE int __ffs(int x) { return __builtin_ffs(x); }
SHIM_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    uint64_t ab = (uint64_t)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned byte = (unsigned)(ab >> (s >> 4 * i & 7) * 8) & 0xff;
        if (s >> 4 * i & 8) byte = byte & 0x80 ? 0xff : 0;
        r |= byte << 8 * i;
    }
    return r;
}
SHIM_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) { return (unsigned)(((uint64_t)hi << 32 | lo) >> (s & 31)); }
SHIM_INLINE int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; i++) c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
    return c;
}
SHIM_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; i++) c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return c;
}
template <class T> SHIM_INLINE T __ldg(const T *p) { return *p; }

// Atomics. The engine is called before each; a fiber is not interrupted inside. The kinds match `abi.rs`.
enum { SHIM_LOAD = 1, SHIM_STORE = 2, SHIM_ACQUIRE = 4, SHIM_RELEASE = 8, SHIM_SYSTEM = 16 };
SHIM_QUIET static void shim_atomic(const void *p, uint32_t bytes, uint32_t kind, const char *what, const char *file, uint32_t line) {
    ShimSite site{what, file, line};
    tpc_calls.atomic(shim_thread(), p, bytes, kind, __builtin_return_address(0), &site);
}
template <class T> SHIM_QUIET T shim_load(const T *p) { return *(const volatile T *)p; }
template <class T> SHIM_QUIET void shim_store(T *p, T v) { *(volatile T *)p = v; }
template <class T, class F> SHIM_INLINE T shim_update(T *p, uint32_t kind, const char *what, const char *file, uint32_t line, F f) {
    shim_atomic(p, sizeof(T), SHIM_LOAD | SHIM_STORE | kind, what, file, line);
    T old = shim_load(p);
    shim_store(p, f(old));
    return old;
}
#define SHIM_ATOMIC(name, result)                                                                    \
    template <class T> SHIM_INLINE T name(T *p, std::type_identity_t<T> v, SHIM_AT) {                \
        return shim_update(p, 0, #name, file, line, [=](T old) -> T { return result; });             \
    }
SHIM_ATOMIC(atomicAdd, old + v)
SHIM_ATOMIC(atomicMax, old < v ? v : old)
SHIM_ATOMIC(atomicMin, v < old ? v : old)
SHIM_ATOMIC(atomicOr, old | v)
SHIM_ATOMIC(atomicAnd, old & v)
SHIM_ATOMIC(atomicExch, v)
template <class T> SHIM_INLINE T atomicCAS(T *p, std::type_identity_t<T> expected, std::type_identity_t<T> v, SHIM_AT) {
    return shim_update(p, 0, "atomicCAS", file, line, [=](T old) -> T { return old == expected ? v : old; });
}
SHIM_INLINE void __threadfence_block() { tpc_calls.fence(shim_thread(), 0); }
SHIM_INLINE void __threadfence() { tpc_calls.fence(shim_thread(), 1); }
SHIM_INLINE void __threadfence_system() { tpc_calls.fence(shim_thread(), 2); }
SHIM_INLINE void __nanosleep(unsigned, SHIM_AT) {
    ShimSite site{"__nanosleep", file, line};
    tpc_calls.pause(shim_thread(), &site);
}
SHIM_INLINE void __trap(SHIM_AT) {
    ShimSite site{"__trap", file, line};
    tpc_calls.trap(shim_thread(), &site);
}
// A loop that waits for a flag must yield. The engine detects it by repeated loads of one flag by one thread.
template <class T> SHIM_INLINE T shim_acquire(const T *p, const char *file, uint32_t line) {
    shim_atomic(p, sizeof(T), SHIM_LOAD | SHIM_ACQUIRE | SHIM_SYSTEM, "load_acquire", file, line);
    return shim_load(p);
}
template <class T> SHIM_INLINE void shim_release(T *p, T v, const char *file, uint32_t line) {
    shim_atomic(p, sizeof(T), SHIM_STORE | SHIM_RELEASE | SHIM_SYSTEM, "store_release", file, line);
    shim_store(p, v);
}
SHIM_INLINE unsigned load_acquire(const unsigned *p, SHIM_AT) { return shim_acquire(p, file, line); }
SHIM_INLINE unsigned long long load_acquire(const unsigned long long *p, SHIM_AT) { return shim_acquire(p, file, line); }
SHIM_INLINE void store_release(unsigned *p, unsigned v, SHIM_AT) { shim_release(p, v, file, line); }
SHIM_INLINE void store_release(unsigned long long *p, unsigned long long v, SHIM_AT) { shim_release(p, v, file, line); }
SHIM_INLINE unsigned add_release(unsigned *p, unsigned v, SHIM_AT) {
    return shim_update(p, SHIM_RELEASE | SHIM_SYSTEM, "add_release", file, line, [=](unsigned old) { return old + v; });
}
SHIM_INLINE unsigned add_acq_rel(unsigned *p, unsigned v, SHIM_AT) {
    return shim_update(p, SHIM_ACQUIRE | SHIM_RELEASE, "add_acq_rel", file, line, [=](unsigned old) { return old + v; });
}

// Asynchronous copies take effect at the wait, so a kernel without the wait reads the old contents.
SHIM_QUIET static void cp_async16(void *to, const void *from) { tpc_calls.copy(shim_thread(), to, from, __builtin_return_address(0)); }
SHIM_INLINE void cp_async_commit() { tpc_calls.copies_commit(shim_thread()); }
template <int N> SHIM_INLINE void cp_async_wait() { tpc_calls.copies_wait(shim_thread(), N); }
SHIM_INLINE uint4 load_once(const uint4 *p) { return *p; }
template <class T> SHIM_INLINE T load_global(const T *p) { return *p; }
SHIM_INLINE unsigned byte_perm(unsigned a, unsigned b, unsigned s) { return __byte_perm(a, b, s); }
SHIM_INLINE float byte_to_float(unsigned v) { return (float)(signed char)v; }
SHIM_INLINE const unsigned char *opaque(const unsigned char *p) { return p; }
// The checked build treats a prefetch as a load: its address must be valid and free of races with writes.
#ifdef SHIM_CHECKED
SHIM_INLINE void prefetch_l2(const void *p) { (void)*(const volatile unsigned char *)p; }
#else
SHIM_INLINE void prefetch_l2(const void *) {}
#endif
#define STARTS_EARLY 1
SHIM_INLINE void launch_dependents() { tpc_calls.dependents(shim_thread()); }
SHIM_INLINE void wait_dependencies(SHIM_AT) {
    ShimSite site{"wait_dependencies", file, line};
    tpc_calls.dependencies(shim_thread(), &site);
}

template <class F> SHIM_INLINE unsigned shim_f16x2(F f) { return f2h(f(0)) | (unsigned)f2h(f(16)) << 16; }
SHIM_INLINE unsigned add_f16x2(unsigned a, unsigned b) {
    return shim_f16x2([=](int at) { return h2f((unsigned short)(a >> at)) + h2f((unsigned short)(b >> at)); });
}
SHIM_INLINE unsigned mul_f16x2(unsigned a, unsigned b) {
    return shim_f16x2([=](int at) { return h2f((unsigned short)(a >> at)) * h2f((unsigned short)(b >> at)); });
}
// The f32 sum is rounded once more, so the last bit can differ from a card's.
SHIM_INLINE unsigned fma_f16x2(unsigned a, unsigned b, unsigned c) {
    return shim_f16x2([=](int at) { return fmaf(h2f((unsigned short)(a >> at)), h2f((unsigned short)(b >> at)), h2f((unsigned short)(c >> at))); });
}
SHIM_INLINE void ldmatrix_x4(unsigned *r, const void *row, SHIM_AT) {
    auto slots = shim_exchange(~0u, row, nullptr, "ldmatrix_x4", file, line);
    uint32_t lane = shim_thread()->lane;
    for (uint32_t m = 0; m < 4; m++) r[m] = ((const unsigned *)shim_lane<const void *>(slots, 8 * m + lane / 4))[lane % 4];
}

// Warp matrix products. Rows and columns of the fragments follow the PTX instruction.
struct ShimFragments { unsigned a[4], b[2]; };
SHIM_INLINE ShimFragments shim_fragments(const unsigned *a, const unsigned *b) { return {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}; }
template <class F> SHIM_INLINE void shim_mma16(float *c, const ShimSlot *slots, F real) {
    uint32_t lane = shim_thread()->lane, group = lane >> 2, pair = (lane & 3) * 2;
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 16; k++) {
            uint32_t row = group + 8 * (i >> 1), column = pair + (i & 1);
            auto left = shim_lane<ShimFragments>(slots, (row & 7) * 4 + (k & 7) / 2);
            auto right = shim_lane<ShimFragments>(slots, column * 4 + (k & 7) / 2);
            unsigned a = left.a[(row >> 3) + 2 * (k >> 3)] >> 16 * (k & 1), b = right.b[k >> 3] >> 16 * (k & 1);
            c[i] += real((unsigned short)a) * real((unsigned short)b);
        }
}
SHIM_INLINE void mma_m16n8k16_f16(float *c, const unsigned *a, const unsigned *b, SHIM_AT) {
    shim_mma16(c, shim_exchange(~0u, shim_fragments(a, b), nullptr, "mma_m16n8k16_f16", file, line), [](unsigned short h) { return h2f(h); });
}
SHIM_INLINE void mma_m16n8k16_bf16(float *c, const unsigned *a, const unsigned *b, SHIM_AT) {
    shim_mma16(c, shim_exchange(~0u, shim_fragments(a, b), nullptr, "mma_m16n8k16_bf16", file, line),
               [](unsigned short h) { return shim_bits<float>((unsigned)h << 16); });
}
SHIM_INLINE void mma_m16n8k32_s8(int *c, const unsigned *a, const unsigned *b, SHIM_AT) {
    auto slots = shim_exchange(~0u, shim_fragments(a, b), nullptr, "mma_m16n8k32_s8", file, line);
    uint32_t lane = shim_thread()->lane, group = lane >> 2, pair = (lane & 3) * 2;
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 32; k += 4) {
            uint32_t row = group + 8 * (i >> 1), column = pair + (i & 1);
            auto left = shim_lane<ShimFragments>(slots, (row & 7) * 4 + (k & 15) / 4);
            auto right = shim_lane<ShimFragments>(slots, column * 4 + (k & 15) / 4);
            c[i] = __dp4a((int)left.a[(row >> 3) + 2 * (k >> 4)], (int)right.b[k >> 4], c[i]);
        }
}
