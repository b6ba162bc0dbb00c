// Attention of few tokens: blocks share the cells of a KV head. A block computes query heads of one KV head.

struct DecodeParams {
    float scale;
    float softcap;
    u32 sinks;
    // `scale / softcap`.
    float cap;
    // The bytes of a tile in shared memory.
    u32 stage;
    // The tiles of rows.
    u32 tiles;
    // A group has `1 << fan` chunks. The last block of a group joins the results of the group; the last block of all
    // joins the groups. Groups and chunks of a group are at most `CHUNK`.
    u32 fan;
    // The slope of each head follows.
};

// A row of a block, in shared memory: one query head of one token.
struct DecodeRow {
    const u8 *query, *mask;
    u8* y;
    // The terms of the token, and the first element of the head in a column of terms.
    u8* terms;
    u32 column;
    float slope, sink;
};

// Sizes and addresses of a block, in shared memory. Partial results have `width` values, a maximum and a sum for each
// row and chunk.
struct DecodeBlock {
    float zeros[4];
    u32 dk, dv, own, cells, chunks, width, stage, fan;
    // A row of V has `pieces` pieces of eight values. For up to 128 threads, `threads * inverse / 65536` is `threads / pieces`.
    u32 pieces, inverse;
    float scale, softcap, cap;
    u64 query_step, mask_step, y_step;
    float *values, *ends;
    u32* counters;
    DEVICE_MEMBER float* values_of(u32 r, u32 chunk) const { return values + (u64)(r * chunks + chunk) * width; }
    DEVICE_MEMBER float* ends_of(u32 r, u32 chunk) const { return ends + (u64)(r * chunks + chunk) * 2; }
};

// The threads of a block by the values that they add. A thread has one piece of eight values, and every `teams`-th
// cell. Partial sums of two teams, `half` teams apart, are added first. The number of teams is even, or 1.
struct DecodeTeams {
    u32 pieces, teams, half, team, piece;
};

DEVICE DecodeTeams decode_teams(const DecodeBlock& b) {
    DecodeTeams t;
    t.pieces = b.pieces;
    u32 teams = CHUNK * b.inverse >> 16;
    t.teams = teams > 1 ? teams / 2 * 2 : 1;
    t.half = (t.teams + 1) / 2;
    u32 team = threadIdx.x * b.inverse >> 16;
    // The result of a shuffle stays in a register: the compiler does not compute it again for each cell.
    t.team = __shfl_sync(0xffffffffu, team, threadIdx.x % 32);
    t.piece = __shfl_sync(0xffffffffu, threadIdx.x - team * t.pieces, threadIdx.x % 32);
    return t;
}

// Returns a value that all lanes have. The compiler then knows that branches on it do not divide a warp.
DEVICE u32 same_in_warp(u32 x) { return __shfl_sync(0xffffffffu, x, 0); }

// A range of `count` chunks, from `from` in steps of `step`.
struct DecodeRange {
    u32 from, count, step;
};

// Loads the masks of a cell per thread to `scores`; rows of a cell are adjacent. Bit `r` of `fresh` is 0 if row `r` has
// the mask of the row before. Sets bit `i` of `seen` if a row sees cell `i`.
template <class M, int R> DEVICE void load_masks(const DecodeRow* rows, u32 fresh, u64 step, u32 cell, u32 cells, float* scores, u32* seen) {
    float m[R];
    bool any = false;
#pragma unroll
    for (int r = 0; r < R; r++) {
        m[r] = r ? m[r ? r - 1 : 0] : minus_infinity();
        if (!(fresh >> r & 1)) continue;
        const u8* mask = rows[r].mask;
        m[r] = mask && cell < cells ? M::at(mask + cell * step, 0) : minus_infinity();
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        scores[threadIdx.x * R + r] = m[r];
        any = any || m[r] != minus_infinity();
    }
    u32 bits = __ballot_sync(0xffffffffu, any);
    if (threadIdx.x % 32 == 0) seen[threadIdx.x / 32] = bits;
}

// Returns a bit for each tile of `CELLS` cells: 1 if a row sees one of the cells.
template <int CELLS> DEVICE u32 seen_tiles(const u32* seen) {
    u32 bits = 0;
#pragma unroll
    for (u32 i = 0; i < CHUNK / CELLS; i++) {
        u32 word = seen[i * CELLS / 32] >> (i * CELLS % 32) & 0xffffffffu >> (32 - CELLS);
        bits |= word ? 1u << i : 0u;
    }
    return bits;
}

