// Attention of many tokens on tensor cores. A block computes a tile of rows against all cells of a KV head.

// Rows per block (16 per warp), and the number of tiles whose mask a scan covers.
enum { WARPS = 4, ROWS = 16 * WARPS, WINDOW = 32 };
enum { PUT = 36 };

struct PrefillParams {
    float scale;
    float softcap;
    u32 sinks;
    // Lanes that copy a row of K, and of V.
    u32 lanes[2];
    // Blocks that share a row of V.
    u32 parts;
    // The slope of each head follows.
};

// The shared memory of a tile of `C` cells: stored rows, K and V as f16, and the second terms of wide queries. V is
// transposed: a word holds two adjacent cells of a column. The strides avoid bank conflicts in matrix products.
template <int D, int N, int C> struct PrefillRoom {
    enum { KEY = 16 * D + 8, COLUMN = C / 2 + 4 };
    u8* raw[2];
    u16* keys;
    u32* values;
    uint4* low;
    DEVICE_MEMBER PrefillRoom(u8* at, const CacheRows& k, const CacheRows& v) {
        raw[0] = at;
        raw[1] = raw[0] + C * staged_stride(k.bytes);
        keys = (u16*)(raw[1] + C * staged_stride(v.bytes));
        values = (u32*)(keys + C * KEY);
        low = (uint4*)(values + N * COLUMN + N / 2) + threadIdx.x;
    }
    DEVICE_MEMBER u32* column(u32 c) const { return values + c * COLUMN + c / 8 * 4; }
};

// The query elements of a lane as two terms. Second terms of wide queries exceed the registers and are in shared
// memory.
template <int D> struct PrefillTerms {
    enum { SHARED_LOW = D > 8 };
    u32 high[D][4], low[SHARED_LOW ? 1 : D][4];
};

// The two rows of a lane, eight apart.
struct PrefillRows {
    const u8* seen[2];
    float power[2], slope[2], most[2], sum[2];
};

// Bounds of the elements in a block: `CODES` times the scale, plus the absolute minimum if `LEAST` is 1. f16 needs no
// bound.
template <class T> struct Reach {
    enum { CODES = 0, LEAST = 0 };
};
template <> struct Reach<Q8_0> {
    enum { CODES = 128, LEAST = 0 };
};
template <> struct Reach<Q4_0> {
    enum { CODES = 8, LEAST = 0 };
};
template <> struct Reach<Q4_1> {
    enum { CODES = 15, LEAST = 1 };
};
template <> struct Reach<Q5_0> {
    enum { CODES = 16, LEAST = 0 };
};
template <> struct Reach<Q5_1> {
    enum { CODES = 31, LEAST = 1 };
};
template <> struct Reach<Iq4Nl> {
    enum { CODES = 127, LEAST = 0 };
};

// Returns the power of two that scales a row to the range of f16; 1 if the row fits. `lanes` adjacent lanes share the
// row.
template <class T> DEVICE float power_within(const u8* row, u32 blocks, u32 lanes) {
    if (Reach<T>::CODES == 0) return 1.0f;
    float most = 0.0f;
#pragma unroll 1
    for (u32 b = threadIdx.x % lanes; b < blocks; b += lanes) {
        const u8* at = row + b * T::BYTES;
        float reach = fabsf(half_at(at)) * (float)Reach<T>::CODES;
        if (Reach<T>::LEAST) reach += fabsf(half_at(at + 2));
        if (reach < u2f(0x7f800000u)) most = fmaxf(most, reach);
    }
    for (u32 o = 1; o < lanes; o *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, o));
    u32 exponent = f2u(most) >> 23;
    return exponent < 127 + 15 ? 1.0f : u2f((127 + 127 + 14 - exponent) << 23);
}

DEVICE u32 two_halves(float a, float b) { return (u32)f2h(a) | (u32)f2h(b) << 16; }

