DEVICE float softplus_of(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

// Computes `y[c, t, s] = Σ x[t + k, c, s] · taps[k, c]`.
template <class X, class W, class Y> DEVICE void ssm_conv(const View* v) {
    const View x = v[0], taps = v[1], y = v[2];
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        const u8* seen = row_of(x, at.i[0], at.i[2], 0);
        const u8* row = row_of(taps, at.i[0], 0, 0);
        float sum = 0.0f;
        for (u32 k = 0; k < taps.ne[0]; k++) sum += element<X>(x, seen, at.i[1] + k) * element<W>(taps, row, k);
        Y::put(address(y, at), &sum);
    }
}

struct RecurrentParams {
    u32 lanes; // threads that share a row of the state
    u32 ids;   // 1 if the cells are given by ids
};

// Each row of the state, one per element of a head, is an independent recurrence, computed in the memory of the new
// state.
template <class X, class T, class B, class C, class I, class Y>
DEVICE void ssm_scan(const View* v, const u8* params, Fault* fault, u32 launch) {
    const RecurrentParams p = *(const RecurrentParams*)params;
    const View from = v[0], x = v[1], dt = v[2], a = v[3], b = v[4], c = v[5];
    const View y = v[p.ids ? 7 : 6], to = v[p.ids ? 8 : 7];
    u32 size = from.ne[0], head_dim = x.ne[0], heads = x.ne[1], tokens = x.ne[2], per_group = heads / max(b.ne[1], 1u);
    u32 lane = threadIdx.x % p.lanes;
    u64 rows = (u64)head_dim * heads * x.ne[3], at_once = thread_count() / p.lanes;
    u64 first = thread_number() / 32 * 32 / p.lanes, within = threadIdx.x % 32 / p.lanes;
    for (u64 start = first; start < rows; start += at_once) {
        bool real = start + within < rows;
        u64 row = real ? start + within : 0;
        u32 d = (u32)(row % head_dim), h = (u32)(row / head_dim % heads), s = (u32)(row / head_dim / heads);
        i64 cell = p.ids ? I::integer(v[6].at + s * v[6].nb[0]) : (i64)s;
        if (cell < 0 || cell >= (i64)from.ne[3]) {
            if (real && lane == 0) report(fault, launch, cell, from.ne[3]);
            cell = 0;
        }
        const u8* old = row_of(from, d, h, (u32)cell);
        u8* state = row_of(to, d, h, s);
        if (real)
            for (u32 i = lane; i < size; i += p.lanes) *(float*)(state + i * to.nb[0]) = *(const float*)(old + i * from.nb[0]);
        for (u32 t = 0; t < tokens; t++) {
            float sum = 0.0f;
            if (real) {
                float delta = softplus_of(element<T>(dt, row_of(dt, t, s, 0), h));
                float input = element<X>(x, row_of(x, h, t, s), d) * delta;
                const u8* bs = row_of(b, h / per_group, t, s);
                const u8* cs = row_of(c, h / per_group, t, s);
                const u8* as = row_of(a, h, 0, 0);
                for (u32 i = lane; i < size; i += p.lanes) {
                    float decay = expf(delta * element<F32>(a, as, a.ne[0] == 1 ? 0 : i));
                    float* e = (float*)(state + i * to.nb[0]);
                    float next = *e * decay + element<B>(b, bs, i) * input;
                    *e = next;
                    sum += next * element<C>(c, cs, i);
                }
            }
            sum = lanes_sum(sum, p.lanes);
            if (real && lane == 0) Y::put(row_of(y, h, t, s) + d * y.nb[0], &sum);
        }
    }
}

