// Products with weights in planes. Sums over a group of 32 elements are exact integers. All kernels in this file add
// pairs of groups in the same order, so results have the same bits. Lane `l` of 32 adds pairs `l`, `l + 32`, …; a
// butterfly reduction adds the sums of the lanes.

struct Column {
    u32 c, i2, i3;
};

// The optional addition of broadcast tensors to a sum.
struct NoEpilogue {
    enum { OPERANDS = 0 };
    DEVICE float of(const View*, float sum, u32, const Column&) { return sum; }
};
template <class R, class More = NoEpilogue> struct AddTensor {
    enum { OPERANDS = 1 + More::OPERANDS };
    DEVICE float of(const View* r, float sum, u32 row, const Column& at) {
        sum += element<R>(*r, row_of(*r, wrapped(at.c, r->ne[1]), wrapped(at.i2, r->ne[2]), wrapped(at.i3, r->ne[3])), wrapped(row, r->ne[0]));
        return More::of(r + 1, sum, row, at);
    }
};

// The index of a block among the blocks that share the rows, and the number of these blocks.
struct Blocks {
    u32 at, count;
};
DEVICE Blocks all_blocks() {
    Blocks b = {blockIdx.x, gridDim.x};
    return b;
}

template <class X> DEVICE void terms(const View* v) {
    const View x = v[0], q = v[1];
    u32 groups = x.ne[0] / 32, most = groups_of_terms(x.ne[0]);
    u64 all = rows_of(x) * most;
    // All lanes of a warp run the same number of iterations.
    for (u64 first = (thread_number() & ~31ull) / 8; first < all; first += thread_count() / 8) {
        u64 unit = first + threadIdx.x % 32 / 8;
        bool real = unit < all;
        Place at = place_of(real ? unit : 0, most, x);
        u32 group = at.i[0], from = group * 32 + threadIdx.x % 8 * 4;
        const u8* row = row_of(x, at.i[1], at.i[2], at.i[3]);
        float e[4];
        for (u32 i = 0; i < 4; i++) e[i] = group < groups ? element<X>(x, row, from + i) : 0.0f;
        put_terms(e, group, row_of(q, at.i[1], at.i[2], at.i[3]), real);
    }
}

// The scale and the sums of a group's terms.
struct TermSums {
    float d, sum;
    i32 half[2];
};
DEVICE TermSums sums_of(const u8* tile, u32 in, u32 half) {
    uint4 v = load_global(terms_at(tile, in, SUMS + half));
    TermSums x;
    x.d = u2f(v.x);
    x.sum = u2f(v.y);
    x.half[0] = (i32)v.z;
    x.half[1] = (i32)v.w;
    return x;
}

// Sums of groups that share a head (a common scale), before multiplication by the head.
struct HeadSums {
    float d, m;
};

// Returns the contribution of the zero code to an integer sum over a group, or half a group if halves have separate
// steps.
template <class P> DEVICE i32 of_zero(const TermSums& x, u32 half) {
    return P::ZERO ? P::ZERO * (P::TWO ? x.half[half] : x.half[0] + x.half[1]) : 0;
}

// `c0` and `c1` are the sums of (code - ZERO) times terms.
template <class P> DEVICE void add_group(HeadSums& to, u32 steps, i32 c0, i32 c1, const TermSums& x) {
    float v;
    if (P::TWO) {
        v = fmaf(P::step(steps, 0), (float)c0, P::step(steps, 1) * (float)c1);
        if (P::LEAST) {
            float m = fmaf(P::least(steps, 0), (float)x.half[0], P::least(steps, 1) * (float)x.half[1]);
            to.m = fmaf(x.d, m, to.m);
        }
    } else {
        v = P::STEPS ? P::step(steps, 0) * (float)c0 : (float)c0;
        if (P::LEAST) to.m = P::STEPS ? fmaf(P::least(steps, 0), x.sum, to.m) : to.m + x.sum;
    }
    to.d = fmaf(x.d, v, to.d);
}

