// Attention of few tokens: blocks share the cells of a KV head. A block computes query heads of one KV head.

// The cells of a chunk, one per thread. Chunks begin at fixed cells, so the order of additions does not depend on the
// number of cells.
enum { CHUNK = 128, WARPS = CHUNK / 32, STAGES = 3 };
// The number of chunks in a group. The last block of a group joins the results of the group; the last block of all
// joins the groups.
enum { FAN = 16 };

struct DecodeParams {
    float scale;
    float softcap;
    u32 sinks;
    // Cells of K and of V per tile in shared memory, and lanes that copy a row.
    u32 cells[2];
    u32 lanes[2];
    u32 stage;
};

struct DecodeTile : RowTile {
    u32 dv;
    // The index of the first row over all KV heads, and the chunks per row.
    u64 row;
    u32 chunks;
};

// Partial results of all chunks: the values of each row and chunk, then maxima and sums.
struct DecodeParts {
    float *values, *ends;
    u32 width;
    DEVICE_MEMBER float* values_of(u64 row, u32 chunks, u32 chunk) const { return values + (row * chunks + chunk) * width; }
    DEVICE_MEMBER float* ends_of(u64 row, u32 chunks, u32 chunk) const { return ends + (row * chunks + chunk) * 2; }
};

// A range of `count` chunks, from `from` in steps of `step`.
struct DecodeRange {
    u32 from, count, step;
};

// Returns the next step with cells visible to a row. The first steps are tiles of K, the later steps tiles of V.
DEVICE u32 next_step(const u32* seen, const DecodeParams& p, u32 step) {
    u32 keys = CHUNK / p.cells[0], end = keys + CHUNK / p.cells[1];
    for (; step < end; step++) {
        u32 of_v = step >= keys, count = p.cells[of_v], first = (step - (of_v ? keys : 0)) * count;
        if (seen[first / 32] >> (first % 32) & 0xffffffffu >> (32 - count)) break;
    }
    return step;
}

// Writes the masks of the cells in a chunk to `scores`; rows of a cell are adjacent. Sets bit `i` of `seen` if a row
// sees cell `i`.
template <class M, int R> DEVICE void load_masks(const View& mask, const DecodeTile& t, u32 cell, u32 cells, float* scores, u32* seen) {
    bool any = false;
    for (u32 r = 0; r < R; r++) {
        float m = minus_infinity();
        if (r < t.own && cell < cells) m = M::at(row_of(mask, t.token(r), t.head(r) % mask.ne[2], t.stream % mask.ne[3]) + cell * mask.nb[0], 0);
        scores[threadIdx.x * R + r] = m;
        any = any || m != minus_infinity();
    }
    u32 bits = __ballot_sync(0xffffffffu, any);
    if (threadIdx.x % 32 == 0) seen[threadIdx.x / 32] = bits;
}

template <class Q, int R> DEVICE void load_queries(const View& q, const DecodeTile& t, u32 wide, float* query) {
    for (u32 r = 0; r < R; r++) {
        const u8* from = row_of(q, t.token(r), t.head(r), t.stream);
        for (u32 i = threadIdx.x; i < wide; i += CHUNK) query[r * wide + i] = r < t.own && i < q.ne[0] ? element<Q>(q, from, i) : 0.0f;
    }
}

// Scores the cells of a tile. Adjacent lanes have adjacent cells; lanes with the same cell alternate over the pieces of
// its row.
template <class K, int R>
DEVICE void score_tile(const CacheRows& k, u32 dk, const u8* tile, u32 cell, u32 in, const DecodeParams& p, const float* query, const float* slopes, float* scores) {
    u32 side = p.cells[0] / WARPS, slice = threadIdx.x % 32 / side, slices = 32 / side;
    u32 own = threadIdx.x / 32 * side + threadIdx.x % side, wide = (dk + 7) / 8 * 8;
    const u8* row = tile + own * staged_stride(k.bytes) + phase_of(k, cell + own);
    float sums[R];
#pragma unroll
    for (int r = 0; r < R; r++) sums[r] = 0.0f;
    for (u32 piece = slice; piece < wide / 8; piece += slices) {
        float e[8];
        Eight<K>::of(row, piece, dk, e);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const float4* x = (const float4*)(query + r * wide + 8 * piece);
            float4 a = x[0], b = x[1];
            sums[r] = fmaf(e[3], a.w, fmaf(e[2], a.z, fmaf(e[1], a.y, fmaf(e[0], a.x, sums[r]))));
            sums[r] = fmaf(e[7], b.w, fmaf(e[6], b.z, fmaf(e[5], b.y, fmaf(e[4], b.x, sums[r]))));
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        for (u32 o = side; o < 32; o *= 2) sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], o);
        if (r % slices != slice) continue;
        float* score = scores + (in + own) * R + r;
        float m = *score, x = sums[r];
        x = p.softcap == 0.0f ? x * p.scale : p.softcap * tanhf(x * (p.scale / p.softcap));
        if (m != minus_infinity()) *score = x + slopes[r] * m;
    }
}

