// Tensor views and their elements. `nb` counts bytes: along axis 0 between blocks, along other axes between rows.

struct View {
    u8* at;
    u32 ne[4];
    u64 nb[4];
};

struct Fault {
    u32 set;
    u32 launch;
    i64 index;
    i64 bound;
};

DEVICE u8* row_of(const View& v, u32 i1, u32 i2, u32 i3) {
    return v.at + i1 * v.nb[1] + i2 * v.nb[2] + i3 * v.nb[3];
}

DEVICE u64 rows_of(const View& v) { return (u64)v.ne[1] * v.ne[2] * v.ne[3]; }

// The index of the thread in the grid, and the number of threads, which is the stride of element loops.
DEVICE u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE u64 thread_count() { return (u64)gridDim.x * blockDim.x; }

struct Place {
    u32 i[4];
};

// Returns the indices of element or block `n`. A row has `n0`.
DEVICE Place place_of(u64 n, u32 n0, const View& v) {
    Place p;
    if (n >> 32) {
        p.i[0] = (u32)(n % n0);
        n /= n0;
        p.i[1] = (u32)(n % v.ne[1]);
        n /= v.ne[1];
        p.i[2] = (u32)(n % v.ne[2]);
        p.i[3] = (u32)(n / v.ne[2]);
        return p;
    }
    u32 m = (u32)n;
    p.i[0] = m % n0;
    m /= n0;
    p.i[1] = m % v.ne[1];
    m /= v.ne[1];
    p.i[2] = m % v.ne[2];
    p.i[3] = m / v.ne[2];
    return p;
}

DEVICE u8* address(const View& v, const Place& p) {
    return row_of(v, p.i[1], p.i[2], p.i[3]) + p.i[0] * v.nb[0];
}

// Records an index out of range, unless one was recorded before.
DEVICE void report(Fault* fault, u32 launch, i64 index, i64 bound) {
    if (atomicCAS(&fault->set, 0u, 1u) == 0u) {
        fault->launch = launch;
        fault->index = index;
        fault->bound = bound;
    }
}

// Element types. A block has `LEN` elements and `BYTES` bytes, aligned to `UNIT` bytes. `at` reads an element, `put`
// writes a block.
struct F32 {
    enum { LEN = 1, BYTES = 4, UNIT = 4 };
    DEVICE float at(const u8* b, u32) { return *(const float*)b; }
    DEVICE void put(u8* b, const float* x) { *(float*)b = x[0]; }
};
struct F16 {
    enum { LEN = 1, BYTES = 2, UNIT = 2 };
    DEVICE float at(const u8* b, u32) { return h2f(*(const u16*)b); }
    DEVICE void put(u8* b, const float* x) { *(u16*)b = f2h(x[0]); }
};
struct Bf16 {
    enum { LEN = 1, BYTES = 2, UNIT = 2 };
    DEVICE float at(const u8* b, u32) { return bf2f(*(const u16*)b); }
    DEVICE void put(u8* b, const float* x) { *(u16*)b = f2bf(x[0]); }
};
// OCP FP8 E4M3: subnormal numbers are multiples of 2^-9, and 0x7f is NaN.
struct F8E4M3 {
    enum { LEN = 1, BYTES = 1, UNIT = 1 };
    DEVICE float at(const u8* b, u32) {
        u32 exponent = (*b >> 3) & 15u, mantissa = *b & 7u;
        float x = exponent == 0 ? (float)mantissa * u2f(118u << 23) : u2f((exponent + 120u) << 23 | mantissa << 20);
        if ((*b & 0x7fu) == 0x7fu) x = u2f(0x7fc00000u);
        return *b < 128 ? x : -x;
    }
};
struct F64 {
    enum { LEN = 1, BYTES = 8, UNIT = 8 };
    DEVICE float at(const u8* b, u32) { return (float)*(const double*)b; }
};
struct I8 {
    enum { LEN = 1, BYTES = 1, UNIT = 1 };
    DEVICE i64 integer(const u8* b) { return *(const i8*)b; }
};
struct I16 {
    enum { LEN = 1, BYTES = 2, UNIT = 2 };
    DEVICE i64 integer(const u8* b) { return *(const i16*)b; }
};
struct I32 {
    enum { LEN = 1, BYTES = 4, UNIT = 4 };
    DEVICE i64 integer(const u8* b) { return *(const i32*)b; }
    DEVICE void put_integer(u8* b, i64 x) { *(i32*)b = (i32)x; }
};
struct I64 {
    enum { LEN = 1, BYTES = 8, UNIT = 8 };
    DEVICE i64 integer(const u8* b) { return *(const i64*)b; }
    DEVICE void put_integer(u8* b, i64 x) { *(i64*)b = x; }
};