template <class P> DEVICE float add_head(float to, u32 head, const HeadSums& sums) {
    to = P::HEAD ? fmaf(P::d(head), sums.d, to) : to + sums.d;
    return P::LEAST ? fmaf(-P::m(head), sums.m, to) : to;
}

template <class P> DEVICE float add_heads(float to, const PairScales<P>& s, const HeadSums* groups) {
    to = add_head<P>(to, s.heads[0], groups[0]);
    return P::SPAN > 1 || P::HEAD == 0 ? to : add_head<P>(to, s.heads[1], groups[1]);
}
// Returns the index of a group's sums. Groups with a common head use index 0.
template <class P> DEVICE u32 head_of(u32 half) { return P::SPAN > 1 || P::HEAD == 0 ? 0 : half; }

DEVICE void dot(const u32* words, const uint4& x, i32* sum) {
    *sum = __dp4a((i32)words[0], (i32)x.x, *sum);
    *sum = __dp4a((i32)words[1], (i32)x.y, *sum);
    *sum = __dp4a((i32)words[2], (i32)x.z, *sum);
    *sum = __dp4a((i32)words[3], (i32)x.w, *sum);
}

// The codes of a group's terms: 32 of q, then 32 of r.
struct GroupTerms {
    uint4 q[2], r[2];
};
DEVICE GroupTerms terms_of(const u8* tile, u32 in, u32 half) {
    GroupTerms t;
    for (u32 i = 0; i < 2; i++) t.q[i] = load_global(terms_at(tile, in, CODES + 2 * half + i));
    for (u32 i = 0; i < 2; i++) t.r[i] = load_global(terms_at(tile, in, RESTS + 2 * half + i));
    return t;
}

// Computes the sums of (code - ZERO) times the terms of a group, or of its halves if these have separate steps.
template <class P> DEVICE void dot_group(const u32* words, const GroupTerms& t, const TermSums& x, i32* c) {
    dot(words, t.q[0], &c[0]);
    dot(words + 4, t.q[1], &c[P::TWO]);
    for (u32 i = 0; i <= P::TWO; i++) c[i] = 254 * c[i] - of_zero<P>(x, i);
    dot(words, t.r[0], &c[0]);
    dot(words + 4, t.r[1], &c[P::TWO]);
}

// Adds pair `in` of a tile to the sums of `R` rows.
template <class P, int R> DEVICE void add_pair(const Pair<P>* pairs, const u8* tile, i32 in, float* sums) {
    HeadSums groups[R][2];
#pragma unroll
    for (int r = 0; r < R; r++) groups[r][0].d = groups[r][0].m = groups[r][1].d = groups[r][1].m = 0.0f;
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        const GroupTerms half_terms = terms_of(tile, in, half);
        TermSums x = sums_of(tile, in, half);
#pragma unroll
        for (int r = 0; r < R; r++) {
            u32 words[8];
            group_words<P>(pairs[r], half, tables_of<P>(0), words);
            i32 c[2] = {0, 0};
            dot_group<P>(words, half_terms, x, c);
            add_group<P>(groups[r][head_of<P>(half)], steps_of<P>(pairs[r].scales, half), c[0], c[1], x);
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++) sums[r] = add_heads<P>(sums[r], pairs[r].scales, groups[r]);
}

