// CUDA C++ on the host: the compiler's built-ins, and C++ versions of the prelude's intrinsics.
//
// Every CUDA thread has a stack, whose size and alignment are the same power of two. The thread's data is at the upper
// end, so any frame can find it. Operations that may wait call the engine through a table.

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <utility>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) alignas(n)
#define SHIM_INLINE static inline __attribute__((always_inline, unused))
#define SHIM_EXPORT extern "C" __attribute__((visibility("default")))
#define SHIM_QUIET __attribute__((no_sanitize("thread"), noinline, unused))
#ifdef SHIM_CHECKED
#define SHIM_QUIET_INLINE static SHIM_QUIET
#else
#define SHIM_QUIET_INLINE SHIM_INLINE
#endif

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };
#define SHIM_VECTOR(T, name, a2, a4)                                                             \
    struct alignas(a2) name##2 { T x, y; };                                                      \
    struct name##3 { T x, y, z; };                                                               \
    struct alignas(a4) name##4 { T x, y, z, w; };                                                \
    SHIM_INLINE name##2 make_##name##2(T x, T y) { return {x, y}; }                              \
    SHIM_INLINE name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SHIM_VECTOR(float, float, 8, 16)
SHIM_VECTOR(int, int, 8, 16)
SHIM_VECTOR(unsigned char, uchar, 2, 4)
SHIM_VECTOR(signed char, char, 2, 4)
SHIM_VECTOR(unsigned short, ushort, 4, 8)
SHIM_VECTOR(short, short, 4, 8)
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
SHIM_INLINE uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
SHIM_INLINE uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
struct alignas(16) double2 { double x, y; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };

