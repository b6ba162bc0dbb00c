// Ops of single architectures.

struct CombParams {
    float eps;
    u32 iterations;
};

// Divides every group of a matrix by `eps` more than its sum. Elements lie at `outer` and `inner` strides.
DEVICE void normalise(u8* m, u32 hc, float eps, u64 group, u64 within) {
    for (u32 g = 0; g < hc; g++) {
        float sum = 0.0f;
        for (u32 i = 0; i < hc; i++) sum += *(float*)(m + g * group + i * within);
        for (u32 i = 0; i < hc; i++) *(float*)(m + g * group + i * within) /= sum + eps;
    }
}

// A thread makes the matrix of a token in its scratch memory, whose view comes last.
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

// A thread scores a cell for a token.
template <class Q, class K, class W, class Y> DEVICE void lightning_indexer(const View* v) {
    const View q = v[0], k = v[1], w = v[2], y = v[3];
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        u32 cell = at.i[0], token = at.i[1], stream = at.i[3];
        const u8* key = row_of(k, 0, cell, stream);
        const u8* weights = row_of(w, token, 0, stream);
        float score = 0.0f;
        for (u32 head = 0; head < q.ne[1]; head++) {
            const u8* query = row_of(q, head, token, stream);
            float dot = 0.0f;
            for (u32 d = 0; d < q.ne[0]; d++) dot += element<Q>(q, query, d) * element<K>(k, key, d);
            score += element<W>(w, weights, head) * fmaxf(dot, 0.0f);
        }
        Y::put(address(y, at), &score);
    }
}

// The factors follow, then the first row and the number of rows of each table.
struct NgramParams {
    u32 factors, tables;
    u64 end;
};

// A thread hashes the n-grams that a token ends.
template <class X, class Y> DEVICE void ngram_rows(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const NgramParams p = *(const NgramParams*)params;
    const u64* factors = (const u64*)(params + sizeof(NgramParams));
    const u64* tables = factors + p.factors;
    u32 per_length = p.tables / (p.factors - 1);
    u64 n = (u64)y.ne[1] * y.ne[2];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        u32 token = (u32)(i % y.ne[1]), seq = (u32)(i / y.ne[1]);
        const u8* ids = row_of(x, seq, 0, 0);
        u8* rows = row_of(y, token, seq, 0);
        u64 mixed = 0;
        bool over = false;
        for (u32 j = 0; j < p.factors; j++) {
            float id = element<X>(x, ids, token + p.factors - 1 - j);
            u64 own = id >= 1.0f ? (u64)(id - 1.0f) : p.end;
            over = over || (j > 0 && own == p.end);
            mixed ^= factors[j] * (over ? p.end : own);
            for (u32 g = 0; j > 0 && g < per_length; g++) {
                u32 table = (j - 1) * per_length + g;
                u64 row = tables[2 * table] + mixed % tables[2 * table + 1];
                Y::put_integer(rows + table * y.nb[0], (u32)row);
            }
        }
    }
}

struct PoolParams {
    u32 window[2], stride[2], pad[2];
    u32 mean;
};

template <class X, class Y> DEVICE void pool_2d(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const PoolParams p = *(const PoolParams*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        float most = -3.402823466e38f, sum = 0.0f;
        for (u32 b = 0; b < p.window[1]; b++) {
            i64 row = (i64)at.i[1] * p.stride[1] + b - p.pad[1];
            if (row < 0 || row >= (i64)x.ne[1]) continue;
            for (u32 a = 0; a < p.window[0]; a++) {
                i64 column = (i64)at.i[0] * p.stride[0] + a - p.pad[0];
                if (column < 0 || column >= (i64)x.ne[0]) continue;
                float e = element<X>(x, row_of(x, (u32)row, at.i[2], at.i[3]), (u32)column);
                most = fmaxf(most, e);
                sum += e;
            }
        }
        float out = p.mean ? sum / (float)((u64)p.window[0] * p.window[1]) : most;
        Y::put(address(y, at), &out);
    }
}