// Adds the pairs of a lane, `lanes` apart, to the sums of `R` rows. Full tiles have a constant length.
template <class P, int R> DEVICE void add_pairs(const PlaneRow* at, u32 pairs, const u8* column, u32 lanes, float* sums) {
    u32 lane = threadIdx.x % lanes;
    i32 top = 0;
    Pair<P> loaded[R];
    if (lanes == TILE) {
        const u8* mine = (const u8*)terms_at(column, lane, 0);
        for (; top + TILE <= (i32)pairs; top += TILE, mine += TILE_BYTES) {
            PairTile tile = {top, TILE};
#pragma unroll
            for (int r = 0; r < R; r++) loaded[r] = load_pair<P>(at[r], tile, lane);
            add_pair<P, R>(loaded, mine, 0, sums);
        }
    }
    // With fewer than 32 lanes, all pairs are in one tile.
    for (; top < (i32)pairs; top += TILE) {
        PairTile tile = tile_of(top, pairs);
        for (i32 in = lane; in < tile.len; in += lanes) {
            // Round in the same order as 32 lanes do, with one lane per pair.
            float before[R];
#pragma unroll
            for (int r = 0; r < R; r++) {
                before[r] = sums[r];
                if (lanes < TILE) sums[r] = 0.0f;
                loaded[r] = load_pair<P>(at[r], tile, in);
            }
            add_pair<P, R>(loaded, terms_tile(column, top), in, sums);
#pragma unroll
            for (int r = 0; r < R; r++) sums[r] = lanes < TILE ? before[r] + sums[r] : sums[r];
        }
    }
}

// Computes `out = a · column` for the column of `place`. `lanes` threads share `R` rows. Row `matrix` of the weight is
// the first row of the matrix.
template <class P, class E, class Y, int R>
DEVICE void one_column(const View& a, u64 matrix, const u8* column, const View& y, u8* out, u32 lanes, const View* more, const Column& place, Blocks b) {
    u32 lane = threadIdx.x % lanes, teams = blockDim.x / lanes, pairs = pairs_of(a), rows = a.ne[1];
    for (u32 first = b.at * teams * R; first < rows; first += b.count * teams * R) {
        u32 mine = first + threadIdx.x / lanes * R;
        PlaneRow at[R];
        float sums[R];
#pragma unroll
        for (int r = 0; r < R; r++) {
            at[r] = plane_row<P>(a, matrix + min(mine + r, rows - 1));
            sums[r] = 0.0f;
        }
        add_pairs<P, R>(at, pairs, column, lanes, sums);
#pragma unroll
        for (int r = 0; r < R; r++) {
            float sum = lanes_sum(sums[r], lanes);
            if (mine + r < rows && lane == 0) {
                sum = E::of(more, sum, mine + r, place);
                Y::put(out + (u64)(mine + r) * y.nb[0], &sum);
            }
        }
    }
}

// Returns the first row of the matrix for a batch.
DEVICE u64 matrix_of(const View& a, const View& q, u32 i2, u32 i3) {
    return (u64)a.ne[1] * (i2 / (q.ne[2] / a.ne[2]) + (u64)a.ne[2] * (i3 / (q.ne[3] / a.ne[3])));
}

template <class P, class E, class Y, int R> DEVICE void columns_of(const View& a, const View& q, const View* more, const View& y, u32 lanes, Blocks b) {
    u32 batches = q.ne[2] * q.ne[3];
    for (u32 batch = blockIdx.z; batch < batches; batch += gridDim.z) {
        u32 i2 = batch % q.ne[2], i3 = batch / q.ne[2];
        u64 matrix = matrix_of(a, q, i2, i3);
        for (u32 column = blockIdx.y; column < q.ne[1]; column += gridDim.y) {
            Column place = {column, i2, i3};
            one_column<P, E, Y, R>(a, matrix, row_of(q, column, i2, i3), y, row_of(y, column, i2, i3), lanes, more, place, b);
        }
    }
}
// Prefetches the first weights of a block: `count` of `rows` rows from `first` on, one line per thread. Earlier
// launches may still run, so this function accesses weights only.
template <class P> DEVICE void rows_prefetch(const View& a, u64 first, u32 rows, u32 count, u32 block) {
    const u32 LINE = 128;
    u32 each = count < blockDim.x ? blockDim.x / count : 1, row = block * count + threadIdx.x / each, line = threadIdx.x % each * LINE;
    if (threadIdx.x / each >= count || row >= rows) return;
    PlaneRow at = plane_row<P>(a, first + row);
    u32 pairs = pairs_of(a);
    if (line < pairs * (P::LOW * 8)) prefetch_l2(at.low + line);
    if (P::HIGH && line < pairs * (P::HIGH * 8)) prefetch_l2(at.high + line);
    if (P::STEPS && line == 0) prefetch_l2(at.steps);
    if (P::HEAD && line == 0) prefetch_l2(at.heads);
}

