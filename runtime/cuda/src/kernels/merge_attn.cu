// Joins attention over parts of the cells. A block computes one row of a head: all threads add the weights of the parts in
// order, then each thread adds the values of its own columns in the same order.
//
// Shared memory holds the log-sum-exp of each part, later its weight. `N` is 1 if the denominator has a sink.
template <class X, class S, class Y, int N> DEVICE void merge_attn(const View* v) {
    DYN_SHARED(float, weights);
    const View x = v[0], y = v[1 + N];
    const float none = u2f(0xff800000u);
    u32 parts = x.ne[3], dv = y.ne[0];
    for (u64 n = blockIdx.x; n < rows_of(y); n += gridDim.x) {
        u32 head = (u32)(n % y.ne[1]), token = (u32)(n / y.ne[1]);
        __syncthreads();
        for (u32 p = threadIdx.x; p < parts; p += blockDim.x) weights[p] = element<X>(x, row_of(x, head, token, p), dv);
        __syncthreads();
        float sink = N ? S::at(v[N].at + head * v[N].nb[0], 0) : none, top = sink, total = 0.0f;
        for (u32 p = 0; p < parts; p++) top = fmaxf(top, weights[p]);
        __syncthreads();
        for (u32 p = threadIdx.x; p < parts; p += blockDim.x) weights[p] = weights[p] == none ? 0.0f : expf(weights[p] - top);
        __syncthreads();
        for (u32 p = 0; p < parts; p++) total += weights[p];
        if (sink != none) total += expf(sink - top);
        for (u32 i = threadIdx.x; i < dv; i += blockDim.x) {
            float out = 0.0f;
#pragma unroll 4
            for (u32 p = 0; p < parts; p++) {
                float e = element<X>(x, row_of(x, head, token, p), i);
                // A part without visible cells must not add NaN.
                if (weights[p] != 0.0f) out = fmaf(weights[p], e, out);
            }
            out = total > 0.0f ? out / total : 0.0f;
            Y::put(row_of(y, head, token, 0) + i * y.nb[0], &out);
        }
    }
}