// Converts scores to weights; writes the maximum and sum of each row to `ends`.
template <int R> DEVICE void weigh(float* scores, float* ends) {
    u32 lane = threadIdx.x % 32;
    for (u32 r = threadIdx.x / 32; r < R; r += WARPS) {
        float s[CHUNK / 32], top = minus_infinity(), sum = 0.0f;
        for (u32 i = 0; i < CHUNK / 32; i++) {
            s[i] = scores[(lane + 32 * i) * R + r];
            top = fmaxf(top, s[i]);
        }
        top = warp_max(top);
        for (u32 i = 0; i < CHUNK / 32; i++) {
            float w = s[i] == minus_infinity() ? 0.0f : expf(s[i] - top);
            scores[(lane + 32 * i) * R + r] = w;
            sum += w;
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            ends[2 * r] = top;
            ends[2 * r + 1] = sum;
        }
    }
}

// Adds the weighted values of the cells in a tile. A thread has one piece of every `teams`-th cell. Cells that a row
// does not see may hold NaN and are skipped.
template <class V, int R>
DEVICE void add_tile(const CacheRows& v, u32 dv, const u8* tile, u32 cell, u32 in, u32 count, const float* weights, float (*out)[8]) {
    u32 pieces = (dv + 7) / 8, teams = CHUNK / pieces, team = threadIdx.x / pieces, piece = threadIdx.x % pieces;
    if (team >= teams) return;
    for (u32 c = team; c < count; c += teams) {
        float w[R], any = 0.0f, e[8];
#pragma unroll
        for (int r = 0; r < R; r++) {
            w[r] = weights[(in + c) * R + r];
            any = w[r] != 0.0f ? 1.0f : any;
        }
        if (any == 0.0f) continue;
        Eight<V>::of(tile + c * staged_stride(v.bytes) + phase_of(v, cell + c), piece, dv, e);
#pragma unroll
        for (int r = 0; r < R; r++) {
            if (w[r] == 0.0f) continue;
#pragma unroll
            for (int j = 0; j < 8; j++) out[r][j] = fmaf(w[r], e[j], out[r][j]);
        }
    }
}

// Adds the sums of the teams, and stores them for the block that joins chunks.
template <int R> DEVICE void store_partials(const DecodeTile& t, u32 chunk, const DecodeParts& parts, float* room, const float (*out)[8]) {
    u32 pieces = (t.dv + 7) / 8, teams = CHUNK / pieces, team = threadIdx.x / pieces, piece = threadIdx.x % pieces;
#pragma unroll
    for (int r = 0; r < R; r++) {
        float* own = room + r % 2 * teams * pieces * 8;
        if (team < teams) {
            float4* to = (float4*)(own + (team * pieces + piece) * 8);
            to[0] = {out[r][0], out[r][1], out[r][2], out[r][3]};
            to[1] = {out[r][4], out[r][5], out[r][6], out[r][7]};
        }
        __syncthreads();
        if (r >= t.own) continue;
        float* to = parts.values_of(t.row + r, t.chunks, chunk);
        for (u32 i = threadIdx.x; i < parts.width; i += CHUNK) {
            float sum = 0.0f;
            for (u32 n = 0; n < teams; n++) sum += own[n * pieces * 8 + i];
            to[i] = sum;
        }
    }
}