// The gated delta rule. Threads divide the work as in `ssm_scan`.
template <class Q, class K, class X, class G, class B, class Y> DEVICE void gated_delta_net(const View* v, const u8* params) {
    const RecurrentParams p = *(const RecurrentParams*)params;
    const View q = v[0], k = v[1], x = v[2], g = v[3], beta = v[4], from = v[5], y = v[6], to = v[7];
    u32 size = q.ne[0], dv = x.ne[0], heads = x.ne[1], tokens = x.ne[2];
    u32 lane = threadIdx.x % p.lanes;
    float scale = 1.0f / sqrtf((float)size);
    u64 rows = (u64)dv * heads * x.ne[3], at_once = thread_count() / p.lanes;
    u64 first = thread_number() / 32 * 32 / p.lanes, within = threadIdx.x % 32 / p.lanes;
    for (u64 start = first; start < rows; start += at_once) {
        bool real = start + within < rows;
        u64 row = real ? start + within : 0;
        u32 j = (u32)(row % dv), h = (u32)(row / dv % heads), s = (u32)(row / dv / heads);
        const u8* old = row_of(from, j, h, s);
        u8* state = row_of(to, j, h, s);
        if (real)
            for (u32 i = lane; i < size; i += p.lanes) *(float*)(state + i * to.nb[0]) = *(const float*)(old + i * from.nb[0]);
        for (u32 t = 0; t < tokens; t++) {
            const u8* qs = row_of(q, h % q.ne[1], t, s);
            const u8* ks = row_of(k, h % q.ne[1], t, s);
            float sum = 0.0f;
            if (real) {
                const u8* gates = row_of(g, h, t, s);
                for (u32 i = lane; i < size; i += p.lanes) {
                    float* e = (float*)(state + i * to.nb[0]);
                    *e *= expf(element<G>(g, gates, g.ne[0] == 1 ? 0 : i));
                    sum += *e * element<K>(k, ks, i);
                }
            }
            sum = lanes_sum(sum, p.lanes);
            float out = 0.0f;
            if (real) {
                float part = element<B>(beta, row_of(beta, h, t, s), 0);
                float wanted = element<X>(x, row_of(x, h, t, s), j) - sum;
                for (u32 i = lane; i < size; i += p.lanes) {
                    float* e = (float*)(state + i * to.nb[0]);
                    *e += element<K>(k, ks, i) * part * wanted;
                    out += *e * element<Q>(q, qs, i);
                }
            }
            out = lanes_sum(out, p.lanes) * scale;
            if (real && lane == 0) Y::put(row_of(y, h, t, s) + j * y.nb[0], &out);
        }
    }
}

// RWKV's recurrence. `ids` is the number of operands after the state: 1 for the bonus, 2 for the correction. Threads
// divide the work as in `ssm_scan`.
template <class R, class W, class K, class X, class A, class B, class Y> DEVICE void wkv(const View* v, const u8* params) {
    const RecurrentParams p = *(const RecurrentParams*)params;
    const View r = v[0], w = v[1], k = v[2], x = v[3], from = v[4], y = v[5 + p.ids], to = v[6 + p.ids];
    u32 size = r.ne[0], dv = x.ne[0], heads = x.ne[1], tokens = x.ne[2];
    u32 lane = threadIdx.x % p.lanes;
    u64 rows = (u64)dv * heads * x.ne[3], at_once = thread_count() / p.lanes;
    u64 first = thread_number() / 32 * 32 / p.lanes, within = threadIdx.x % 32 / p.lanes;
    for (u64 start = first; start < rows; start += at_once) {
        bool real = start + within < rows;
        u64 row = real ? start + within : 0;
        u32 j = (u32)(row % dv), h = (u32)(row / dv % heads), s = (u32)(row / dv / heads);
        const u8* old = row_of(from, j, h, s);
        u8* state = row_of(to, j, h, s);
        if (real)
            for (u32 i = lane; i < size; i += p.lanes) *(float*)(state + i * to.nb[0]) = *(const float*)(old + i * from.nb[0]);
        for (u32 t = 0; t < tokens; t++) {
            const u8* rs = row_of(r, h, t, s);
            const u8* ks = row_of(k, h, t, s);
            float value = real ? element<X>(x, row_of(x, h, t, s), j) : 0.0f;
            // The sum over the old state: of the bonus form's result, or of the correction.
            float sum = 0.0f;
            if (real && p.ids == 1) {
                const u8* us = row_of(v[5], h, 0, 0);
                for (u32 i = lane; i < size; i += p.lanes) {
                    float own = element<A>(v[5], us, i) * element<K>(k, ks, i) * value;
                    sum += element<R>(r, rs, i) * (*(const float*)(state + i * to.nb[0]) + own);
                }
            }
            if (real && p.ids == 2) {
                const u8* as = row_of(v[5], h, t, s);
                for (u32 i = lane; i < size; i += p.lanes)
                    sum += element<A>(v[5], as, i) * *(const float*)(state + i * to.nb[0]);
            }
            sum = lanes_sum(sum, p.lanes);
            float out = 0.0f;
            if (real) {
                const u8* ws = row_of(w, h, t, s);
                for (u32 i = lane; i < size; i += p.lanes) {
                    float* e = (float*)(state + i * to.nb[0]);
                    float back = p.ids == 2 ? element<B>(v[6], row_of(v[6], h, t, s), i) * sum : 0.0f;
                    float next = *e * element<W>(w, ws, i) + element<K>(k, ks, i) * value + back;
                    *e = next;
                    out += next * element<R>(r, rs, i);
                }
            }
            out = lanes_sum(out, p.lanes);
            if (p.ids == 1) out = sum;
            if (real && lane == 0) Y::put(row_of(y, h, t, s) + j * y.nb[0], &out);
        }
    }
}