template <class M, int C> DEVICE void find_visible(const View& mask, const RowTile& t, u32 base, u32 cells, u32* seen) {
    u32 lane = threadIdx.x % 32;
    for (u32 i = threadIdx.x / 32; i < WINDOW; i += WARPS) {
        u32 cell = base + i * C + lane;
        bool any = false;
        // The heads of a token usually share a mask.
#pragma unroll 1
        for (u32 r = 0; lane < C && cell < cells && r < t.own && !any; r += mask.ne[2] == 1 ? t.group - (t.first + r) % t.group : 1)
            any = M::at(row_of(mask, t.token(r), t.head(r) % mask.ne[2], t.stream % mask.ne[3]) + cell * mask.nb[0], 0) != minus_infinity();
        u32 bits = __ballot_sync(0xffffffffu, any);
        if (lane == 0) seen[i] = bits;
    }
}
DEVICE u32 next_seen(const u32* seen, u32 i) {
#pragma unroll 1
    while (i < WINDOW && seen[i] == 0) i++;
    return i;
}

// Loads query rows as two f16 terms each, and the power of two that reverses their scaling.
template <class Q, int D> DEVICE void load_rows(const View& q, const RowTile& t, PrefillRows& rows, PrefillTerms<D>& terms, uint4* shared_low) {
    u32 lane = threadIdx.x % 32, dk = q.ne[0];
    const u8* from[2];
    float into[2];
    for (u32 h = 0; h < 2; h++) {
        u32 r = threadIdx.x / 32 * 16 + lane / 4 + 8 * h;
        from[h] = r < t.own ? row_of(q, t.token(r), t.head(r), t.stream) : nullptr;
        float most = 0.0f;
#pragma unroll 1
        for (u32 i = lane % 4; from[h] && i < dk; i += 4) {
            float size = fabsf(element<Q>(q, from[h], i));
            if (size < u2f(0x7f800000u)) most = fmaxf(most, size);
        }
        for (u32 o = 1; o < 4; o *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, o));
        // Scale the largest element to between 2^13 and 2^14, so that both terms of small elements are exact.
        u32 exponent = max(f2u(most) >> 23, 14u);
        rows.power[h] = u2f((exponent - 13) << 23);
        into[h] = u2f((267 - exponent) << 23);
    }
#pragma unroll
    for (u32 k = 0; k < D; k++) {
        // Stops the compiler from hoisting later loads, which would use more registers.
        __syncwarp();
        u32 low[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            float rest[2], x[2];
#pragma unroll
            for (u32 j = 0; j < 2; j++) {
                u32 at = 16 * k + lane % 4 * 2 + i / 2 * 8 + j;
                x[j] = from[i % 2] && at < dk ? element<Q>(q, from[i % 2], at) * into[i % 2] : 0.0f;
                rest[j] = fabsf(x[j]) < u2f(0x7f800000u) ? x[j] - h2f(f2h(x[j])) : 0.0f;
            }
            terms.high[k][i] = two_halves(x[0], x[1]);
            low[i] = two_halves(rest[0], rest[1]);
        }
        if (terms.SHARED_LOW) {
            shared_low[k * (32 * WARPS)] = {low[0], low[1], low[2], low[3]};
        } else {
            for (u32 i = 0; i < 4; i++) terms.low[terms.SHARED_LOW ? 0 : k][i] = low[i];
        }
    }
}