// Computes a chunk: stores the values, and leaves maxima and sums in `ends`.
template <class Q, class K, class V, class M, int R>
DEVICE void attend_chunk(const View* v, const DecodeParams& p, const float* slopes, const DecodeTile& t, u32 chunk, const DecodeParts& parts, float* shared, float* ends) {
    SHARED(u32, seen, WARPS);
    SHARED(float, slope, R);
    const View q = v[0], mask = v[3];
    CacheRows keys = cache_rows<K>(v[1], t.kv, t.stream), values = cache_rows<V>(v[2], t.kv, t.stream);
    u32 dk = q.ne[0], wide = (dk + 7) / 8 * 8, base = chunk * CHUNK;
    float *query = shared, *scores = query + R * wide;
    u8* stages = (u8*)(scores + CHUNK * R);
    load_masks<M, R>(mask, t, base + threadIdx.x, keys.cells, scores, seen);
    if (threadIdx.x < R) {
        slope[threadIdx.x] = threadIdx.x < t.own ? slopes[t.head(threadIdx.x)] : 0.0f;
        ends[2 * threadIdx.x] = minus_infinity();
        ends[2 * threadIdx.x + 1] = 0.0f;
    }
    __syncthreads();
    u32 of_keys = CHUNK / p.cells[0], end = of_keys + CHUNK / p.cells[1];
    u32 now = next_step(seen, p, 0), ahead = now, slot = 0;
    if (now == end) return;
    auto begin = [&](u32 slot) {
        u8* to = stages + slot * p.stage;
        if (ahead < of_keys)
            stage<K>(keys, base + ahead * p.cells[0], p.cells[0], to, p.lanes[0]);
        else if (ahead < end)
            stage<V>(values, base + (ahead - of_keys) * p.cells[1], p.cells[1], to, p.lanes[1]);
        cp_async_commit();
        ahead = next_step(seen, p, ahead + 1);
    };
    // Waits for the tile of this step, then starts to copy a later tile to the slot of the previous tile.
    auto arrived = [&]() {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        begin((slot + STAGES - 1) % STAGES);
        const u8* tile = stages + slot * p.stage;
        slot = (slot + 1) % STAGES;
        return tile;
    };
    for (u32 s = 0; s + 1 < STAGES; s++) begin(s);
    load_queries<Q, R>(q, t, wide, query);
    for (; now < of_keys; now = next_step(seen, p, now + 1)) {
        const u8* tile = arrived();
        u32 in = now * p.cells[0];
        score_tile<K, R>(keys, dk, tile, base + in, in, p, query, slope, scores);
    }
    __syncthreads();
    weigh<R>(scores, ends);
    float out[R][8];
#pragma unroll
    for (int r = 0; r < R; r++)
        for (int j = 0; j < 8; j++) out[r][j] = 0.0f;
    for (; now < end; now = next_step(seen, p, now + 1)) {
        const u8* tile = arrived();
        u32 in = (now - of_keys) * p.cells[1];
        add_tile<V, R>(values, t.dv, tile, base + in, in, p.cells[1], scores, out);
    }
    cp_async_wait<0>();
    __syncthreads();
    store_partials<R>(t, chunk, parts, (float*)stages, out);
}

// True in the last of `count` blocks to arrive. It sees the writes of the other blocks, and resets the counter to 0.
DEVICE bool last_of(u32* counter, u32 count) {
    SHARED(u32, last, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        last[0] = add_acq_rel(counter, 1u) + 1 == count;
        if (last[0]) *counter = 0;
    }
    __syncthreads();
    return last[0];
}

// Computes the maximum and sum of each row over a range of chunks.
DEVICE void join_ends(const DecodeTile& t, const DecodeParts& parts, const DecodeRange& of, float* ends) {
    u32 lane = threadIdx.x % 32;
    for (u32 r = threadIdx.x / 32; r < t.own; r += WARPS) {
        const float* at = parts.ends_of(t.row + r, t.chunks, of.from);
        float top = minus_infinity(), sum = 0.0f;
        for (u32 i = lane; i < of.count; i += 32) top = fmaxf(top, at[2 * i * of.step]);
        top = warp_max(top);
        for (u32 i = lane; i < of.count; i += 32) {
            const float* own = at + 2 * i * of.step;
            if (own[0] != minus_infinity()) sum += own[1] * expf(own[0] - top);
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            ends[2 * r] = top;
            ends[2 * r + 1] = sum;
        }
    }
    __syncthreads();
}

// Joins four values of a row over a range of chunks with maximum `top`.
DEVICE void join_four(const DecodeTile& t, const DecodeParts& parts, const DecodeRange& of, u32 r, u32 first, float top, float* e) {
    const float *at = parts.ends_of(t.row + r, t.chunks, of.from), *from = parts.values_of(t.row + r, t.chunks, of.from) + first;
    for (u32 j = 0; j < 4; j++) e[j] = 0.0f;
    for (u32 i = 0; i < of.count; i++) {
        float most = at[2 * i * of.step];
        if (most == minus_infinity()) continue;
        float kept = expf(most - top);
        float4 x = *(const float4*)(from + (u64)i * of.step * parts.width);
        e[0] = fmaf(kept, x.x, e[0]);
        e[1] = fmaf(kept, x.y, e[1]);
        e[2] = fmaf(kept, x.z, e[2]);
        e[3] = fmaf(kept, x.w, e[3]);
    }
}

