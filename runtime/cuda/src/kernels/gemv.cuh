// Products of weights in planes with one column, by warps. Rows have at least 32 pairs, so a warp has a pair for each lane.
// Sums are added in the order of `add_pairs`.
//
// Weights do not depend on earlier kernels, so a kernel loads its first pairs before it waits for them. A pair of the next tile
// replaces a pair as soon as it is decoded, so that loads are always in flight.

// A weight as a kernel argument: the addresses of the planes, the bytes of a row in each plane, the pairs of a row, and the rows.
struct PlaneWeight {
    const u8 *low, *high, *steps, *heads;
    u32 of_low, of_high, of_steps, of_heads;
    u32 pairs, rows;
    u32 blocks; // of this product and of all earlier products of a group
    u32 zero;
};
template <int N> struct PlaneWeights {
    PlaneWeight of[N];
};

// The sums of a warp's `R` rows. If `TAIL` is 1, the last tile of a row has fewer than 32 pairs.
template <class P, int R, int TAIL> struct WarpRows {
    // The addresses of this lane's next pair.
    PlaneRow at[R];
    Pair<P> pairs[R];
    Tables tables;
    // The pairs of this lane, and the pairs of a row from the next tile on.
    i32 count, left;

    // `ahead` is the number of tiles from the addresses to the tile that is loaded.
    DEVICE_MEMBER void load_low(int r, u32 c, u32 ahead) {
        i32 len = TAIL ? min(left, (i32)TILE) : (i32)TILE;
        pairs[r].low[c] = load_once((const uint4*)at[r].low + (ahead * (TILE * P::CHUNKS) + (i32)c * len));
    }
    DEVICE_MEMBER void load_high(int r, u32 ahead) {
        if (P::HIGH == 1) {
            uint2 high = load_global((const uint2*)at[r].high + ahead * TILE);
            pairs[r].high[0] = high.x;
            pairs[r].high[1] = high.y;
        }
        if (P::HIGH == 2) {
            uint4 high = load_once((const uint4*)at[r].high + ahead * TILE);
            pairs[r].high[0] = high.x;
            pairs[r].high[1] = high.y;
            pairs[r].high[2] = high.z;
            pairs[r].high[3] = high.w;
        }
    }
    DEVICE_MEMBER void load_scales_of(int r, u32 ahead) { pairs[r].scales = load_scales<P>(at[r], ahead * TILE); }

    // Moves the addresses by two tiles.
    DEVICE_MEMBER void advance() {
#pragma unroll
        for (int r = 0; r < R; r++) {
            at[r].low = opaque(at[r].low + 2 * TILE * P::CHUNKS * 16);
            if (P::HIGH) at[r].high = opaque(at[r].high + 2 * TILE * P::HIGH * 8);
            if (P::STEPS) at[r].steps = opaque(at[r].steps + 2 * TILE * P::STEPS * 2);
            if (P::HEAD) at[r].heads = opaque(at[r].heads + (P::SPAN > 1 ? 2 * TILE * 2 / P::SPAN * P::HEAD : 2 * TILE * 2 * P::HEAD));
        }
    }

    // Sets `n` of the rows, from `to` on, to the rows of a weight from `row` on.
    DEVICE_MEMBER void point(int to, int n, const PlaneWeight& of, u32 row) {
        u32 lane = threadIdx.x % 32;
        tables = tables_of<P>(of.zero & lane);
        PlaneRow next = {of.low + (u64)row * of.of_low + lane * 16, nullptr, nullptr, nullptr};
        if (P::HIGH) next.high = of.high + (u64)row * of.of_high + lane * (P::HIGH * 8);
        if (P::STEPS) next.steps = of.steps + (u64)row * of.of_steps + lane * (P::STEPS * 2);
        if (P::HEAD) next.heads = of.heads + (u64)row * of.of_heads + (P::SPAN > 1 ? lane * 2 / P::SPAN * P::HEAD : lane * 2 * P::HEAD);
#pragma unroll
        for (int r = to; r < to + n; r++) {
            at[r] = next;
            next.low = opaque(next.low + of.of_low);
            if (P::HIGH) next.high = opaque(next.high + of.of_high);
            if (P::STEPS) next.steps = opaque(next.steps + of.of_steps);
            if (P::HEAD) next.heads = opaque(next.heads + of.of_heads);
        }
    }

    // Loads the first pairs of rows with `of_row` pairs.
    DEVICE_MEMBER void load(u32 of_row) {
        left = of_row;
        count = TAIL ? (of_row - threadIdx.x % 32 + TILE - 1) / TILE : of_row / TILE;
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
            for (u32 c = 0; c < P::CHUNKS; c++) load_low(r, c, 0);
            load_high(r, 0);
        }
#pragma unroll
        for (int r = 0; r < R; r++) load_scales_of(r, 0);
    }

    // Adds the loaded pairs, times the terms of `tile`. If the lane has another pair, loads it from `ahead` tiles ahead.
    DEVICE_MEMBER bool add(const u8* tile, u32 ahead, float* sums) {
        bool more = --count > 0;
        left -= TILE;
        HeadSums groups[R][2];
#pragma unroll
        for (int r = 0; r < R; r++) groups[r][0].d = groups[r][0].m = groups[r][1].d = groups[r][1].m = 0.0f;
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            const GroupTerms half_terms = terms_of(tile, 0, half);
            TermSums x = sums_of(tile, 0, half);
#pragma unroll
            for (int r = 0; r < R; r++) {
                u32 words[8];
                group_words<P>(pairs[r], half, tables, words);
                if (more && P::LOW != 8) load_behind(r, half, ahead);
                i32 c[2] = {0, 0};
                dot_group<P>(words, half_terms, x, c);
                if (more && P::LOW == 8) load_behind(r, half, ahead);
                add_group<P>(groups[r][head_of<P>(half)], steps_of<P>(pairs[r].scales, half), c[0], c[1], x);
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            sums[r] = add_heads<P>(sums[r], pairs[r].scales, groups[r]);
            if (more) load_scales_of(r, ahead);
        }
        return more;
    }
    // Loads what replaces the codes of a group.
    DEVICE_MEMBER void load_behind(int r, u32 half, u32 ahead) {
        const u32 each = P::CHUNKS / 2;
        if (each == 0 && half == 1) load_low(r, 0, ahead);
#pragma unroll
        for (u32 c = half * each; c < (half + 1) * each; c++) load_low(r, c, ahead);
        if (half == 1) load_high(r, ahead);
    }

    DEVICE_MEMBER void add_all(const u8* column, float* sums) {
#pragma unroll
        for (int r = 0; r < R; r++) sums[r] = 0.0f;
        const u8* tile = (const u8*)terms_at(column, threadIdx.x % 32, 0);
#pragma unroll 1
        for (;; tile = opaque(tile + 2 * TILE_BYTES)) {
            if (!add(tile, 1, sums)) break;
            advance();
            if (!add(tile + TILE_BYTES, 0, sums)) break;
        }
    }
};