// Scores the cells of a tile. Adjacent lanes have adjacent cells; lanes with the same cell alternate over the pieces of
// its row.
template <class K, int R, int CELLS>
DEVICE void score_tile(const CacheTiles& k, const DecodeBlock& b, const u8* tile, u32 cell, const float* query, const DecodeRow* rows, float* scores) {
    const u32 side = CELLS / WARPS, slices = 32 / side, PIECE = 8 * R + 4;
    u32 slice = threadIdx.x % 32 / side, own = threadIdx.x / 32 * side + threadIdx.x % side, pieces = (b.dk + 7) / 8;
    const u8* row = tile + own * k.stride + (K::LEN > 1 ? (k.phase + (cell + own) * k.turn) % 16 : 0);
    float sums[R];
#pragma unroll
    for (int r = 0; r < R; r++) sums[r] = 0.0f;
    const float* x = query + slice * PIECE;
#pragma unroll 1
    for (u32 piece = slice; piece < pieces; piece += slices, x += slices * PIECE, row += slices * 8 / K::LEN * K::BYTES) {
        float e[8], factor = TileEight<K>::of(row, slice, e);
#pragma unroll
        for (int r = 0; r < R; r++) {
            float4 a = ((const float4*)x)[2 * r], c = ((const float4*)x)[2 * r + 1];
            float sum = TileEight<K>::SCALED ? e[0] * a.x : fmaf(e[0], a.x, sums[r]);
            sum = fmaf(e[3], a.w, fmaf(e[2], a.z, fmaf(e[1], a.y, sum)));
            sum = fmaf(e[7], c.w, fmaf(e[6], c.z, fmaf(e[5], c.y, fmaf(e[4], c.x, sum))));
            sums[r] = TileEight<K>::SCALED ? fmaf(factor, sum, sums[r]) : sum;
        }
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (u32 o = side; o < 32; o *= 2) sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], o);
    // A lane completes every `slices`-th row.
#pragma unroll
    for (u32 first = 0; first < R; first += slices) {
        float x = 0.0f;
#pragma unroll
        for (u32 r = first; r < R && r < first + slices; r++) x = slice == r - first ? sums[r] : x;
        u32 r = first + slice;
        if (r >= R) break;
        float m = scores[own * R + r];
        x = b.softcap == 0.0f ? x * b.scale : b.softcap * tanhf(x * b.cap);
        if (m != minus_infinity()) scores[own * R + r] = x + rows[r].slope * m;
    }
}