// Decodes K of a tile to f16. `scales` receives the score factor of each cell.
template <class K, int D, int N, int C>
DEVICE void decode_keys(const CacheRows& k, u32 dk, u32 cell, const PrefillRoom<D, N, C>& room, float* scales) {
    const u32 LANES = 32 * WARPS / C;
    u32 own = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const u8* row = room.raw[0] + own * staged_stride(k.bytes) + phase_of(k, cell + own);
    float power = power_within<K>(row, k.blocks, LANES);
#pragma unroll 1
    for (u32 piece = lane; piece < (dk + 15) / 16 * 2; piece += LANES) {
        float e[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        if (piece * 8 < dk) Eight<K>::of(row, piece, dk, e);
#pragma unroll
        for (u32 j = 0; j < 8; j++) e[j] *= power;
        uint4 w = {two_halves(e[0], e[1]), two_halves(e[2], e[3]), two_halves(e[4], e[5]), two_halves(e[6], e[7])};
        *(uint4*)(room.keys + own * room.KEY + piece * 8) = w;
    }
    if (lane == 0) scales[own] = 1.0f / power;
}

// Decodes V of a tile to f16, from column `from` on. Cells that no row sees become 0. `odd` receives one bit per cell
// with an infinite or NaN element.
template <class V, int D, int N, int C>
DEVICE void decode_values(const CacheRows& v, u32 from, u32 dv, u32 cell, u32 seen, const PrefillRoom<D, N, C>& room, float* scales, u32* odd) {
    const u32 LANES = 32 * WARPS / (C / 2), HERE = 32 / LANES;
    u32 pair = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const u8* rows[2];
    float power[2];
    u32 strange[2] = {0, 0};
    for (u32 i = 0; i < 2; i++) {
        u32 own = 2 * pair + i;
        rows[i] = room.raw[1] + own * staged_stride(v.bytes) + phase_of(v, cell + own);
        power[i] = power_within<V>(rows[i], v.blocks, LANES);
        if (lane == 0) scales[own] = 1.0f / power[i];
    }
#pragma unroll 1
    for (u32 piece = lane; piece < N / 8 && from + piece * 8 < dv; piece += LANES) {
        float e[2][8];
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            if (seen >> (2 * pair + i) & 1) {
                Eight<V>::of(rows[i], from / 8 + piece, dv, e[i]);
            } else {
                for (u32 j = 0; j < 8; j++) e[i][j] = 0.0f;
            }
        }
#pragma unroll
        for (u32 j = 0; j < 8; j++) {
            u32 w = two_halves(e[0][j] * power[0], e[1][j] * power[1]);
            strange[0] |= (w & 0x7c00u) == 0x7c00u;
            strange[1] |= (w & 0x7c000000u) == 0x7c000000u;
            room.column(8 * piece + j)[pair] = w;
        }
    }
    u32 bits = 0;
    for (u32 i = 0; i < 2; i++) {
        u32 lanes = __ballot_sync(0xffffffffu, strange[i] != 0);
        for (u32 n = 0; n < HERE; n++)
            if (lanes >> (n * LANES) & ((1u << LANES) - 1)) bits |= 1u << (2 * (pair / HERE * HERE + n) + i);
    }
    if (threadIdx.x % 32 == 0) odd[threadIdx.x / 32] = bits;
}

// Multiplies 16 rows with the keys of a tile. A lane has rows `lane / 4` and `lane / 4 + 8`, and cells `lane % 4 * 2`
// and the next of every eight.
template <int D, int N, int C>
DEVICE void score(const PrefillTerms<D>& terms, const PrefillRoom<D, N, C>& room, u32 dk, float (*s)[4]) {
    u32 lane = threadIdx.x % 32;
#pragma unroll
    for (u32 j = 0; j < C / 8; j++)
        for (u32 i = 0; i < 4; i++) s[j][i] = 0.0f;
#pragma unroll
    for (u32 k = 0; k < D; k++) {
        if (16 * k >= dk) break;
        uint4 w = {0, 0, 0, 0};
        if (terms.SHARED_LOW) w = room.low[k * (32 * WARPS)];
        const u32 read[4] = {w.x, w.y, w.z, w.w}, *low = terms.SHARED_LOW ? read : terms.low[terms.SHARED_LOW ? 0 : k];
#pragma unroll
        for (u32 j = 0; j < C / 8; j++) {
            const u32* key = (const u32*)(room.keys + (8 * j + lane / 4) * room.KEY) + 8 * k + lane % 4;
            u32 b[2] = {key[0], key[4]};
            mma_m16n8k16_f16(s[j], low, b);
            mma_m16n8k16_f16(s[j], terms.high[k], b);
        }
    }
}