template <class T> DEVICE float element(const View& v, const u8* row, u32 i) {
    return T::at(row + (u64)(i / T::LEN) * v.nb[0], i % T::LEN);
}

// `at` is 16-byte aligned.
DEVICE void sixteen_floats(const uint4* at, float* out) {
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        uint4 four = at[j];
        out[4 * j] = u2f(four.x);
        out[4 * j + 1] = u2f(four.y);
        out[4 * j + 2] = u2f(four.z);
        out[4 * j + 3] = u2f(four.w);
    }
}

template <class T> struct IsFloat { enum { YES = 0 }; };
template <> struct IsFloat<F32> { enum { YES = 1 }; };

// Decodes elements `from` to `from + 16` of a row of `n` elements; 0 after the end of the row. `from` is a multiple of
// 16.
template <class T> DEVICE void sixteen(const View& v, const u8* row, u32 from, u32 n, float* out) {
    if (T::LEN > 1) {
        const u8* block = row + (u64)(from / T::LEN) * v.nb[0];
        // With this mask, the compiler computes the scale once for all sixteen elements.
        u32 i = from % T::LEN & ~15u;
#pragma unroll
        for (u32 j = 0; j < 16; j++) out[j] = T::at(block, i + j);
    } else if (from + 16 <= n) {
        const u8* at = row + (u64)from * v.nb[0];
        if (IsFloat<T>::YES && v.nb[0] == 4 && (u64)at % 16 == 0) {
            sixteen_floats((const uint4*)at, out);
            return;
        }
#pragma unroll
        for (u32 j = 0; j < 16; j++) out[j] = T::at(at + j * v.nb[0], 0);
    } else {
#pragma unroll
        for (u32 j = 0; j < 16; j++) out[j] = from + j < n ? T::at(row + (u64)(from + j) * v.nb[0], 0) : 0.0f;
    }
}

// Copies a block in units of its alignment.
template <class T> DEVICE void copy_block(u8* to, const u8* from) {
    if (T::UNIT >= 8) {
        for (u32 i = 0; i < T::BYTES / 8; i++) ((u64*)to)[i] = ((const u64*)from)[i];
    } else if (T::UNIT == 4) {
        for (u32 i = 0; i < T::BYTES / 4; i++) ((u32*)to)[i] = ((const u32*)from)[i];
    } else if (T::UNIT == 2) {
        for (u32 i = 0; i < T::BYTES / 2; i++) ((u16*)to)[i] = ((const u16*)from)[i];
    } else {
        for (u32 i = 0; i < T::BYTES; i++) to[i] = from[i];
    }
}

// Returns `i % n`. Most indices are in range.
DEVICE u32 wrapped(u32 i, u32 n) { return i < n ? i : i % n; }

// Returns a product that is rounded before any addition (no FMA contraction).
DEVICE float mul_rn(float a, float b) {
#ifdef __CUDACC__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

// Returns the sum over `width` adjacent lanes (a power of two up to 32). All lanes must call it.
DEVICE float lanes_sum(float x, u32 width) {
    if (width == 32) return warp_sum(x);
    for (u32 o = width / 2; o > 0; o /= 2) x += __shfl_xor_sync(0xffffffffu, x, o);
    return x;
}

// Returns the sum over a block of whole warps. All threads must call it.
DEVICE float block_sum(float x) {
    SHARED(float, parts, 32);
    x = warp_sum(x);
    u32 warps = blockDim.x / 32;
    if (warps == 1) return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0.0f;
    for (u32 i = 0; i < warps; i++) sum += parts[i];
    return sum;
}

// Returns the maximum over a block. All threads must call it.
DEVICE float block_max(float x) {
    SHARED(float, parts, 32);
    x = warp_max(x);
    u32 warps = blockDim.x / 32;
    if (warps == 1) return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    float most = parts[0];
    for (u32 i = 1; i < warps; i++) most = fmaxf(most, parts[i]);
    return most;
}
