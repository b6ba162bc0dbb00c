// Normalisation along axis 0. A block computes one row at a time.

DEVICE Place row_place(u64 row, const View& v) { return place_of(row, 1, v); }

template <class X> DEVICE float row_sum(const View& x, const u8* row, float shift, bool square) {
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < x.ne[0]; i += blockDim.x) {
        float e = element<X>(x, row, i) - shift;
        sum += square ? e * e : e;
    }
    return block_sum(sum);
}

template <class X, class Y> DEVICE void scale_row(const View& x, const u8* from, const View& y, u8* to, Affine a) {
    for (u32 i = threadIdx.x; i < x.ne[0]; i += blockDim.x) {
        float out = (element<X>(x, from, i) - a.shift) * a.factor;
        Y::put(to + i * y.nb[0], &out);
    }
}

template <class X, class Y> DEVICE void norm(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const NormParams p = *(const NormParams*)params;
    float n = (float)x.ne[0];
    for (u64 row = blockIdx.x; row < rows_of(x); row += gridDim.x) {
        Place at = row_place(row, x);
        const u8* from = address(x, at);
        float mean = p.kind == 1 ? row_sum<X>(x, from, 0.0f, false) / n : 0.0f;
        float squares = row_sum<X>(x, from, mean, true);
        scale_row<X, Y>(x, from, y, address(y, at), affine(p, mean, squares / n, squares));
    }
}

template <class X, class Y> DEVICE void norm_stats(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const NormParams p = *(const NormParams*)params;
    for (u64 row = blockIdx.x; row < rows_of(x); row += gridDim.x) {
        Place at = row_place(row, x);
        const u8* from = address(x, at);
        u8* to = address(y, at);
        float squares = row_sum<X>(x, from, 0.0f, true);
        float sum = p.kind == 1 ? row_sum<X>(x, from, 0.0f, false) : 0.0f;
        if (threadIdx.x == 0) {
            if (p.kind == 1) Y::put(to, &sum);
            Y::put(to + (p.kind == 1 ? y.nb[0] : 0), &squares);
        }
    }
}

template <class X, class S, class Y> DEVICE void norm_apply(const View* v, const u8* params) {
    const View x = v[0], stats = v[1], y = v[2];
    const NormParams p = *(const NormParams*)params;
    for (u64 row = blockIdx.x; row < rows_of(x); row += gridDim.x) {
        Place at = row_place(row, x);
        const u8* stat = address(stats, at);
        float mean = S::at(stat, 0) / p.n, squares = S::at(stat + (p.kind == 1 ? stats.nb[0] : 0), 0);
        float moment = p.kind == 1 ? fmaxf(squares / p.n - mean * mean, 0.0f) : squares / p.n;
        scale_row<X, Y>(x, address(x, at), y, address(y, at), affine(p, mean, moment, squares));
    }
}

DEVICE const u8* broadcast_row(const View& w, const Place& at) { return row_of(w, at.i[1] % w.ne[1], at.i[2] % w.ne[2], at.i[3] % w.ne[3]); }

// Row sources of a norm: a tensor, a sum over devices, a weighted sum, a norm times a tensor, or any of these plus a
// tensor. All threads of a block must call `begin` for a row; `of` then returns elements.
template <class X> struct TensorRows {
    enum { OPERANDS = 1 };
    const View* x;
    const u8* from;
    DEVICE_MEMBER void begin(const View* v, const Place& at, const NormParams*) {
        x = v;
        from = address(*v, at);
    }
    DEVICE_MEMBER float of(u32 i) const { return element<X>(*x, from, i); }
};
template <class S, class R> struct AddRows {
    enum { OPERANDS = S::OPERANDS + 1 };
    S inner;
    const View* r;
    const u8* more;
    DEVICE_MEMBER void begin(const View* v, const Place& at, const NormParams* p) {
        inner.begin(v, at, p);
        r = v + S::OPERANDS;
        more = broadcast_row(*r, at);
    }
    DEVICE_MEMBER float of(u32 i) const { return inner.of(i) + element<R>(*r, more, i % r->ne[0]); }
};

// Returns the shift and factor that normalise a row of `n` elements.
template <class S> DEVICE Affine affine_of(const S& row, u32 n, const NormParams& p) {
    float mean = 0.0f, squares = 0.0f;
    if (p.kind == 1) {
        float sum = 0.0f;
        for (u32 i = threadIdx.x; i < n; i += blockDim.x) sum += row.of(i) - 0.0f;
        mean = block_sum(sum) / (float)n;
    }
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        float e = row.of(i) - mean;
        squares += e * e;
    }
    squares = block_sum(squares);
    return affine(p, mean, squares / (float)n, squares);
}