DEVICE void join_chunks(const DecodeTile& t, const DecodeParts& parts, const DecodeRange& of, float* ends) {
    join_ends(t, parts, of, ends);
    u32 quads = parts.width / 4;
    for (u32 i = threadIdx.x; i < t.own * quads; i += CHUNK) {
        u32 r = i / quads, first = i % quads * 4;
        float e[4];
        join_four(t, parts, of, r, first, ends[2 * r], e);
        *(float4*)(parts.values_of(t.row + r, t.chunks, of.from) + first) = {e[0], e[1], e[2], e[3]};
    }
    __syncthreads();
    if (threadIdx.x < t.own) {
        float* to = parts.ends_of(t.row + threadIdx.x, t.chunks, of.from);
        to[0] = ends[2 * threadIdx.x];
        to[1] = ends[2 * threadIdx.x + 1];
    }
}

// Writes the results of a tile from a range of chunks, and their terms if `T` is 1.
template <class S, class Y, int T>
DEVICE void put_tile(const DecodeTile& t, const DecodeParts& parts, const DecodeRange& of, const View* sinks, const View& y, const View& made, float* ends) {
    join_ends(t, parts, of, ends);
    u32 quads = parts.width / 4, all = t.own * quads;
    // All lanes of a warp run the same number of iterations.
    for (u32 from = 0; from < all; from += CHUNK) {
        u32 i = from + threadIdx.x;
        bool real = i < all;
        u32 r = real ? i / quads : 0, first = real ? i % quads * 4 : 0, head = t.head(r), token = t.token(r);
        float e[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (real) {
            float top = ends[2 * r], total = ends[2 * r + 1], kept = 1.0f;
            join_four(t, parts, of, r, first, top, e);
            float sink = sinks ? S::at(sinks->at + head * sinks->nb[0], 0) : minus_infinity();
            if (sink != minus_infinity()) {
                float most = fmaxf(top, sink);
                kept = top == minus_infinity() ? 0.0f : expf(top - most);
                total = total * kept + expf(sink - most);
            }
            u8* to = row_of(y, head, token, t.stream);
            for (u32 j = 0; j < 4 && first + j < t.dv; j++) {
                e[j] = total > 0.0f ? e[j] * kept / total : 0.0f;
                Y::put(to + (first + j) * y.nb[0], &e[j]);
            }
        }
        if (T) put_terms(e, (head * t.dv + first) / 32, made.at + ((u64)t.stream * t.tokens + token) * made.nb[1], real);
    }
}

// The views of the counters and partial results follow the results.
template <class Q, class K, class V, class M, class S, class Y, int T, int R> DEVICE void flash_decode(const View* v, const u8* params) {
    DYN_SHARED(float, shared);
    SHARED(float, ends, 2 * R);
    const View q = v[0], k = v[1];
    const DecodeParams p = *(const DecodeParams*)params;
    const View* results = v + (p.sinks ? 5 : 4);
    if (q.ne[1] == 0 || q.ne[2] == 0 || blockIdx.y >= k.ne[2] || blockIdx.z >= q.ne[3]) return;
    DecodeTile t;
    t.group = q.ne[2] / k.ne[2];
    t.tokens = q.ne[1];
    t.kv = blockIdx.y;
    t.stream = blockIdx.z;
    t.dv = v[2].ne[0];
    u32 rows = t.group * t.tokens, tiles = (rows + R - 1) / R, chunk = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    t.chunks = max((k.ne[1] + CHUNK - 1) / CHUNK, 1u);
    if (chunk >= t.chunks || t.dv == 0) return;
    t.first = tile * R;
    t.own = min(rows - t.first, (u32)R);
    u64 unit = (u64)t.stream * k.ne[2] + t.kv;
    t.row = unit * rows + t.first;
    DecodeParts parts;
    parts.width = (t.dv + 3) / 4 * 4;
    parts.values = (float*)results[2 + T].at;
    parts.ends = parts.values + (u64)q.ne[3] * k.ne[2] * rows * t.chunks * parts.width;
    attend_chunk<Q, K, V, M, R>(v, p, (const float*)(params + sizeof(DecodeParams)), t, chunk, parts, shared, ends);
    __syncthreads();
    if (threadIdx.x < t.own) {
        float* to = parts.ends_of(t.row + threadIdx.x, t.chunks, chunk);
        to[0] = ends[2 * threadIdx.x];
        to[1] = ends[2 * threadIdx.x + 1];
    }
    u32 fans = (t.chunks + FAN - 1) / FAN, fan = chunk / FAN;
    u32* counters = (u32*)results[1 + T].at + (unit * tiles + tile) * (fans + 1);
    DecodeRange range = {fan * FAN, min(t.chunks - fan * FAN, (u32)FAN), 1};
    if (!last_of(counters + fan, range.count)) return;
    if (fans > 1) {
        join_chunks(t, parts, range, ends);
        if (!last_of(counters + fans, fans)) return;
        range = {0, fans, FAN};
    }
    put_tile<S, Y, T>(t, parts, range, p.sinks ? v + 4 : nullptr, results[0], results[T], ends);
}