// Only blocks of the first column prefetch: other columns read the same rows.
template <class P, int R> DEVICE void columns_prefetch(const View& a, u32 lanes, Blocks b) {
    if (blockIdx.y == 0 && blockIdx.z == 0) rows_prefetch<P>(a, 0, a.ne[1], blockDim.x / lanes * R, b.at);
}
template <class P, class Y, int R> DEVICE void plane_columns_prefetch(const View* v, const u8* params) {
    columns_prefetch<P, R>(v[0], ((const ProductParams*)params)->lanes, all_blocks());
}
template <class P, class E, class Y, int R> DEVICE void plane_columns_add_prefetch(const View* v, const u8* params) {
    columns_prefetch<P, R>(v[0], ((const ProductParams*)params)->lanes, all_blocks());
}
template <class P, class Y, int R> DEVICE void plane_columns(const View* v, const u8* params) {
    const View a = v[0], q = v[1], y = v[2];
    columns_of<P, NoEpilogue, Y, R>(a, q, nullptr, y, ((const ProductParams*)params)->lanes, all_blocks());
}
template <class P, class E, class Y, int R> DEVICE void plane_columns_add(const View* v, const u8* params) {
    const View a = v[0], q = v[1], y = v[2 + E::OPERANDS];
    columns_of<P, E, Y, R>(a, q, v + 2, y, ((const ProductParams*)params)->lanes, all_blocks());
}

// Computes `y[:, slot, token] = w[ids[slot, token]] · x[:, slot, token]`; 0 for experts outside the window. `E` adds
// row `expert` of its tensors along axis 1.
template <class P, class E, class I, class Y, int R> DEVICE void plane_experts(const View* v, const u8* params, Fault* fault, u32 launch) {
    const View a = v[0], q = v[1], ids = v[2], y = v[3 + E::OPERANDS];
    const ProductParams p = *(const ProductParams*)params;
    u32 entries = ids.ne[0] * ids.ne[1];
    for (u32 n = blockIdx.y; n < entries; n += gridDim.y) {
        Entry entry = entry_of(ids, y, n);
        u64 expert;
        if (!find_expert_or_clear<I, Y>(a, ids, y, p, entry, fault, launch, &expert)) continue;
        const u8* column = row_of(q, entry.slot % q.ne[1], entry.token, 0);
        Column place = {(u32)expert, 0, 0};
        one_column<P, E, Y, R>(a, expert * a.ne[1], column, y, entry.out, p.lanes, v + 3, place, all_blocks());
    }
}

// Computes integer sums of 16 rows and 8 columns over a group, or half a group if halves have separate steps.
DEVICE void tile_sums(const u32* a, const u32* codes, const u32* rests, i32* c) {
    i32 q[4] = {0, 0, 0, 0}, r[4] = {0, 0, 0, 0};
    mma_m16n8k32_s8(q, a, codes);
    mma_m16n8k32_s8(r, a, rests);
#pragma unroll
    for (int i = 0; i < 4; i++) c[i] = 254 * q[i] + r[i];
}