// Returns the sum of row `lane / (32 / R) % R` over all lanes, with the bits of `warp_sum`. `R` is 1, 2 or 4.
template <int R> DEVICE float rows_sum(const float* sums) {
    float kept[R];
#pragma unroll
    for (int r = 0; r < R; r++) kept[r] = sums[r];
    u32 o = 16;
#pragma unroll
    for (int n = R; n > 1; n /= 2, o /= 2) {
        bool upper = threadIdx.x & o;
#pragma unroll
        for (int r = 0; r < n / 2; r++) {
            float mine = upper ? kept[r + n / 2] : kept[r], other = upper ? kept[r] : kept[r + n / 2];
            kept[r] = mine + __shfl_xor_sync(0xffffffffu, other, o);
        }
    }
    float sum = kept[0];
    for (; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    return sum;
}

// A product of a weight and one column, in blocks of whole warps. A warp computes `R` rows; the last warp may share rows with the
// warp before it.
template <class P, class E, class Y, int TAIL, int R> struct Gemv {
    enum { OPERANDS = 1 + E::OPERANDS };
    // `more` has the tensors that `E` adds to the sums.
    DEVICE void run(const PlaneWeight& weight, u32 block, const View* q, const View* more, const View* y) {
        u32 row = (block * (blockDim.x / 32) + threadIdx.x / 32) * R, first = min(row, weight.rows - R);
        WarpRows<P, R, TAIL> rows;
        rows.point(0, R, weight, first);
        rows.load(weight.pairs);
        wait_dependencies();
        if (q->ne[1] == 0) return;
        float sums[R];
        rows.add_all(q->at, sums);
        float sum = rows_sum<R>(sums);
        u32 own = first + threadIdx.x % 32 / (32 / R);
        if (threadIdx.x % (32 / R) != 0 || own < row) return;
        Column place = {0, 0, 0};
        sum = E::of(more, sum, own, place);
        Y::put(y->at + own * y->nb[0], &sum);
    }
};

template <class P, class E, class Y, int TAIL, int R> DEVICE void gemv(const View* v, const u8*, const PlaneWeights<1>& weights) {
    Gemv<P, E, Y, TAIL, R>::run(weights.of[0], blockIdx.x, v + 1, v + 2, v + 2 + E::OPERANDS);
}

// Products of several weights with the same column. Each product has its own blocks. `in` has the weight and the added tensors.
template <class... Parts> struct GroupedGemv {
    enum { OPERANDS = 0 };
    DEVICE void run(const PlaneWeight*, u32, const View*, const View*, const View*) {}
};
template <class J, class... Rest> struct GroupedGemv<J, Rest...> {
    enum { OPERANDS = J::OPERANDS + GroupedGemv<Rest...>::OPERANDS };
    DEVICE void run(const PlaneWeight* weight, u32 before, const View* q, const View* in, const View* y) {
        if (sizeof...(Rest) == 0 || blockIdx.x < weight->blocks)
            J::run(*weight, blockIdx.x - before, q, in + 1, y);
        else
            GroupedGemv<Rest...>::run(weight + 1, weight->blocks, q, in + J::OPERANDS, y + 1);
    }
};
template <class... Parts> DEVICE void grouped_gemv(const View* v, const u8*, const PlaneWeights<sizeof...(Parts)>& weights) {
    GroupedGemv<Parts...>::run(weights.of, 0, v, v + 1, v + 1 + GroupedGemv<Parts...>::OPERANDS);
}

// Computes `y = f(gate x, up x)`. A warp computes two rows of both weights at a time. A block computes 32 rows with terms (`T`),
// else two per warp. If `H` is 1, the views have one weight, whose halves are gate and up.
template <class P, class F, class Y, int TAIL, int H, int T> DEVICE void glu_gemv(const View* v, const u8* params, const PlaneWeights<2>& weights) {
    SHARED(float, kept, 32);
    const View *q = v + 2 - H, *y = v + 3 - H;
    u32 rows = weights.of[0].rows, lane = threadIdx.x % 32, once = blockDim.x / 32 * 2, each = T ? 32 : once, top = blockIdx.x * each;
    for (u32 from = 0; from < each; from += once) {
        u32 row = top + from + threadIdx.x / 32 * 2, first = min(row, rows - 2);
        WarpRows<P, 4, TAIL> both;
        both.point(0, 2, weights.of[0], first);
        both.point(2, 2, weights.of[1], first);
        both.load(weights.of[0].pairs);
        if (from == 0) wait_dependencies();
        if (q->ne[1] == 0) return;
        float sums[4];
        both.add_all(q->at, sums);
        float gate = rows_sum<4>(sums), up = __shfl_xor_sync(0xffffffffu, gate, 16);
        u32 own = first + lane / 8;
        if (lane % 8 != 0 || lane >= 16 || own < row) continue;
        float result = F::of(gate, up, *(const Numbers*)params);
        Y::put(y->at + own * y->nb[0], &result);
        if (T) kept[own - top] = result;
    }
    if (!T) return;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    float e[4];
    u32 group = top / 32;
    for (u32 j = 0; j < 4; j++) e[j] = top + lane % 8 * 4 + j < rows ? kept[lane % 8 * 4 + j] : 0.0f;
    put_terms(e, group, v[3 - H + T].at, lane < 8 && group < groups_of_terms(rows));
}