// Converts scores to weights. `kept` receives the factors of earlier values.
template <class M, int C>
DEVICE void weigh(const View& mask, const PrefillParams& p, u32 cell, u32 seen, const float* scales, PrefillRows& rows, float (*s)[4], float* kept) {
    u32 lane = threadIdx.x % 32;
    float top[2] = {rows.most[0], rows.most[1]};
#pragma unroll
    for (u32 j = 0; j < C / 8; j++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 in = 8 * j + lane % 4 * 2 + i % 2;
            float m = minus_infinity();
            if (rows.seen[i / 2] && (seen >> in & 1)) m = M::at(rows.seen[i / 2] + (cell + in) * mask.nb[0], 0);
            float x = s[j][i] * scales[in] * rows.power[i / 2];
            x = p.softcap == 0.0f ? x * p.scale : p.softcap * tanhf(x * (p.scale / p.softcap));
            s[j][i] = m == minus_infinity() ? m : x + rows.slope[i / 2] * m;
            top[i / 2] = fmaxf(top[i / 2], s[j][i]);
        }
    }
#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        for (u32 o = 1; o < 4; o *= 2) top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], o));
        kept[h] = top[h] == rows.most[h] ? 1.0f : expf(rows.most[h] - top[h]);
        rows.most[h] = top[h];
        rows.sum[h] *= kept[h];
    }
#pragma unroll
    for (u32 j = 0; j < C / 8; j++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            s[j][i] = s[j][i] == minus_infinity() ? 0.0f : expf(s[j][i] - top[i / 2]);
            rows.sum[i / 2] += s[j][i];
        }
    }
}

// Adds cells with an infinite or NaN element to the rows that see them, and sets the elements to 0. A matrix product
// would spread them to all rows.
template <int D, int N, int C>
DEVICE void add_odd(u32 odd, u32 width, const PrefillRoom<D, N, C>& room, const float* scales, const float (*s)[4], float (*out)[4]) {
    u32 lane = threadIdx.x % 32;
    for (u32 bits = odd; bits; bits &= bits - 1) {
        u32 in = __ffs((i32)bits) - 1;
        float w[2] = {0.0f, 0.0f};
#pragma unroll
        for (u32 j = 0; j < C / 8; j++)
            for (u32 h = 0; h < 2; h++)
                if (in / 8 == j) w[h] = in % 2 ? s[j][2 * h + 1] : s[j][2 * h];
        for (u32 h = 0; h < 2; h++) w[h] = __shfl_sync(0xffffffffu, w[h], lane / 4 * 4 + in % 8 / 2);
#pragma unroll
        for (u32 n = 0; n < N / 8; n++) {
            if (8 * n >= width) break;
            for (u32 i = 0; i < 4; i++) {
                float e = h2f((u16)(room.column(8 * n + lane % 4 * 2 + i % 2)[in / 2] >> (in % 2 * 16))) * scales[in];
                if (w[i / 2] != 0.0f) out[n][i] = fmaf(w[i / 2], e, out[n][i]);
            }
        }
    }
    __syncthreads();
    for (u32 bits = odd; bits; bits &= bits - 1) {
        u32 in = __ffs((i32)bits) - 1;
        for (u32 c = threadIdx.x; c < N; c += 32 * WARPS) ((u16*)room.column(c))[in] = 0;
    }
    __syncthreads();
}

template <int D, int N, int C>
DEVICE void add_values(u32 width, const PrefillRoom<D, N, C>& room, const float* scales, const float (*s)[4], float (*out)[4]) {
    u32 lane = threadIdx.x % 32;
#pragma unroll
    for (u32 k = 0; k < C / 16; k++) {
        u32 a[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 j = 2 * k + i / 2, in = 8 * j + lane % 4 * 2;
            a[i] = two_halves(s[j][i % 2 * 2] * scales[in], s[j][i % 2 * 2 + 1] * scales[in + 1]);
        }
#pragma unroll
        for (u32 n = 0; n < N / 8; n++) {
            if (8 * n >= width) break;
            const u32* cells = room.column(8 * n + lane / 4) + 8 * k + lane % 4;
            u32 b[2] = {cells[0], cells[4]};
            mma_m16n8k16_f16(out[n], a, b);
        }
    }
}

