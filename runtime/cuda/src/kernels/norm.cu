// Normalisation over axis 0: a block of threads for a row at a time.

struct NormParams {
    u32 kind; // 0 RMS, 1 layer, 2 L2
    float eps;
    float n; // elements of a whole row, for statistics of parts
};

struct Affine {
    float shift, factor;
};

DEVICE Affine affine(const NormParams& p, float mean, float moment, float squares) {
    Affine out;
    out.shift = p.kind == 1 ? mean : 0.0f;
    out.factor = p.kind == 2 ? 1.0f / fmaxf(sqrtf(squares), p.eps) : 1.0f / sqrtf(moment + p.eps);
    return out;
}

DEVICE Place row_place(u64 row, const View& v) { return place_of(row, 1, v); }

template <class X> DEVICE float row_sum(const View& x, const u8* row, float shift, bool square) {
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < x.ne[0]; i += blockDim.x) {
        float e = element<X>(x, row, i) - shift;
        sum += square ? e * e : e;
    }
    return block_sum(sum);
}

template <class X, class Y> DEVICE void scaled(const View& x, const u8* from, const View& y, u8* to, Affine a) {
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
        scaled<X, Y>(x, from, y, address(y, at), affine(p, mean, squares / n, squares));
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
        scaled<X, Y>(x, address(x, at), y, address(y, at), affine(p, mean, moment, squares));
    }
}

// A norm times a tensor that repeats, where `T` says so with the terms of the result, too: eight lanes have 32 elements.
template <class X, class W, class Y, int T> DEVICE void norm_mul(const View* v, const u8* params) {
    const View x = v[0], w = v[1], y = v[2], q = v[T ? 3 : 2];
    const NormParams p = *(const NormParams*)params;
    u32 n = x.ne[0], end = T ? groups_of_terms(n) * 32 : n;
    for (u64 row = blockIdx.x; row < rows_of(x); row += gridDim.x) {
        Place at = row_place(row, x);
        const u8* from = address(x, at);
        const u8* by = row_of(w, at.i[1] % w.ne[1], at.i[2] % w.ne[2], at.i[3] % w.ne[3]);
        u8* to = address(y, at);
        float mean = p.kind == 1 ? row_sum<X>(x, from, 0.0f, false) / (float)n : 0.0f;
        float squares = row_sum<X>(x, from, mean, true);
        Affine a = affine(p, mean, squares / (float)n, squares);
        for (u32 first = 0; first < end; first += blockDim.x * 4) {
            float e[4];
            u32 i = first + threadIdx.x * 4;
            for (u32 j = 0; j < 4; j++) {
                e[j] = 0.0f;
                if (i + j >= n) continue;
                float scaled = (element<X>(x, from, i + j) - a.shift) * a.factor;
                e[j] = scaled * element<W>(w, by, (i + j) % w.ne[0]);
                Y::put(to + (i + j) * y.nb[0], &e[j]);
            }
            if (T) put_terms(e, i / 32, row_of(q, at.i[1], at.i[2], at.i[3]), i < end);
        }
    }
}