// Adds pair `in` of a tile to 16 rows and 8 columns; all lanes must call it. A lane adds to rows `lane / 4` and
// `lane / 4 + 8`, and to columns `lane % 4 * 2` and the next. `codes` points to the column whose codes the lane loads,
// `sums` to the terms of its two columns. Pointers are null after the last column.
template <class P>
DEVICE void add_tile(const PlaneRow* rows, const PairTile& tile, u32 in, const u8* codes, const u8* const* sums, float* out) {
    u32 t = threadIdx.x % 4;
    PairScales<P> scales[2] = {load_scales<P>(rows[0], tile.first + in), load_scales<P>(rows[1], tile.first + in)};
    HeadSums groups[4][2];
    for (u32 i = 0; i < 4; i++) groups[i][0].d = groups[i][0].m = groups[i][1].d = groups[i][1].m = 0.0f;
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 q[2] = {0, 0}, r[2] = {0, 0}, a[4];
        if (codes) {
            for (u32 i = 0; i < 2; i++) {
                q[i] = load_global((const u32*)terms_at(codes, in, CODES + 2 * half + i) + t);
                r[i] = load_global((const u32*)terms_at(codes, in, RESTS + 2 * half + i) + t);
            }
        }
        for (u32 i = 0; i < 4; i++) a[i] = group_word<P>(rows[i % 2], tile, in, half, t + i / 2 * 4);
        i32 c0[4], c1[4] = {0, 0, 0, 0};
        if (P::TWO) {
            u32 first[4] = {a[0], a[1], 0, 0}, second[4] = {0, 0, a[2], a[3]};
            tile_sums(first, q, r, c0);
            tile_sums(second, q, r, c1);
        } else {
            tile_sums(a, q, r, c0);
        }
        for (u32 c = 0; c < 2; c++) {
            if (!sums[c]) continue;
            TermSums x = sums_of(sums[c], in, half);
            for (u32 i = c; i < 4; i += 2) {
                i32 d0 = c0[i] - of_zero<P>(x, 0), d1 = P::TWO ? c1[i] - of_zero<P>(x, 1) : 0;
                add_group<P>(groups[i][head_of<P>(half)], steps_of<P>(scales[i / 2], half), d0, d1, x);
            }
        }
    }
    for (u32 i = 0; i < 4; i++) out[i] = add_heads<P>(out[i], scales[i / 2], groups[i]);
}

// Pointers to terms in a tile: the column whose codes the lane loads, and the two columns that it adds to. Pointers are
// null after the last column.
struct TileColumns {
    const u8* codes;
    const u8* sums[2];
};
DEVICE TileColumns tile_columns(const View& q, const Column& from) {
    u32 lane = threadIdx.x % 32, wanted = from.c + lane / 4, first = from.c + lane % 4 * 2;
    TileColumns out;
    out.codes = wanted < q.ne[1] ? row_of(q, wanted, from.i2, from.i3) : nullptr;
    for (u32 i = 0; i < 2; i++) out.sums[i] = first + i < q.ne[1] ? row_of(q, first + i, from.i2, from.i3) : nullptr;
    return out;
}

