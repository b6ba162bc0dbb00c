// Sums the weighted expert products of a token in slot order. A block computes the same rows of all experts.

struct SumExpertsParams {
    ProductParams product;
    u32 each; // groups of rows that a block computes at a time
};

// `E` adds values for the expert (axis 1 of its tensors), `M` adds tensors to the sum. `x` has one column, or one per
// slot. Blocks have up to `MOST` threads. The tokens of the result are along axis 1 or axis 2.
template <class P, class E, class M, class I, class W, class Y, int R, int MOST>
DEVICE void sum_experts(const View* v, const u8* params, Fault* fault, u32 launch) {
    SHARED(float, parts, 128 * R);
    const View a = v[0], q = v[1], ids = v[2], w = v[3 + E::OPERANDS], y = v[4 + E::OPERANDS + M::OPERANDS];
    const SumExpertsParams p = *(const SumExpertsParams*)params;
    u32 lanes = p.product.lanes, lane = threadIdx.x % lanes, team = threadIdx.x / lanes, slot = team / p.each;
    u32 slots = ids.ne[0], pairs = pairs_of(a), rows = a.ne[1], once = p.each * R;
    for (u32 token = blockIdx.y; token < ids.ne[1]; token += gridDim.y) {
        u64 expert = 0;
        // Threads past the last slot only join shuffles and barriers.
        bool told = blockIdx.x == 0 && lane == 0 && team % p.each == 0;
        bool real = slot < slots && find_expert<I>(a, ids, p.product, slot, token, told, fault, launch, &expert);
        const u8* column = real ? row_of(q, slot % q.ne[1], token, 0) : nullptr;
        Column of_expert = {(u32)expert, 0, 0}, of_token = {y.ne[1] == 1 ? 0 : token, y.ne[1] == 1 ? token : 0, 0};
        for (u32 first = blockIdx.x * once; first < rows; first += gridDim.x * once) {
            u32 mine = first + team % p.each * R;
            PlaneRow at[R];
            float sums[R];
#pragma unroll
            for (int r = 0; r < R; r++) {
                at[r] = plane_row<P>(a, (real ? expert : 0) * rows + min(mine + r, rows - 1));
                sums[r] = 0.0f;
            }
            if (real) add_pairs<P, R>(at, pairs, column, lanes, sums);
#pragma unroll
            for (int r = 0; r < R; r++) {
                float sum = lanes_sum(sums[r], lanes);
                u32 row = min(mine + r, rows - 1);
                if (slot >= slots || lane != 0) continue;
                float part = real ? E::of(v + 3, sum, row, of_expert) : 0.0f;
                parts[team * R + r] = part * element<W>(w, row_of(w, slot % w.ne[1], token % w.ne[2], 0), row % w.ne[0]);
            }
            __syncthreads();
            u32 row = first + threadIdx.x;
            if (threadIdx.x < once && row < rows) {
                float sum = 0.0f;
                for (u32 s = 0; s < slots; s++) sum += parts[s * once + threadIdx.x];
                sum = M::of(v + 4 + E::OPERANDS, sum, row, of_token);
                Y::put(row_of(y, of_token.c, of_token.i2, 0) + (u64)row * y.nb[0], &sum);
            }
            __syncthreads();
        }
    }
}
