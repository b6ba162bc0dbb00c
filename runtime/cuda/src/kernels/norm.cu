// Normalisation along axis 0. A block computes one row at a time. A thread has four adjacent elements of every `4 blockDim.x`, and
// adds them in the order of their indices.

// True if a row can be read and written in fours: contiguous aligned f32, `n` elements.
template <class X> DEVICE bool in_fours(const View& x, const u8* row, u32 n) {
    return IsFloat<X>::YES && x.nb[0] == 4 && n % 4 == 0 && x.ne[0] >= n && (u64)row % 16 == 0;
}
// Reads elements `i` to `i + 4` of a row of `n` elements, which is repeated if it is shorter; 0 after the end.
template <bool FOURS, class X> DEVICE void four(const View& x, const u8* row, u32 i, u32 n, float* e) {
    if (FOURS) {
        float4 all = {0.0f, 0.0f, 0.0f, 0.0f};
        if (i < n) all = *(const float4*)(row + (u64)i * 4);
        e[0] = all.x;
        e[1] = all.y;
        e[2] = all.z;
        e[3] = all.w;
        return;
    }
#pragma unroll 1
    for (u32 j = 0; j < 4; j++) {
        float own = i + j < n ? element<X>(x, row, wrapped(i + j, x.ne[0])) : 0.0f;
        e[0] = j == 0 ? own : e[0];
        e[1] = j == 1 ? own : e[1];
        e[2] = j == 2 ? own : e[2];
        e[3] = j == 3 ? own : e[3];
    }
}
template <bool FOURS, class Y> DEVICE void put_four(const View& y, u8* row, u32 i, u32 n, const float* e) {
    if (FOURS) {
        float4 all = {e[0], e[1], e[2], e[3]};
        if (i < n) *(float4*)(row + (u64)i * 4) = all;
        return;
    }
    for (u32 j = 0; j < 4 && i + j < n; j++) Y::put(row + (u64)(i + j) * y.nb[0], e + j);
}

DEVICE Place row_place(u64 row, const View& v) { return place_of(row, 1, v); }

template <class X> DEVICE float row_sum(const View& x, const u8* row, float shift, bool square) {
    float sum = 0.0f;
    u32 n = x.ne[0];
    for (u32 i = threadIdx.x * 4; i < n; i += blockDim.x * 4) {
        float all[4];
        four<false, X>(x, row, i, n, all);
        for (u32 j = 0; j < 4 && i + j < n; j++) {
            float e = all[j] - shift;
            sum += square ? e * e : e;
        }
    }
    return block_sum(sum);
}

template <class X, class Y> DEVICE void scale_row(const View& x, const u8* from, const View& y, u8* to, Affine a) {
    for (u32 i = threadIdx.x * 4; i < x.ne[0]; i += blockDim.x * 4)
        for (u32 j = i; j < i + 4 && j < x.ne[0]; j++) {
            float out = (element<X>(x, from, j) - a.shift) * a.factor;
            Y::put(to + j * y.nb[0], &out);
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
    // True if rows of `n` elements can be read in fours.
    DEVICE_MEMBER bool fours(u32 n) const { return in_fours<X>(*x, from, n); }
    // Reads elements `i` to `i + 4`; 0 after the end of the row, which has `n` elements.
    template <bool FOURS> DEVICE_MEMBER void four_of(u32 i, u32 n, float* e) const { four<FOURS, X>(*x, from, i, n, e); }
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
    DEVICE_MEMBER bool fours(u32 n) const { return inner.fours(n) && in_fours<R>(*r, more, n); }
    template <bool FOURS> DEVICE_MEMBER void four_of(u32 i, u32 n, float* e) const {
        float other[4];
        inner.template four_of<FOURS>(i, n, e);
        four<FOURS, R>(*r, more, i, n, other);
#pragma unroll
        for (u32 j = 0; j < 4; j++) e[j] += other[j];
    }
};

// Returns the sum of a thread's elements minus `mean`, or of their squares.
template <bool FOURS, class S> DEVICE float own_sum(const S& row, u32 n, float mean, bool square) {
    float sum = 0.0f;
#pragma unroll FOURS ? 4 : 1
    for (u32 i = threadIdx.x * 4; i < n; i += blockDim.x * 4) {
        float all[4];
        row.template four_of<FOURS>(i, n, all);
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            float e = all[j] - mean;
            if (FOURS || i + j < n) sum += square ? e * e : e;
        }
    }
    return sum;
}