// Writes 32 columns of the results of a warp, and their terms if `T` is `WITH_TERMS`.
template <class Y, int T> DEVICE void put_rows(const RowTile& t, u32 column, u32 dv, const float* from, const View& y, const View& made) {
    u32 lane = threadIdx.x % 32, first = column + lane % 8 * 4;
    for (u32 i = 0; i < 16; i += 4) {
        u32 in = i + lane / 8, r = threadIdx.x / 32 * 16 + in;
        bool real = r < t.own && first < dv;
        u32 head = t.head(real ? r : 0), token = t.token(real ? r : 0);
        float4 x = *(const float4*)(from + in * PUT + lane % 8 * 4);
        float e[4] = {x.x, x.y, x.z, x.w};
        u8* to = row_of(y, head, token, t.stream);
        for (u32 j = 0; j < 4; j++)
            if (real && first + j < dv) Y::put(to + (first + j) * y.nb[0], &e[j]);
        if (T == WITH_TERMS) put_terms(e, (head * dv + first) / 32, made.at + ((u64)t.stream * t.tokens + token) * made.nb[1], real);
    }
}

// Computes the factors of the values of each row, and the log-sum-exp of its scores if `T` is `WITH_LSE`.
template <class S, int T> DEVICE void end_rows(const RowTile& t, const View* sinks, const PrefillRows& rows, float* kept, float* lse) {
    for (u32 h = 0; h < 2; h++) {
        float sum = rows.sum[h], most = rows.most[h], sink = minus_infinity();
        for (u32 o = 1; o < 4; o *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
        u32 r = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * h;
        if (sinks && r < t.own) sink = S::at(sinks->at + t.head(r) * sinks->nb[0], 0);
        kept[h] = 1.0f;
        if (sink != minus_infinity()) {
            float top = fmaxf(most, sink);
            kept[h] = most == minus_infinity() ? 0.0f : expf(most - top);
            sum = sum * kept[h] + expf(sink - top);
            most = top;
        }
        if (T == WITH_LSE) lse[h] = log_sum_exp(most, sum);
        kept[h] = sum > 0.0f ? kept[h] / sum : 0.0f;
    }
}

// Appends the log-sum-exp to each row. Four lanes share two rows.
template <class Y> DEVICE void put_lse(const RowTile& t, u32 dv, const float* lse, const View& y) {
    if (threadIdx.x % 4) return;
    for (u32 h = 0; h < 2; h++) {
        u32 r = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * h;
        if (r < t.own) Y::put(row_of(y, t.head(r), t.token(r), t.stream) + dv * y.nb[0], lse + h);
    }
}

// Attends to all cells for the rows of a tile and columns `from` to `from + N` of V.
template <class Q, class K, class V, class M, int D, int N, int C>
DEVICE void attend_tile(const View* v, const PrefillParams& p, const RowTile& t, u32 from, u8* shared, PrefillRows& rows, float (*out)[4]) {
    SHARED(u32, seen, WINDOW);
    SHARED(float, scales, 2 * C);
    SHARED(u32, odd, WARPS);
    const View& mask = v[3];
    // Shared memory saves registers.
    SHARED(CacheRows, caches, 2);
    if (threadIdx.x == 0) {
        caches[0] = cache_rows<K>(v[1], t.kv, t.stream);
        caches[1] = cache_rows<V>(v[2], t.kv, t.stream);
    }
    __syncthreads();
    const CacheRows &keys = caches[0], &values = caches[1];
    const u32 cells = keys.cells;
    PrefillRoom<D, N, C> room(shared, keys, values);
    u32 dk = v[0].ne[0], dv = v[2].ne[0], width = min(dv - from, (u32)N);
    PrefillTerms<D> terms;
    load_rows<Q, D>(v[0], t, rows, terms, room.low);
    // Copy the next tile while the current tile is computed. Copy groups alternate between K and V.
    auto begin_keys = [&](u32 first, u32 i) {
        if (i < WINDOW) stage<K>(keys, first + i * C, C, room.raw[0], p.lanes[0]);
        cp_async_commit();
    };
    auto begin_values = [&](u32 first, u32 i) {
        if (i < WINDOW) stage<V>(values, first + i * C, C, room.raw[1], p.lanes[1]);
        cp_async_commit();
    };
    for (u32 first = 0; first < cells; first += WINDOW * C) {
        __syncthreads();
        find_visible<M, C>(mask, t, first, cells, seen);
        __syncthreads();
        u32 now = next_seen(seen, 0);
        begin_keys(first, now);
        begin_values(first, now);
        while (now < WINDOW) {
            u32 next = next_seen(seen, now + 1), cell = first + now * C, bits = seen[now];
            float s[C / 8][4], kept[2];
            cp_async_wait<1>();
            __syncthreads();
            decode_keys<K, D, N, C>(keys, dk, cell, room, scales);
            __syncthreads();
            begin_keys(first, next);
            score<D, N, C>(terms, room, dk, s);
            weigh<M, C>(mask, p, cell, bits, scales, rows, s, kept);
            cp_async_wait<1>();
            __syncthreads();
            decode_values<V, D, N, C>(values, from, dv, cell, bits, room, scales + C, odd);
            __syncthreads();
            begin_values(first, next);
#pragma unroll
            for (u32 n = 0; n < N / 8; n++)
                for (u32 i = 0; i < 4; i++) out[n][i] *= kept[i / 2];
            u32 strange = odd[0] | odd[1] | odd[2] | odd[3];
            if (strange) add_odd<D, N, C>(strange, width, room, scales + C, s, out);
            add_values<D, N, C>(width, room, scales + C, s, out);
            now = next;
        }
    }
    cp_async_wait<0>();
    __syncthreads();
}

template <class Q, class K, class V, class M, class S, class Y, int T, int D, int N, int C>
DEVICE void flash_prefill(const View* v, const u8* params) {
    DYN_SHARED(u8, shared);
    const View &q = v[0], &k = v[1], &mask = v[3];
    const PrefillParams& p = *(const PrefillParams*)params;
    const float* slopes = (const float*)(params + sizeof(PrefillParams));
    const View* results = v + (p.sinks ? 5 : 4);
    if (q.ne[1] == 0 || q.ne[2] == 0 || blockIdx.y >= k.ne[2] || blockIdx.z >= q.ne[3]) return;
    RowTile t;
    t.group = q.ne[2] / k.ne[2];
    t.tokens = q.ne[1];
    t.kv = blockIdx.y;
    t.stream = blockIdx.z;
    u32 all = t.group * t.tokens, tiles = (all + ROWS - 1) / ROWS, tile = blockIdx.x / p.parts;
    u32 from = blockIdx.x % p.parts * N, dv = v[2].ne[0];
    if (tile >= tiles || from >= dv) return;
    // The last tokens see the most cells, so their tiles start first.
    t.first = (tiles - 1 - tile) * ROWS;
    t.own = min(all - t.first, (u32)ROWS);
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    PrefillRows rows;
    for (u32 h = 0; h < 2; h++) {
        u32 r = warp * 16 + lane / 4 + 8 * h;
        bool real = r < t.own;
        rows.seen[h] = real ? row_of(mask, t.token(r), t.head(r) % mask.ne[2], t.stream % mask.ne[3]) : nullptr;
        rows.slope[h] = real ? slopes[t.head(r)] : 0.0f;
        rows.most[h] = minus_infinity();
        rows.sum[h] = 0.0f;
    }
    float out[N / 8][4], kept[2], lse[2];
#pragma unroll
    for (u32 n = 0; n < N / 8; n++)
        for (u32 i = 0; i < 4; i++) out[n][i] = 0.0f;
    attend_tile<Q, K, V, M, D, N, C>(v, p, t, from, shared, rows, out);
    end_rows<S, T>(t, p.sinks ? v + 4 : nullptr, rows, kept, lse);
    if (T == WITH_LSE && from == 0) put_lse<Y>(t, dv, lse, results[0]);
    float* ordered = (float*)shared + warp * 16 * PUT;
#pragma unroll
    for (u32 n = 0; n < N / 8; n += 4) {
        if (from + 8 * n >= dv) break;
        __syncwarp();
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            u32 h = i / 2 % 2, at = (lane / 4 + 8 * h) * PUT + i / 4 * 8 + lane % 4 * 2 + i % 2;
            ordered[at] = kept[h] != 0.0f ? out[n + i / 4][i % 4] * kept[h] : 0.0f;
        }
        __syncwarp();
        put_rows<Y, T>(t, from + 8 * n, dv, ordered, results[0], results[T == WITH_TERMS]);
    }
}
