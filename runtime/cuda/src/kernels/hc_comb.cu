struct CombParams {
    float eps;
    u32 iterations;
};

// Divides each group of a matrix by its sum plus `eps`. `group` and `within` are strides in bytes.
DEVICE void normalise(u8* m, u32 hc, float eps, u64 group, u64 within) {
    for (u32 g = 0; g < hc; g++) {
        float sum = 0.0f;
        for (u32 i = 0; i < hc; i++) sum += *(float*)(m + g * group + i * within);
        for (u32 i = 0; i < hc; i++) *(float*)(m + g * group + i * within) /= sum + eps;
    }
}

// A thread computes the matrix of one token in shared memory.
template <class X, class S, class B, class Y> DEVICE void hc_comb(const View* v, const u8* params) {
    const View x = v[0], scale = v[1], base = v[2], y = v[3];
    const CombParams p = *(const CombParams*)params;
    DYN_SHARED(float, shared);
    u32 hc = y.ne[0];
    for (u64 token = thread_number(); token < y.ne[2]; token += thread_count()) {
        float* m = shared + threadIdx.x * hc * hc;
        const u8* row = row_of(x, (u32)token, 0, 0);
        float factor = element<S>(scale, scale.at, 2);
        for (u32 s = 0; s < hc; s++) {
            float most = u2f(0xff800000u), sum = 0.0f;
            for (u32 i = 0; i < hc; i++) {
                u32 at = 2 * hc + s * hc + i;
                float logit = element<X>(x, row, at) * factor + element<B>(base, base.at, at);
                m[s * hc + i] = logit;
                most = fmaxf(most, logit);
            }
            for (u32 i = 0; i < hc; i++) sum += m[s * hc + i] = expf(m[s * hc + i] - most);
            for (u32 i = 0; i < hc; i++) m[s * hc + i] = m[s * hc + i] / sum + p.eps;
        }
        normalise((u8*)m, hc, p.eps, 4, 4 * hc);
        for (u32 i = 1; i < p.iterations; i++) {
            normalise((u8*)m, hc, p.eps, 4 * hc, 4);
            normalise((u8*)m, hc, p.eps, 4, 4 * hc);
        }
        for (u32 s = 0; s < hc; s++)
            for (u32 i = 0; i < hc; i++) Y::put(row_of(y, s, (u32)token, 0) + i * y.nb[0], &m[s * hc + i]);
    }
}