// Computes 16 rows from `top` on times 8 columns in a block of eight warps. Each warp adds every eighth pair in four
// sums, which match the sums of 32 lanes. Thread `8 r + c` of the first 128 receives row `r` of column `c`.
template <class P> DEVICE float tile_product(const View& a, u64 matrix, u32 rows, const TileColumns& columns, u32 top) {
    SHARED(float, parts, 8 * 128);
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, pairs = pairs_of(a);
    PlaneRow at[2];
    for (u32 i = 0; i < 2; i++) at[i] = plane_row<P>(a, matrix + min(top + lane / 4 + 8 * i, rows - 1));
    float quarter[4][4];
#pragma unroll
    for (u32 n = 0; n < 4; n++) {
        for (u32 i = 0; i < 4; i++) quarter[n][i] = 0.0f;
        for (u32 above = 0; above + warp + 8 * n < pairs; above += TILE) {
            const u8* sums[2];
            for (u32 i = 0; i < 2; i++) sums[i] = columns.sums[i] ? terms_tile(columns.sums[i], above) : nullptr;
            const u8* codes = columns.codes ? terms_tile(columns.codes, above) : nullptr;
            add_tile<P>(at, tile_of(above, pairs), warp + 8 * n, codes, sums, quarter[n]);
        }
    }
    for (u32 i = 0; i < 4; i++) {
        float sum = (quarter[0][i] + quarter[2][i]) + (quarter[1][i] + quarter[3][i]);
        parts[warp * 128 + (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum;
    }
    __syncthreads();
    float sum = 0.0f;
    if (threadIdx.x < 128) {
        const float* p = parts + threadIdx.x;
        sum = ((p[0] + p[512]) + (p[256] + p[768])) + ((p[128] + p[640]) + (p[384] + p[896]));
    }
    __syncthreads();
    return sum;
}

// True if the thread has an element of the tile. Sets the column and row of the element.
DEVICE bool of_tile(const View& y, u32 top, Column& at, u32* row) {
    *row = top + threadIdx.x / 8;
    at.c += threadIdx.x % 8;
    return threadIdx.x < 128 && *row < y.ne[0] && at.c < y.ne[1];
}

template <class P, class E, class Y> DEVICE void tiles_of(const View& a, const View& q, const View* more, const View& y, Blocks b) {
    u32 batches = q.ne[2] * q.ne[3];
    for (u32 batch = blockIdx.z; batch < batches; batch += gridDim.z) {
        Column from = {0, batch % q.ne[2], batch / q.ne[2]};
        u64 matrix = matrix_of(a, q, from.i2, from.i3);
        for (from.c = blockIdx.y * 8; from.c < q.ne[1]; from.c += gridDim.y * 8) {
            TileColumns columns = tile_columns(q, from);
            for (u32 top = b.at * 16; top < a.ne[1]; top += b.count * 16) {
                float sum = tile_product<P>(a, matrix, a.ne[1], columns, top);
                Column at = from;
                u32 row;
                if (!of_tile(y, top, at, &row)) continue;
                sum = E::of(more, sum, row, at);
                Y::put(row_of(y, at.c, at.i2, at.i3) + (u64)row * y.nb[0], &sum);
            }
        }
    }
}
template <class P, class Y> DEVICE void plane_tiles(const View* v, const u8*) {
    const View a = v[0], q = v[1], y = v[2];
    tiles_of<P, NoEpilogue, Y>(a, q, nullptr, y, all_blocks());
}
template <class P, class E, class Y> DEVICE void plane_tiles_add(const View* v, const u8*) {
    const View a = v[0], q = v[1], y = v[2 + E::OPERANDS];
    tiles_of<P, E, Y>(a, q, v + 2, y, all_blocks());
}

struct PlaneWindow {
    u32 set;
    u32 start;
    u32 len;
};

// Reads rows of a weight in planes by index; 0 outside the window.
template <class P, class I, class Y> DEVICE void plane_rows(const View* v, const u8* params, Fault* fault, u32 launch) {
    const View a = v[0], ids = v[1], y = v[2];
    const PlaneWindow window = *(const PlaneWindow*)params;
    u32 pairs = pairs_of(a);
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place p = place_of(i, y.ne[0], y);
        i64 id = I::integer(row_of(ids, p.i[2], p.i[3], 0) + p.i[1] * ids.nb[0]);
        i64 row = id - (i64)window.start;
        bool wrong = id < 0 || (!window.set && id >= (i64)a.ne[1]);
        if (wrong) report(fault, launch, id, a.ne[1]);
        float out = 0.0f;
        if (!wrong && row >= 0 && row < (i64)(window.set ? window.len : a.ne[1])) {
            u64 all = (u64)row + (u64)a.ne[1] * (p.i[2] + (u64)a.ne[2] * p.i[3]);
            out = plane_element<P>(plane_row<P>(a, all), pairs, p.i[0]);
        }
        Y::put(address(y, p), &out);
    }
}