// Rows have the length of the first view.
template <class S, class W> struct NormRows {
    enum { OPERANDS = S::OPERANDS + 1 };
    S inner;
    const View* w;
    const u8* by;
    Affine a;
    DEVICE_MEMBER void begin(const View* v, const Place& at, const NormParams* p) {
        inner.begin(v, at, p);
        w = v + S::OPERANDS;
        by = broadcast_row(*w, at);
        a = affine_of(inner, v->ne[0], p[1]);
    }
    DEVICE_MEMBER float of(u32 i) const {
        float scaled = (inner.of(i) - a.shift) * a.factor;
        return scaled * element<W>(*w, by, i % w->ne[0]);
    }
};
// The sum over `N` devices. The row of each device is read once; the sum stays in shared memory.
template <int N> struct AllReduceRows {
    enum { OPERANDS = N };
    const float* sums;
    DEVICE_MEMBER void begin(const View* v, const Place& at, const NormParams*) {
        DYN_SHARED(float, row);
        const u8* from[N];
        u64 step[N];
#pragma unroll
        for (int d = 0; d < N; d++) {
            from[d] = address(v[d], at);
            step[d] = v[d].nb[0];
        }
        // Other threads may still read the previous row.
        __syncthreads();
        for (u32 i = threadIdx.x; i < v->ne[0]; i += blockDim.x) {
            float parts[N];
#pragma unroll
            for (int d = 0; d < N; d++) parts[d] = *(const float*)(from[d] + i * step[d]);
            row[i] = SumTree<N>::sum(parts);
        }
        __syncthreads();
        sums = row;
    }
    DEVICE_MEMBER float of(u32 i) const { return sums[i]; }
};
// `x` has the parts along axis 1 and the rows along axis 2.
template <class X, class W> struct WeightedSumRows {
    enum { OPERANDS = 2 };
    const View *x, *w;
    u32 token;
    DEVICE_MEMBER void begin(const View* v, const Place& at, const NormParams*) {
        x = v;
        w = v + 1;
        // Tokens are along axis 1 or axis 2.
        token = at.i[1] + at.i[2];
    }
    DEVICE_MEMBER float of(u32 i) const {
        float sum = 0.0f;
        for (u32 s = 0; s < x->ne[1]; s++)
            sum += element<X>(*x, row_of(*x, s, token, 0), i) * element<W>(*w, row_of(*w, s % w->ne[1], token % w->ne[2], 0), i % w->ne[0]);
        return sum;
    }
};

// Computes a norm times a broadcast tensor. `K`: the normalised input is the first result. `T`: the last result receives
// the terms of the product. Eight lanes hold the 32 elements of a group.
template <class S, class W, class Y, int K, int T> DEVICE void norm_mul(const View* v, const u8* params) {
    const View w = v[S::OPERANDS], *results = v + S::OPERANDS + 1;
    const View y = results[K], kept = results[0], q = results[K + T];
    const NormParams* p = (const NormParams*)params;
    u32 n = y.ne[0], end = T ? groups_of_terms(n) * 32 : n;
    for (u64 row = blockIdx.x; row < rows_of(y); row += gridDim.x) {
        Place at = row_place(row, y);
        S x;
        x.begin(v, at, p);
        const u8* by = broadcast_row(w, at);
        u8* to = address(y, at);
        Affine a = affine_of(x, n, p[0]);
        for (u32 first = 0; first < end; first += blockDim.x * 4) {
            float e[4];
            u32 i = first + threadIdx.x * 4;
            for (u32 j = 0; j < 4; j++) {
                e[j] = 0.0f;
                if (i + j >= n) continue;
                float whole = x.of(i + j);
                if (K) F32::put(address(kept, at) + (i + j) * kept.nb[0], &whole);
                float scaled = (whole - a.shift) * a.factor;
                e[j] = scaled * element<W>(w, by, (i + j) % w.ne[0]);
                Y::put(to + (i + j) * y.nb[0], &e[j]);
            }
            if (T) put_terms(e, i / 32, row_of(q, at.i[1], at.i[2], at.i[3]), i < end);
        }
    }
}

template <class S, class Y> DEVICE void mul_sum_add(const View* v, const u8* params) {
    const View y = v[S::OPERANDS];
    for (u64 row = blockIdx.x; row < rows_of(y); row += gridDim.x) {
        Place at = row_place(row, y);
        S x;
        x.begin(v, at, (const NormParams*)params);
        for (u32 i = threadIdx.x; i < y.ne[0]; i += blockDim.x) {
            float whole = x.of(i);
            Y::put(address(y, at) + i * y.nb[0], &whole);
        }
    }
}