// Returns the shift and factor that normalise a row of `n` elements.
template <class S> DEVICE Affine affine_of(const S& row, u32 n, const NormParams& p, bool fours) {
    float mean = 0.0f, squares = 0.0f;
#pragma unroll 1
    for (u32 pass = p.kind == 1 ? 0 : 1; pass < 2; pass++) {
        float sum = block_sum(fours ? own_sum<true>(row, n, mean, pass) : own_sum<false>(row, n, mean, pass));
        if (pass) squares = sum;
        else mean = sum / (float)n;
    }
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
        a = affine_of(inner, v->ne[0], p[1], inner.fours(v->ne[0]));
    }
    DEVICE_MEMBER float of(u32 i) const {
        float scaled = (inner.of(i) - a.shift) * a.factor;
        return scaled * element<W>(*w, by, i % w->ne[0]);
    }
    DEVICE_MEMBER bool fours(u32 n) const { return inner.fours(n) && in_fours<W>(*w, by, n); }
    template <bool FOURS> DEVICE_MEMBER void four_of(u32 i, u32 n, float* e) const {
        float other[4];
        inner.template four_of<FOURS>(i, n, e);
        four<FOURS, W>(*w, by, i, n, other);
#pragma unroll
        for (u32 j = 0; j < 4; j++) e[j] = (e[j] - a.shift) * a.factor * other[j];
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
    DEVICE_MEMBER bool fours(u32 n) const { return n % 4 == 0; }
    template <bool FOURS> DEVICE_MEMBER void four_of(u32 i, u32 n, float* e) const {
        if (FOURS && i < n) {
            float4 all = *(const float4*)(sums + i);
            e[0] = all.x;
            e[1] = all.y;
            e[2] = all.z;
            e[3] = all.w;
            return;
        }
        for (u32 j = 0; j < 4; j++) e[j] = i + j < n ? sums[i + j] : 0.0f;
    }
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
    // The parts of a row are alike. Weights may be one number, which is repeated.
    DEVICE_MEMBER bool fours(u32 n) const { return in_fours<X>(*x, row_of(*x, 0, token, 0), n) && x->nb[1] % 16 == 0; }
    template <bool FOURS> DEVICE_MEMBER void four_of(u32 i, u32 n, float* e) const {
#pragma unroll
        for (u32 j = 0; j < 4; j++) e[j] = 0.0f;
        for (u32 s = 0; s < x->ne[1]; s++) {
            float part[4], by[4];
            four<FOURS, X>(*x, row_of(*x, s, token, 0), i, n, part);
            const u8* weights = row_of(*w, s % w->ne[1], token % w->ne[2], 0);
            if (w->ne[0] == 1) by[0] = by[1] = by[2] = by[3] = element<W>(*w, weights, 0);
            else four<false, W>(*w, weights, i, n, by);
#pragma unroll
            for (u32 j = 0; j < 4; j++) e[j] += part[j] * by[j];
        }
    }
};

// Computes a norm times a broadcast tensor. `K`: the normalised input is the first result. `T`: the last result receives
// the terms of the product. Eight lanes hold the 32 elements of a group. Rows are read in fours if all tensors allow it.
template <class S, class W, class Y, int K, int T> DEVICE void norm_mul(const View* v, const u8* params) {
    const View w = v[S::OPERANDS], *results = v + S::OPERANDS + 1, y = results[K], *kept = results, *q = results + K + T;
    const NormParams* p = (const NormParams*)params;
    u32 n = y.ne[0], end = T ? groups_of_terms(n) * 32 : n, step = blockDim.x * 4;
    for (u64 row = blockIdx.x; row < rows_of(y); row += gridDim.x) {
        Place at = row_place(row, y);
        S x;
        x.begin(v, at, p);
        const u8 *by = broadcast_row(w, at), *made = T ? row_of(*q, at.i[1], at.i[2], at.i[3]) : nullptr;
        u8 *to = address(y, at), *copy = K ? address(*kept, at) : nullptr;
        bool fours = x.fours(n) && in_fours<W>(w, by, n) && in_fours<Y>(y, to, n) && (!K || in_fours<F32>(*kept, copy, n));
        // The factors of the next step are loaded one step earlier, those of the first before the sums.
        float next[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (fours) four<true, W>(w, by, threadIdx.x * 4, n, next);
        Affine a = affine_of(x, n, p[0], fours);
#pragma unroll 1
        for (u32 i = threadIdx.x * 4; i - threadIdx.x * 4 < end; i += step) {
            float whole[4], e[4];
            if (fours) {
#pragma unroll
                for (u32 j = 0; j < 4; j++) e[j] = next[j];
                four<true, W>(w, by, i + step, n, next);
                x.template four_of<true>(i, n, whole);
            } else {
                x.template four_of<false>(i, n, whole);
                four<false, W>(w, by, i, n, e);
            }
#pragma unroll
            for (u32 j = 0; j < 4; j++) e[j] = i + j < n ? (whole[j] - a.shift) * a.factor * e[j] : 0.0f;
            if (fours) {
                if (K) put_four<true, F32>(*kept, copy, i, n, whole);
                put_four<true, Y>(y, to, i, n, e);
            } else {
                if (K) put_four<false, F32>(*kept, copy, i, n, whole);
                put_four<false, Y>(y, to, i, n, e);
            }
            if (T) put_terms(e, i / 32, made, i < end);
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