// Types that the engine shares. The layouts match `abi.rs`.
struct ShimSite { const char *what, *file; uint32_t line; };
struct ShimShared { uint32_t bytes; uint32_t line; const char *name, *file; };
struct ShimBlock {
    uint3 index;
    dim3 threads, blocks;
    uint32_t dynamic_bytes;
    unsigned char *dynamic;
};
struct ShimThread {
    uint3 index;
    uint32_t linear, lane, warp;
    void *engine[2];
    ShimBlock block;
};
struct ShimSlot { alignas(16) unsigned char bytes[64]; };
typedef void (*ShimReduce)(ShimSlot *slots, uint32_t lanes);
struct ShimCalls {
    uint32_t (*barrier)(ShimThread *, uint32_t value, const ShimSite *);
    const ShimSlot *(*collective)(ShimThread *, uint32_t mask, const void *value, uint32_t bytes, ShimReduce, const ShimSite *);
    void *(*shared)(ShimThread *, const ShimShared *);
    void (*pause)(ShimThread *, const ShimSite *);
    void (*atomic)(ShimThread *, const void *address, uint32_t bytes, uint32_t kind, const void *pc, const ShimSite *);
    void (*fence)(ShimThread *, uint32_t scope);
    void (*copy)(ShimThread *, void *to, const void *from, const void *pc);
    void (*copies_commit)(ShimThread *);
    void (*copies_wait)(ShimThread *, uint32_t left);
    void (*dependents)(ShimThread *);
    void (*dependencies)(ShimThread *, const ShimSite *);
    void (*trap)(ShimThread *, const ShimSite *);
    void (*access)(ShimThread *, const void *address, uint32_t bytes, uint32_t kind, const void *pc);
    void (*misaligned)(ShimThread *, const ShimSite *, const void *address, uint32_t alignment);
};
SHIM_EXPORT ShimCalls tpc_calls;
ShimCalls tpc_calls;
extern const char shim_image[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
extern const char shim_image_end[] __asm__("_end") __attribute__((visibility("hidden")));
SHIM_EXPORT const void *tpc_image[2];
const void *tpc_image[2] = {shim_image, shim_image_end};

constexpr uintptr_t SHIM_STACK = 64 << 10, SHIM_HEAD = 512;
SHIM_INLINE ShimThread *shim_thread() {
    return (ShimThread *)(((uintptr_t)__builtin_frame_address(0) | (SHIM_STACK - 1)) + 1 - SHIM_HEAD);
}
#define threadIdx (shim_thread()->index)
#define blockIdx (shim_thread()->block.index)
#define blockDim (shim_thread()->block.threads)
#define gridDim (shim_thread()->block.blocks)
constexpr int warpSize = 32;
#define SHIM_AT const char *file = __builtin_FILE(), uint32_t line = __builtin_LINE()

// Each kernel has an entry, which takes the addresses of the arguments, and a list of argument sizes.
template <class... A> struct ShimParameters { static constexpr uint32_t sizes[] = {(uint32_t)sizeof(A)..., 0}; };
struct ShimKernel { uint32_t count, bound; const uint32_t *sizes; void (*run)(void **); };
template <class T> SHIM_QUIET_INLINE T shim_argument(void *at) { return *(T *)at; }
SHIM_QUIET_INLINE void *shim_at(void **a, size_t i) { return a[i]; }
template <auto F> struct ShimEntry;
template <class... A, void (*F)(A...)> struct ShimEntry<F> {
    template <size_t... I> static void spread(void **a, std::index_sequence<I...>) { (void)a; F(shim_argument<A>(shim_at(a, I))...); }
    static void run(void **a) { spread(a, std::index_sequence_for<A...>()); }
    static constexpr ShimKernel kernel(uint32_t bound) { return {sizeof...(A), bound, ShimParameters<A...>::sizes, run}; }
};
#define KERNEL_BOUNDED(n, name, ...)                                            \
    extern "C" void name(__VA_ARGS__);                                          \
    SHIM_EXPORT const ShimKernel tpc_kernel_##name;                             \
    const ShimKernel tpc_kernel_##name = ShimEntry<&name>::kernel(n);           \
    extern "C" void name(__VA_ARGS__)
#define KERNEL_AT_ONCE(n, blocks, name, ...) KERNEL_BOUNDED(n, name, __VA_ARGS__)
#define KERNEL(name, ...) KERNEL_BOUNDED(1024, name, __VA_ARGS__)
#define DEVICE SHIM_INLINE
#define DEVICE_MEMBER inline
#define CONSTANT static const
#define SHARED(T, name, n)                                                                  \
    static const ShimShared shim_shared_##name{sizeof(T) * (n), __LINE__, #name, __FILE__}; \
    T *const name = (T *)tpc_calls.shared(shim_thread(), &shim_shared_##name)
#define DYN_SHARED(T, name) T *const name = (T *)shim_thread()->block.dynamic

// Barriers. The engine sums the threads' values: the lower half counts yes votes, the upper half threads.
SHIM_INLINE uint32_t shim_barrier(uint32_t yes, const char *what, const char *file, uint32_t line) {
    ShimSite site{what, file, line};
    return tpc_calls.barrier(shim_thread(), yes | 1u << 16, &site);
}
SHIM_INLINE void __syncthreads(SHIM_AT) { shim_barrier(0, "__syncthreads", file, line); }
SHIM_INLINE int __syncthreads_or(int p, SHIM_AT) { return (shim_barrier(p != 0, "__syncthreads_or", file, line) & 0xffff) != 0; }
SHIM_INLINE int __syncthreads_count(int p, SHIM_AT) { return shim_barrier(p != 0, "__syncthreads_count", file, line) & 0xffff; }
SHIM_INLINE int __syncthreads_and(int p, SHIM_AT) {
    uint32_t n = shim_barrier(p != 0, "__syncthreads_and", file, line);
    return (n & 0xffff) == n >> 16;
}

// Warps. Every lane publishes a value, and receives all lanes' values when every lane of the mask has arrived.
template <class T> SHIM_INLINE const ShimSlot *shim_exchange(uint32_t mask, const T &v, ShimReduce reduce, const char *what, const char *file, uint32_t line) {
    static_assert(sizeof(T) <= sizeof(ShimSlot));
    ShimSite site{what, file, line};
    return tpc_calls.collective(shim_thread(), mask, &v, sizeof(T), reduce, &site);
}
template <class T> SHIM_QUIET_INLINE T shim_lane(const ShimSlot *slots, uint32_t lane) {
    T t;
    memcpy(&t, slots[lane & 31].bytes, sizeof(T));
    return t;
}
SHIM_INLINE void __syncwarp(uint32_t mask = 0xffffffffu, SHIM_AT) { shim_exchange(mask, 0, nullptr, "__syncwarp", file, line); }
// Returns the source lane, or `lane` if the source is outside the group of `width` lanes.
SHIM_INLINE uint32_t shim_within(uint32_t lane, uint32_t from, uint32_t width) { return (lane & ~(width - 1)) == (from & ~(width - 1)) ? from : lane; }
template <class T> SHIM_INLINE T __shfl_sync(uint32_t mask, T v, int from, int width = 32, SHIM_AT) {
    uint32_t lane = shim_thread()->lane;
    return shim_lane<T>(shim_exchange(mask, v, nullptr, "__shfl_sync", file, line), (lane & ~(uint32_t)(width - 1)) | ((uint32_t)from & (uint32_t)(width - 1)));
}
template <class T> SHIM_INLINE T __shfl_xor_sync(uint32_t mask, T v, int other, int width = 32, SHIM_AT) {
    uint32_t lane = shim_thread()->lane;
    return shim_lane<T>(shim_exchange(mask, v, nullptr, "__shfl_xor_sync", file, line), shim_within(lane, lane ^ (uint32_t)other, width));
}
template <class T> SHIM_INLINE T __shfl_down_sync(uint32_t mask, T v, unsigned by, int width = 32, SHIM_AT) {
    uint32_t lane = shim_thread()->lane;
    return shim_lane<T>(shim_exchange(mask, v, nullptr, "__shfl_down_sync", file, line), shim_within(lane, lane + by, width));
}
template <class T> SHIM_INLINE T __shfl_up_sync(uint32_t mask, T v, unsigned by, int width = 32, SHIM_AT) {
    uint32_t lane = shim_thread()->lane;
    return shim_lane<T>(shim_exchange(mask, v, nullptr, "__shfl_up_sync", file, line), shim_within(lane, lane - by, width));
}
SHIM_INLINE uint32_t __ballot_sync(uint32_t mask, int p, SHIM_AT) {
    uint32_t yes = p != 0, all = 0;
    auto slots = shim_exchange(mask, yes, nullptr, "__ballot_sync", file, line);
    for (uint32_t i = 0; i < 32; i++)
        if (mask >> i & 1) all |= shim_lane<uint32_t>(slots, i) << i;
    return all;
}
SHIM_INLINE int __any_sync(uint32_t mask, int p, SHIM_AT) { return __ballot_sync(mask, p, file, line) != 0; }
SHIM_INLINE int __all_sync(uint32_t mask, int p, SHIM_AT) { return __ballot_sync(mask, !p, file, line) == 0; }
// Butterfly reduction in the same order as on a graphics card. All lanes receive the same result.
template <class T, class F> SHIM_INLINE T shim_butterfly(const ShimSlot *slots, F f) {
    T v[32];
    for (int i = 0; i < 32; i++) v[i] = shim_lane<T>(slots, i);
    for (int o = 16; o > 0; o >>= 1)
        for (int i = 0; i < o; i++) v[i] = f(v[i], v[i + o]);
    return v[0];
}
template <class T> SHIM_QUIET void shim_sum(ShimSlot *slots, uint32_t) {
    T sum = shim_butterfly<T>(slots, [](T a, T b) { return a + b; });
    memcpy(slots, &sum, sizeof sum);
}
SHIM_QUIET static void shim_max(ShimSlot *slots, uint32_t) {
    float most = shim_butterfly<float>(slots, [](float a, float b) { return fmaxf(a, b); });
    memcpy(slots, &most, sizeof most);
}
SHIM_INLINE float warp_sum(float v, SHIM_AT) { return shim_lane<float>(shim_exchange(~0u, v, shim_sum<float>, "warp_sum", file, line), 0); }
SHIM_INLINE int warp_sum(int v, SHIM_AT) { return shim_lane<int>(shim_exchange(~0u, v, shim_sum<int>, "warp_sum", file, line), 0); }
SHIM_INLINE float warp_max(float v, SHIM_AT) { return shim_lane<float>(shim_exchange(~0u, v, shim_max, "warp_max", file, line), 0); }
