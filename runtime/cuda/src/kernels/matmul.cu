// Matrix products with weights in the layout of the file, decoded in registers. `lanes` threads share a row of the
// result. Each adds every `lanes`-th run of 16 elements of K; shuffles add the sums of the threads.

struct NoSummand {
    DEVICE_MEMBER NoSummand at(u32, u32) const { return *this; }
    DEVICE_MEMBER float of(float sum, u32, u32) const { return sum; }
};
template <class M> struct Summand {
    const View* r;
    u32 i2, i3;
    DEVICE_MEMBER Summand at(u32 i2, u32 i3) const { return {r, i2, i3}; }
    DEVICE_MEMBER float of(float sum, u32 row, u32 column) const {
        return sum + element<M>(*r, row_of(*r, column % r->ne[1], i2 % r->ne[2], i3 % r->ne[3]), row % r->ne[0]);
    }
};

// Computes `y[:, c] = a · b[:, c]` for `C` columns from `column` on.
template <class A, class B, class Y, int C, class E>
DEVICE void columns(const View& a, const u8* weights, const View& b, const u8* x, const View& y, u8* out, u32 column, u32 lanes, const E& more) {
    u32 lane = threadIdx.x % lanes, rows = blockDim.x / lanes, k = a.ne[0];
    // All lanes of a warp run the same number of iterations.
    for (u32 first = blockIdx.x * rows; first < a.ne[1]; first += gridDim.x * rows) {
        u32 row = first + threadIdx.x / lanes;
        bool real = row < a.ne[1];
        const u8* w = weights + (u64)(real ? row : 0) * a.nb[1];
        float sums[C];
#pragma unroll
        for (int c = 0; c < C; c++) sums[c] = 0.0f;
        for (u32 at = lane * 16; real && at < k; at += lanes * 16) {
            float left[16], right[16];
            sixteen<A>(a, w, at, k, left);
#pragma unroll
            for (int c = 0; c < C; c++) {
                if (C > 1 && column + c >= b.ne[1]) continue;
                sixteen<B>(b, x + c * b.nb[1], at, k, right);
                float sum = sums[c];
#pragma unroll
                for (int j = 0; j < 16; j++) sum = fmaf(left[j], right[j], sum);
                sums[c] = sum;
            }
        }
#pragma unroll
        for (int c = 0; c < C; c++) {
            float sum = lanes_sum(sums[c], lanes);
            if (!real || lane != 0 || (C > 1 && column + c >= b.ne[1])) continue;
            sum = more.of(sum, row, column + c);
            Y::put(out + row * y.nb[0] + c * y.nb[1], &sum);
        }
    }
}

template <class A, class B, class Y, int C, class E>
DEVICE void products(const View& a, const View& b, const View& y, const u8* params, const E& more) {
    u32 lanes = ((const ProductParams*)params)->lanes;
    u32 batches = b.ne[2] * b.ne[3];
    for (u32 batch = blockIdx.z; batch < batches; batch += gridDim.z) {
        u32 i2 = batch % b.ne[2], i3 = batch / b.ne[2];
        const u8* w = row_of(a, 0, i2 / (b.ne[2] / a.ne[2]), i3 / (b.ne[3] / a.ne[3]));
        for (u32 column = blockIdx.y * C; column < b.ne[1]; column += gridDim.y * C)
            columns<A, B, Y, C>(a, w, b, row_of(b, column, i2, i3), y, row_of(y, column, i2, i3), column, lanes, more.at(i2, i3));
    }
}
template <class A, class B, class Y, int C> DEVICE void mul_mat(const View* v, const u8* params) {
    const View a = v[0], b = v[1], y = v[2];
    products<A, B, Y, C>(a, b, y, params, NoSummand());
}
template <class A, class B, class M, class Y, int C> DEVICE void mul_mat_add(const View* v, const u8* params) {
    const View a = v[0], b = v[1], y = v[3];
    Summand<M> more = {v + 2, 0, 0};
    products<A, B, Y, C>(a, b, y, params, more);
}

// Computes `y[:, slot, token] = w[ids[slot, token]] · x[:, slot, token]`; 0 for experts outside the window.
template <class A, class B, class I, class Y> DEVICE void mul_mat_id(const View* v, const u8* params, Fault* fault, u32 launch) {
    const View a = v[0], b = v[1], ids = v[2], y = v[3];
    const ProductParams p = *(const ProductParams*)params;
    u32 entries = ids.ne[0] * ids.ne[1];
    for (u32 n = blockIdx.y; n < entries; n += gridDim.y) {
        Entry entry = entry_of(ids, y, n);
        u64 expert;
        if (!find_expert_or_clear<I, Y>(a, ids, y, p, entry, fault, launch, &expert)) continue;
        const u8* x = row_of(b, entry.slot % b.ne[1], entry.token, 0);
        columns<A, B, Y, 1>(a, a.at + expert * a.nb[2], b, x, y, entry.out, 0, p.lanes, NoSummand());
    }
}
