// The largest logits of each row. A block writes the largest of its part of a row, largest first.

enum { MAX_BEST = 64 };

struct BestParams {
    u32 first; // the token of the first logit
};

struct BestHeader {
    u32 count; // the number of logits that a block writes, written by the host
    u32 unused[3];
};

// A row has a flag of each block, which is 1 if a logit is NaN or positive infinity; then the largest logit of each block,
// then the second largest, and so on.
enum { ROW_WORDS = 1 + MAX_BEST };

// Returns a number that is larger for a larger logit, and then for a smaller token. It is never 0 for a logit of a model.
DEVICE u64 best_order(float logit, u32 token) {
    u32 bits = f2u(logit);
    u32 key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (u64)key << 32 | ~token;
}

// Returns the largest number of the block in every thread. `shared` has a number per warp.
DEVICE u64 block_largest(u64 own, u64* shared) {
    for (int o = 16; o > 0; o >>= 1) {
        u32 high = __shfl_xor_sync(0xffffffffu, (u32)(own >> 32), o);
        u32 low = __shfl_xor_sync(0xffffffffu, (u32)own, o);
        u64 other = (u64)high << 32 | low;
        own = other > own ? other : own;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = own;
    __syncthreads();
    for (u32 w = 0; w < blockDim.x / 32; w++) own = shared[w] > own ? shared[w] : own;
    return own;
}

template <class X> DEVICE void best_logits(const View* v, const u8* params) {
    SHARED(u64, warps, 32);
    const View x = v[0];
    const BestParams p = *(const BestParams*)params;
    const BestHeader* header = (const BestHeader*)v[1].at;
    u64* rows = (u64*)(v[1].at + sizeof(BestHeader));
    u32 n = x.ne[0], each = (n + gridDim.x - 1) / gridDim.x;
    u32 start = min(blockIdx.x * each, n), end = min(start + each, n);
    u32 count = min(header->count, (u32)MAX_BEST);
    for (u32 row = blockIdx.y; row < x.ne[1]; row += gridDim.y) {
        const u8* from = row_of(x, row, 0, 0);
        u64* to = rows + (u64)row * gridDim.x * ROW_WORDS + blockIdx.x;
        u64 own = 0;
        bool unusable = false;
        for (u32 i = start + threadIdx.x; i < end; i += blockDim.x) {
            float logit = element<X>(x, from, i);
            unusable |= !(logit < u2f(0x7f800000u));
            u64 order = best_order(logit, p.first + i);
            own = order > own ? order : own;
        }
        unusable = __syncthreads_or(unusable);
        if (threadIdx.x == 0) to[0] = unusable;
        for (u32 k = 0; k < count; k++) {
            u64 best = block_largest(own, warps);
            if (threadIdx.x == 0) to[(k + 1) * gridDim.x] = best;
            if (own != best || best == 0) continue;
            own = 0;
            for (u32 i = start + threadIdx.x; i < end; i += blockDim.x) {
                u64 order = best_order(element<X>(x, from, i), p.first + i);
                own = order < best && order > own ? order : own;
            }
        }
    }
}
