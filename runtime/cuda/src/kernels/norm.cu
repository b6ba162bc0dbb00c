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