// Converts scores to weights; writes the maximum and sum of each row to `ends`.
template <int R> DEVICE void weigh(float* scores, float* ends) {
    u32 lane = threadIdx.x % 32;
#pragma unroll 1
    for (u32 r = same_in_warp(threadIdx.x / 32); r < R; r += WARPS) {
        float s[CHUNK / 32], top = minus_infinity(), sum = 0.0f;
#pragma unroll
        for (u32 i = 0; i < CHUNK / 32; i++) {
            s[i] = scores[(lane + 32 * i) * R + r];
            top = fmaxf(top, s[i]);
        }
        top = warp_max(top);
#pragma unroll
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

// Loads the weights of a cell.
template <int R> DEVICE void load_weights(const float* from, float* w) {
    if (R % 4) {
#pragma unroll
        for (int r = 0; r < R; r++) w[r] = from[r];
    }
#pragma unroll
    for (int r = 0; r + 4 <= R; r += 4) {
        float4 four = *(const float4*)(from + r);
        w[r] = four.x;
        w[r + 1] = four.y;
        w[r + 2] = four.z;
        w[r + 3] = four.w;
    }
}

// Adds the weighted values of the cells in a tile. Cells that a row does not see may hold NaN and are skipped.
template <class V, int R, int CELLS>
DEVICE void add_tile(const CacheTiles& v, const DecodeTeams& t, const u8* tile, u32 cell, const float* weights, float (*out)[8]) {
    if (t.team >= t.teams) return;
    const u8* row = tile + t.team * v.stride;
    const float* own = weights + t.team * R;
    u32 stride = t.teams * v.stride, turn = t.teams * v.turn, phase = v.phase + (cell + t.team) * v.turn;
#pragma unroll 1
    for (u32 c = t.team; c < CELLS; c += t.teams, row += stride, own += t.teams * R, phase += turn) {
        float w[R], any = 0.0f, e[8];
        load_weights<R>(own, w);
#pragma unroll
        for (int r = 0; r < R; r++) any = w[r] != 0.0f ? 1.0f : any;
        if (any == 0.0f) continue;
        float factor = TileEight<V>::of(row + (V::LEN > 1 ? phase % 16 : 0), t.piece, e);
#pragma unroll
        for (int r = 0; r < R; r++) {
            if (w[r] == 0.0f) continue;
            float weight = TileEight<V>::SCALED ? w[r] * factor : w[r];
#pragma unroll
            for (int j = 0; j < 8; j++) out[r][j] = fmaf(weight, e[j], out[r][j]);
        }
    }
}

DEVICE float4 plus(const float4& a, const float4& b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// The number of rows up to which shared memory has room for the values of all teams. With more rows, each thread of the
// first half of the teams first adds the values of another thread.
enum { WHOLE_ROWS = 4 };

// Stores the sums of each team. `room` has the rows of a team next to each other, and teams within a row.
template <int R> DEVICE void store_teams(const DecodeTeams& t, float* room, const float (*out)[8]) {
    u32 kept = R > WHOLE_ROWS ? t.half : t.teams, step = kept * t.pieces * 2;
    if (R > WHOLE_ROWS) {
        float4* other = (float4*)room + ((t.team - t.half) * t.pieces + t.piece) * 2;
        if (t.team >= t.half && t.team < t.teams)
#pragma unroll
            for (int r = 0; r < R; r++) {
                other[r * step] = {out[r][0], out[r][1], out[r][2], out[r][3]};
                other[r * step + 1] = {out[r][4], out[r][5], out[r][6], out[r][7]};
            }
        __syncthreads();
    }
    if (t.team >= kept) return;
    float4* own = (float4*)room + (t.team * t.pieces + t.piece) * 2;
    bool paired = R > WHOLE_ROWS && t.teams > 1;
#pragma unroll
    for (int r = 0; r < R; r++) {
        float4 a = {out[r][0], out[r][1], out[r][2], out[r][3]}, b = {out[r][4], out[r][5], out[r][6], out[r][7]};
        if (paired) {
            a = plus(a, own[r * step]);
            b = plus(b, own[r * step + 1]);
        }
        own[r * step] = a;
        own[r * step + 1] = b;
    }
}

// Returns the sum of all teams for four values of a row.
template <int R> DEVICE float4 sum_teams(const DecodeTeams& t, const float* room, const float* zeros, u32 r, u32 first) {
    u32 kept = R > WHOLE_ROWS ? t.half : t.teams, step = t.pieces * 8;
    const float* at = room + r * kept * step + first;
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    bool pairs = t.teams > 1;
    const float* other = pairs ? at + t.half * step : zeros;
    u32 next = pairs ? step : 0;
#pragma unroll 1
    for (u32 n = 0; n < t.half; n++, at += step, other += next) {
        float4 x = *(const float4*)at;
        sum = plus(sum, R > WHOLE_ROWS ? x : plus(x, *(const float4*)other));
    }
    return sum;
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

// Returns the factor of the values of a chunk whose maximum is `top`; 0 without visible cells.
DEVICE float kept_of(float top, float most) { return top == minus_infinity() ? 0.0f : expf(top - most); }

// Computes the maximum and sum of a row over a range of chunks, and writes the factor of each chunk to `weights`. A warp
// computes a row.
DEVICE void join_ends(const float* at, const DecodeRange& of, float* weights, float* ends) {
    float top = minus_infinity(), sum = 0.0f;
#pragma unroll 1
    for (u32 i = threadIdx.x % 32; i < of.count; i += 32) top = fmaxf(top, at[2 * i * of.step]);
    top = warp_max(top);
#pragma unroll 1
    for (u32 i = threadIdx.x % 32; i < (of.count + 3) / 4 * 4; i += 32) {
        const float* own = at + 2 * i * of.step;
        float kept = i < of.count ? kept_of(own[0], top) : 0.0f;
        if (kept != 0.0f) sum += own[1] * kept;
        weights[i] = kept;
    }
    ends[0] = top;
    ends[1] = warp_sum(sum);
    __syncwarp();
}

// Joins four values of a row over a range of chunks. The values of a chunk without visible cells are not written. The
// loads of four chunks are in flight together.
DEVICE float4 join_four(const float* from, u32 width, const DecodeRange& of, const float* weights) {
    u64 step = (u64)of.step * width;
    float4 e = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
    for (u32 first = 0; first < of.count; first += 4) {
        float4 four = *(const float4*)(weights + first), x[4];
        float k[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (u32 i = 0; i < 4; i++, from += step) {
            x[i] = e;
            if (k[i] != 0.0f) x[i] = *(const float4*)from;
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            if (k[i] != 0.0f) e = {fmaf(k[i], x[i].x, e.x), fmaf(k[i], x[i].y, e.y), fmaf(k[i], x[i].z, e.z), fmaf(k[i], x[i].w, e.w)};
    }
    return e;
}

// Returns the factor of the values of a row with this maximum and sum.
DEVICE float last_factor(float top, float total, float sink) {
    float kept = 1.0f;
    if (sink != minus_infinity()) {
        float most = fmaxf(top, sink);
        kept = kept_of(top, most);
        total = total * kept + expf(sink - most);
    }
    return total > 0.0f ? kept / total : 0.0f;
}

// Returns the log-sum-exp of a row with this maximum and sum.
DEVICE float last_lse(float top, float total, float sink) {
    float most = fmaxf(top, sink);
    total *= kept_of(top, most);
    return log_sum_exp(most, sink == minus_infinity() ? total : total + expf(sink - most));
}

// Writes four values of a row, and their terms if `T` is `WITH_TERMS`. All lanes of a warp must call it.
template <class Y, int T> DEVICE void put_four(const DecodeRow& row, float factor, u64 step, u32 first, u32 dv, const float4& x, bool real) {
    float e[4] = {x.x, x.y, x.z, x.w};
    u8* to = row.y + first * step;
#pragma unroll
    for (u32 j = 0; j < 4; j++, to += step) {
        e[j] = factor != 0.0f && first + j < dv ? e[j] * factor : 0.0f;
        if (first + j < dv) Y::put(to, &e[j]);
    }
    __syncwarp();
    if (T == WITH_TERMS) put_terms(e, (row.column + first) / 32, row.terms, real);
}

// The parts of shared memory that all chunks of a block use.
struct DecodeShared {
    float *scores, *query;
    u8* stages;
    const DecodeBlock* block;
    const DecodeRow* rows;
    const CacheTiles* caches;
    float* ends;
};

// Starts to copy the queries to shared memory. A piece has eight elements of each row. A warp copies a row.
template <class Q, int R> DEVICE void load_queries(const DecodeShared& s) {
    const u32 PIECE = 8 * R + 4;
    u32 dk = s.block->dk, lane = threadIdx.x % 32;
    u64 step = s.block->query_step;
#pragma unroll 1
    for (u32 r = threadIdx.x / 32; r < R; r += WARPS) {
        const u8* from = s.rows[r].query;
        float* to = s.query + r * 8;
        if (IsFloat<Q>::YES && from && step == 4 && dk % 8 == 0 && (u64)from % 16 == 0) {
#pragma unroll 1
            for (u32 i = lane; i < dk / 4; i += 32) cp_async16(to + i / 2 * PIECE + i % 2 * 4, from + 16 * i);
            continue;
        }
#pragma unroll 1
        for (u32 i = lane; i < (dk + 7) / 8 * 8; i += 32) to[i / 8 * PIECE + i % 8] = from && i < dk ? Q::at(from + i / Q::LEN * step, i % Q::LEN) : 0.0f;
    }
}

// Computes a chunk: leaves the sums of all teams in `stages`, and maxima and sums in `ends`. The tiles of K come before
// the tiles of V; two tiles are copied while a third is used. Returns false if no row sees a cell.
template <class K, class V, int R, int KC, int KL, int VC, int VL>
DEVICE bool attend_chunk(const DecodeShared& s, const DecodeTeams& teams, u32 base, const u32* seen) {
    const DecodeBlock& b = *s.block;
    u32 keys = same_in_warp(seen_tiles<KC>(seen)), values = KC == VC ? keys : same_in_warp(seen_tiles<VC>(seen)), keys_ahead = keys, values_ahead = values;
    if (!keys) return false;
    float out[R][8];
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < 8; j++) out[r][j] = 0.0f;
    u32 fill = 0;
#pragma unroll 1
    for (u32 n = 0; values; n++) {
        if (n >= STAGES - 1) {
            cp_async_wait<STAGES - 2>();
            __syncthreads();
        }
        if (values_ahead) {
            u32 of_values = keys_ahead == 0, ahead = of_values ? values_ahead : keys_ahead;
            const CacheTiles& cache = s.caches[of_values];
            stage_tile(cache, base + (__ffs(ahead) - 1) * (of_values ? VC : KC), of_values ? VC : KC, of_values ? VL : KL, s.stages + fill * b.stage);
            ahead &= ahead - 1;
            values_ahead = of_values ? ahead : values_ahead;
            keys_ahead = of_values ? 0 : ahead;
        }
        cp_async_commit();
        fill = fill == STAGES - 1 ? 0 : fill + 1;
        if (n < STAGES - 1) continue;
        // The tile that was copied two steps before is in the next slot.
        const u8* tile = s.stages + fill * b.stage;
        if (keys) {
            u32 in = (__ffs(keys) - 1) * KC;
            score_tile<K, R, KC>(s.caches[0], b, tile, base + in, s.query, s.rows, s.scores + in * R);
            keys &= keys - 1;
            if (keys) continue;
            __syncthreads();
            weigh<R>(s.scores, s.ends);
        } else {
            u32 in = (__ffs(values) - 1) * VC;
            add_tile<V, R, VC>(s.caches[1], teams, tile, base + in, s.scores + in * R, out);
            values &= values - 1;
        }
    }
    __syncthreads();
    store_teams<R>(teams, (float*)s.stages, out);
    __syncthreads();
    return true;
}

// The source of a row's values: the teams in shared memory, a range of chunks, or nothing if no cell is visible.
enum { TEAMS, CHUNKS, NOTHING };

// Finishes a row of a range of chunks: stores a partial result at the first chunk, or writes the result. A warp finishes
// a row.
template <class Y, int T, int R>
DEVICE void finish_row(const DecodeShared& s, const DecodeTeams& teams, const DecodeRange& of, u32 source, bool last, u32 r) {
    const DecodeBlock& b = *s.block;
    u32 lane = threadIdx.x % 32, width = same_in_warp(b.width);
    float ends[2] = {s.ends[2 * r], s.ends[2 * r + 1]}, *weights = s.scores + r * CHUNK;
    if (source == CHUNKS) join_ends(b.ends_of(r, of.from), of, weights, ends);
    float factor = last ? last_factor(ends[0], ends[1], s.rows[r].sink) : 0.0f;
    // All lanes run the same number of iterations.
#pragma unroll 1
    for (u32 from = 0; from < width; from += 128) {
        u32 first = from + 4 * lane;
        bool real = first < width;
        float4 e = {0.0f, 0.0f, 0.0f, 0.0f};
        if (real && source == TEAMS) e = sum_teams<R>(teams, (const float*)s.stages, b.zeros, r, first);
        if (real && source == CHUNKS) e = join_four(b.values_of(r, of.from) + first, width, of, weights);
        if (last)
            put_four<Y, T>(s.rows[r], factor, b.y_step, first, b.dv, e, real);
        else if (real && source != NOTHING)
            *(float4*)(b.values_of(r, of.from) + first) = e;
    }
    if (T == WITH_LSE && last && lane == 0) {
        float lse = last_lse(ends[0], ends[1], s.rows[r].sink);
        Y::put(s.rows[r].y + b.dv * b.y_step, &lse);
    }
    if (last || lane) return;
    float* to = b.ends_of(r, of.from);
    to[0] = ends[0];
    to[1] = ends[1];
}

// Finishes a chunk. The last block of a group of chunks joins the group at level 1. The last of these blocks joins the
// groups at level 2.
template <class Y, int T, int R> DEVICE void finish_chunk(const DecodeShared& s, const DecodeTeams& teams, u32 chunk, bool seen) {
    const DecodeBlock& b = *s.block;
    DecodeRange of = {chunk, 1, 1};
    bool last = same_in_warp(b.chunks == 1);
    u32 source = seen ? TEAMS : NOTHING;
#pragma unroll 1
    for (u32 level = 0;; level++) {
#pragma unroll 1
        for (u32 r = same_in_warp(threadIdx.x / 32), rows = same_in_warp(b.own); r < rows; r += WARPS) finish_row<Y, T, R>(s, teams, of, source, last, r);
        if (last) return;
        u32 each = 1u << b.fan, fans = (b.chunks + each - 1) >> b.fan, fan = level ? fans : chunk >> b.fan;
        of.from = level ? 0 : fan * each;
        of.count = level ? fans : min(b.chunks - of.from, each);
        of.step = level ? each : 1;
        last = level || fans == 1;
        source = CHUNKS;
        if (!last_of(b.counters + fan, of.count)) return;
    }
}

// Returns `n` modulo `count`. The quotient is usually 0, so that a loop is shorter than a division.
DEVICE u32 remainder_of(u32 n, u32 count) {
    if (count == 1) return 0;
    while (n >= count) n -= count;
    return n;
}

// The row, head and token of a lane.
struct DecodePlace {
    u32 head, token, stream;
    // True if the row exists; true if it is the first of a token in the block.
    bool real, first;
};

template <int R> DEVICE DecodePlace decode_place(const View* v, u32 group, u32 tile, u32 stream) {
    DecodePlace p;
    u32 n = tile * R + threadIdx.x % 32;
    p.token = 0;
    p.stream = stream;
    p.real = n < group * v[0].ne[1] && threadIdx.x % 32 < R;
    for (; p.real && n >= group; n -= group) p.token++;
    p.head = blockIdx.y * group + n;
    p.first = n == 0;
    return p;
}

// Writes the queries, masks and factors of rows. Sets bit `r` of `fresh` unless row `r` has the mask of the row before.
template <class S, int N, int R> DEVICE void set_sources(const View* v, const float* slopes, const DecodePlace& at, DecodeRow* rows, u32* fresh) {
    const View &q = v[0], &mask = v[3];
    u32 lane = threadIdx.x % 32;
    if (lane < R) {
        DecodeRow& row = rows[lane];
        row.query = at.real ? row_of(q, at.token, at.head, at.stream) : nullptr;
        row.mask = at.real ? row_of(mask, at.token, remainder_of(at.head, mask.ne[2]), remainder_of(at.stream, mask.ne[3])) : nullptr;
        row.slope = at.real ? slopes[at.head] : 0.0f;
        row.sink = N && at.real ? S::at(v[4].at + at.head * v[4].nb[0], 0) : minus_infinity();
    }
    u32 bits = __ballot_sync(0xffffffffu, lane == 0 || !at.real || at.first || mask.ne[2] != 1);
    if (lane == 0) *fresh = bits;
}

// Writes the addresses of results.
template <int T, int R> DEVICE void set_results(const View* v, const View* results, const DecodePlace& at, DecodeRow* rows) {
    const View &y = results[0], &made = results[T == WITH_TERMS];
    if (!at.real) return;
    DecodeRow& row = rows[threadIdx.x % 32];
    row.y = row_of(y, at.head, at.token, at.stream);
    row.terms = made.at + ((u64)at.stream * v[0].ne[1] + at.token) * made.nb[1];
    row.column = at.head * v[2].ne[0];
}

// The views of the counters and partial results follow the results.
template <int N, int T, int R> DEVICE DecodeBlock decode_block(const View* v, const DecodeParams& p, u32 group, u32 tile, u32 stream) {
    const View &q = v[0], &k = v[1], *results = v + 4 + N;
    u32 count = group * q.ne[1], tiles = (count + R - 1) / R, first = tile * R;
    u64 unit = (u64)stream * k.ne[2] + blockIdx.y;
    DecodeBlock b;
    for (u32 i = 0; i < 4; i++) b.zeros[i] = 0.0f;
    b.dk = q.ne[0];
    b.dv = v[2].ne[0];
    b.own = first < count ? min(count - first, (u32)R) : 0;
    b.cells = k.ne[1];
    b.chunks = max((b.cells + CHUNK - 1) / CHUNK, 1u);
    b.width = (b.dv + 3) / 4 * 4;
    b.pieces = (b.dv + 7) / 8;
    b.inverse = (65535 + b.pieces) / b.pieces;
    b.stage = p.stage;
    b.fan = p.fan;
    b.scale = p.scale;
    b.softcap = p.softcap;
    b.cap = p.cap;
    b.query_step = q.nb[0];
    b.mask_step = v[3].nb[0];
    b.y_step = results[0].nb[0];
    u64 row = (unit * count + first) * b.chunks;
    b.values = (float*)results[2 + (T == WITH_TERMS)].at;
    b.ends = b.values + (u64)q.ne[3] * k.ne[2] * count * b.chunks * b.width + row * 2;
    b.values += row * b.width;
    b.counters = (u32*)results[1 + (T == WITH_TERMS)].at + (unit * tiles + tile) * (((b.chunks + (1u << p.fan) - 1) >> p.fan) + 1);
    return b;
}

// `N` is 1 if the row has a sink; `T` is `PLAIN`, `WITH_TERMS` or `WITH_LSE`. `KC` and `VC` are the cells per tile
// of K and V; `KL` and `VL` lanes copy a row. First, all views are copied to shared memory with one load per thread. Then
// each warp prepares a part.
template <class Q, class K, class V, class M, class S, class Y, int T, int N, int R, int KC, int KL, int VC, int VL>
DEVICE void flash_decode(const View* all, const u8* params) {
    DYN_SHARED(float, shared);
    enum { VIEWS = 7 + N + (T == WITH_TERMS) };
    SHARED(View, v, VIEWS);
    SHARED(DecodeParams, p, 1);
    SHARED(DecodeBlock, block, 1);
    SHARED(DecodeRow, rows, R);
    SHARED(CacheTiles, caches, 2);
    SHARED(float, ends, 2 * R);
    SHARED(u32, seen, WARPS + 1);
    if (threadIdx.x < VIEWS * sizeof(View) / 8)
        ((u64*)v)[threadIdx.x] = ((const u64*)all)[threadIdx.x];
    else if (threadIdx.x >= 96 && threadIdx.x - 96 < sizeof(DecodeParams) / 4)
        ((u32*)p)[threadIdx.x - 96] = ((const u32*)params)[threadIdx.x - 96];
    __syncthreads();
    const View &q = v[0], &k = v[1];
    u32 chunk = blockIdx.x, chunks = max((k.ne[1] + CHUNK - 1) / CHUNK, 1u), kv_heads = k.ne[2];
    if (chunk >= chunks || q.ne[1] == 0 || q.ne[2] == 0 || v[2].ne[0] == 0 || blockIdx.y >= kv_heads) return;
    u32 tile = blockIdx.z, stream = 0, warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = q.ne[2] / kv_heads;
    for (; tile >= p->tiles; tile -= p->tiles) stream++;
    if (stream >= q.ne[3]) return;
    if (warp < 2) {
        DecodePlace at = decode_place<R>(v, group, tile, stream);
        if (warp == 0)
            set_results<T, R>(v, v + 4 + N, at, rows);
        else
            set_sources<S, N, R>(v, (const float*)(params + sizeof(DecodeParams)), at, rows, seen + WARPS);
    } else if (warp == 2) {
        if (lane == 0) block[0] = decode_block<N, T, R>(v, *p, group, tile, stream);
    } else if (lane < 2) {
        u32 len = lane ? V::LEN : K::LEN, bytes = lane ? V::BYTES : K::BYTES;
        caches[lane] = cache_tiles(v[1 + lane], len, bytes, blockIdx.y, stream, lane ? VL : KL);
    }
    __syncthreads();
    if (block->own == 0) return;
    float* query = shared + R * CHUNK;
    const DecodeShared s = {shared, query, (u8*)(query + (block->dk + 7) / 8 * (8 * R + 4)), block, rows, caches, ends};
    load_queries<Q, R>(s);
    const DecodeTeams teams = decode_teams(*block);
    u32 fresh = seen[WARPS];
#pragma unroll 1
    for (; chunk < chunks; chunk += gridDim.x) {
        u32 base = chunk * CHUNK;
        load_masks<M, R>(rows, fresh, block->mask_step, base + threadIdx.x, block->cells, s.scores, seen);
        if (threadIdx.x < 2 * R) ends[threadIdx.x] = threadIdx.x % 2 ? 0.0f : minus_infinity();
        __syncthreads();
        bool any = attend_chunk<K, V, R, KC, KL, VC, VL>(s, teams, base, seen);
        finish_chunk<Y, T, R>(s, teams, chunk, any);
        __syncthreads();
    }
}
