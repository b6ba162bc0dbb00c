// In the checked build, the compiler calls these hooks before every load and store of kernel code. They report to the
// engine, except accesses to the thread's own stack and loads of constants.

#define SHIM_HOOK extern "C" __attribute__((no_sanitize("thread"), noinline, used)) void
#define SHIM_ACCESS(p, n, kind)                                                                            \
    uintptr_t shim_frame_ = (uintptr_t)__builtin_frame_address(0);                                         \
    bool shim_constant_ = (uintptr_t)(p) >= (uintptr_t)tpc_image[0] && (uintptr_t)(p) < (uintptr_t)tpc_image[1]; \
    if (((uintptr_t)(p) ^ shim_frame_) >= SHIM_STACK && !(shim_constant_ && !((kind) & SHIM_STORE)))         \
        tpc_calls.access((ShimThread *)((shim_frame_ | (SHIM_STACK - 1)) + 1 - SHIM_HEAD), p, n, kind, __builtin_return_address(0));
#define SHIM_SIZE(n)                                                                    \
    SHIM_HOOK __tsan_read##n(void *p) { SHIM_ACCESS(p, n, SHIM_LOAD) }                  \
    SHIM_HOOK __tsan_write##n(void *p) { SHIM_ACCESS(p, n, SHIM_STORE) }                \
    SHIM_HOOK __tsan_volatile_read##n(void *p) { SHIM_ACCESS(p, n, SHIM_LOAD) }         \
    SHIM_HOOK __tsan_volatile_write##n(void *p) { SHIM_ACCESS(p, n, SHIM_STORE) }       \
    SHIM_HOOK __tsan_unaligned_read##n(void *p) { SHIM_ACCESS(p, n, SHIM_LOAD | 32) }   \
    SHIM_HOOK __tsan_unaligned_write##n(void *p) { SHIM_ACCESS(p, n, SHIM_STORE | 32) } \
    SHIM_HOOK __tsan_unaligned_volatile_read##n(void *p) { SHIM_ACCESS(p, n, SHIM_LOAD | 32) }   \
    SHIM_HOOK __tsan_unaligned_volatile_write##n(void *p) { SHIM_ACCESS(p, n, SHIM_STORE | 32) } \
    SHIM_HOOK __tsan_read_write##n(void *p) { SHIM_ACCESS(p, n, SHIM_LOAD | SHIM_STORE) } \
    SHIM_HOOK __tsan_unaligned_read_write##n(void *p) { SHIM_ACCESS(p, n, SHIM_LOAD | SHIM_STORE | 32) }
SHIM_SIZE(1)
SHIM_SIZE(2)
SHIM_SIZE(4)
SHIM_SIZE(8)
SHIM_SIZE(16)
SHIM_HOOK __tsan_read_range(void *p, unsigned long n) { SHIM_ACCESS(p, (uint32_t)n, SHIM_LOAD | 32) }
SHIM_HOOK __tsan_write_range(void *p, unsigned long n) { SHIM_ACCESS(p, (uint32_t)n, SHIM_STORE | 32) }
SHIM_HOOK __tsan_func_entry(void *) {}
SHIM_HOOK __tsan_func_exit() {}
SHIM_HOOK __tsan_init() {}

// A misaligned pointer, as the compiler reports it.
struct ShimMismatch {
    const char *file;
    uint32_t line, column;
    void *type;
    unsigned char log2_alignment, kind;
};
SHIM_HOOK __ubsan_handle_type_mismatch_v1(ShimMismatch *of, void *p) {
    ShimSite site{"access", of->file, of->line};
    tpc_calls.misaligned(shim_thread(), &site, p, 1u << of->log2_alignment);
}
