// Gated activations of two products, `y = f(gate · x, up · x)`, for dense layers and experts.

struct GluParams {
    Numbers numbers;
    ProductParams product;
};

// Returns the number of rows that a block computes at a time: at least 32 (one group) with terms (`T`).
template <int T> DEVICE u32 rows_at_once(u32 teams) { return T ? max(teams, 32u) : teams; }

// Quantises `each` results from `first` on, which this block kept in shared memory. All threads must call it.
DEVICE void put_block_terms(const float* kept, u32 first, u32 each, u32 end, const u8* made) {
    __syncthreads();
    if (threadIdx.x < max(each / 4, 32u)) {
        float e[4];
        u32 from = threadIdx.x * 4;
        for (u32 j = 0; j < 4; j++) e[j] = from + j < each ? kept[from + j] : 0.0f;
        put_terms(e, (first + from) / 32, made, from < each && first + from < end);
    }
    __syncthreads();
}

// Computes one column from the rows of `gate` from `matrix` on and of `up` from `other` on; with terms if `T` is 1.
// `more` has the tensors that `E` adds to the first product, then the tensors for the second product.
template <class P, class E, class F, class Y, int T>
DEVICE void glu_column(const View& gate, const View& up, u64 matrix, u64 other, const u8* column, const View* more, const Column& place, const View& y, u8* out, const u8* made, const GluParams& p) {
    SHARED(float, kept, T ? 256 : 1);
    u32 lanes = p.product.lanes, lane = threadIdx.x % lanes, team = threadIdx.x / lanes, teams = blockDim.x / lanes;
    u32 pairs = pairs_of(gate), rows = y.ne[0], each = rows_at_once<T>(teams), end = T ? groups_of_terms(rows) * 32 : rows;
    for (u32 first = blockIdx.x * each; first < end; first += gridDim.x * each) {
        for (u32 from = first; from < first + each; from += teams) {
            u32 row = from + team;
            u32 mine = min(row, rows - 1);
            PlaneRow both[2] = {plane_row<P>(gate, matrix + mine), plane_row<P>(up, other + mine)};
            float sums[2] = {0.0f, 0.0f};
            add_pairs<P, 2>(both, pairs, column, lanes, sums);
            float g = lanes_sum(sums[0], lanes), u = lanes_sum(sums[1], lanes);
            if (lane == 0) {
                float result = F::of(E::of(more, g, mine, place), E::of(more + E::OPERANDS, u, mine, place), p.numbers);
                if (row < rows) Y::put(out + (u64)row * y.nb[0], &result);
                if (T) kept[row - first] = row < rows ? result : 0.0f;
            }
        }
        if (T) put_block_terms(kept, first, each, end, made);
    }
}

template <class P, class F, class Y, int H, int T> DEVICE void glu_columns_prefetch(const View* v, const u8* params) {
    const View y = v[3 - H];
    u32 teams = blockDim.x / ((const GluParams*)params)->product.lanes;
    if (blockIdx.y != 0) return;
    rows_prefetch<P>(v[0], 0, y.ne[0], rows_at_once<T>(teams), blockIdx.x);
    rows_prefetch<P>(v[1 - H], H ? y.ne[0] : 0, y.ne[0], rows_at_once<T>(teams), blockIdx.x);
}

// If `H` is 1, gate and up are the halves of one weight.
template <class P, class F, class Y, int H, int T> DEVICE void glu_columns(const View* v, const u8* params) {
    const View gate = v[0], up = v[1 - H], q = v[2 - H], y = v[3 - H], made = v[3 - H + T];
    const GluParams p = *(const GluParams*)params;
    u32 batches = q.ne[2] * q.ne[3];
    for (u32 n = blockIdx.y; n < q.ne[1] * batches; n += gridDim.y) {
        u32 c = n % q.ne[1], i2 = n / q.ne[1] % q.ne[2], i3 = n / q.ne[1] / q.ne[2];
        u64 matrix = matrix_of(gate, q, i2, i3);
        Column place = {c, i2, i3};
        glu_column<P, NoEpilogue, F, Y, T>(gate, up, matrix, matrix + (H ? y.ne[0] : 0), row_of(q, c, i2, i3), v, place, y, row_of(y, c, i2, i3), row_of(made, c, i2, i3), p);
    }
}

// Computes 8 columns and 16 rows at a time, or 32 rows with terms.
template <class P, class F, class Y, int H, int T> DEVICE void glu_tiles(const View* v, const u8* params) {
    SHARED(float, kept, T ? 256 : 1);
    const View gate = v[0], up = v[1 - H], q = v[2 - H], y = v[3 - H], made = v[3 - H + T];
    const GluParams p = *(const GluParams*)params;
    u32 batches = q.ne[2] * q.ne[3], each = T ? 32 : 16, rows = y.ne[0], end = T ? groups_of_terms(rows) * 32 : rows;
    for (u32 batch = blockIdx.z; batch < batches; batch += gridDim.z) {
        Column from = {0, batch % q.ne[2], batch / q.ne[2]};
        u64 matrix = matrix_of(gate, q, from.i2, from.i3);
        for (from.c = blockIdx.y * 8; from.c < q.ne[1]; from.c += gridDim.y * 8) {
            TileColumns columns = tile_columns(q, from);
            for (u32 first = blockIdx.x * each; first < end; first += gridDim.x * each) {
                for (u32 top = first; top < first + each; top += 16) {
                    float g = tile_product<P>(gate, matrix, rows, columns, top);
                    float u = tile_product<P>(up, matrix + (H ? rows : 0), rows, columns, top);
                    Column at = from;
                    u32 row;
                    bool real = of_tile(y, top, at, &row);
                    float result = real ? F::of(g, u, p.numbers) : 0.0f;
                    if (real) Y::put(row_of(y, at.c, at.i2, at.i3) + (u64)row * y.nb[0], &result);
                    if (T && threadIdx.x < 128) kept[(top - first) * 8 + threadIdx.x] = result;
                }
                if (!T) continue;
                __syncthreads();
                if (threadIdx.x < 64) {
                    u32 c = from.c + threadIdx.x / 8;
                    float e[4];
                    for (u32 j = 0; j < 4; j++) e[j] = kept[(threadIdx.x % 8 * 4 + j) * 8 + threadIdx.x / 8];
                    put_terms(e, first / 32, row_of(made, min(c, q.ne[1] - 1), from.i2, from.i3), c < q.ne[1]);
                }
                __syncthreads();
            }
        }
    }
}

// `y = f(gate x, up x)`. If `H` is 1, gate and up are the halves of one weight. With terms (`T`), a view of terms that
// this kernel does not write precedes the activations.
template <class P, class F, class Y, int H, int T, int M, int N> DEVICE void glu_gemm(const View* v, const u8* params) {
    const View *y = v + 3 - H, *h = v + 4 - H + T;
    gemm_blocks<M / 2, N>(y->ne[0], h, all_row_blocks(), [&](u32 top, const BatchColumns& columns) {
        u64 matrix = matrix_of(*v, *h, columns.first.i2, columns.first.i3);
        const GemmWeights weights = {v, 1 - H, y->ne[0], {matrix, matrix + (H ? y->ne[0] : 0)}};
        gemm_block<P, TwoWeights, M, N>(weights, top, columns, [&](u32 row, u32 n, const float* sums) {
            Column at = columns.place(n);
            float result = F::of(sums[0], sums[1], ((const GluParams*)params)->numbers);
            Y::put(row_of(*y, at.c, at.i2, at.i3) + (u64)row * y->nb[0], &result);
        });
    });
}

// Computes the experts that were chosen for each token. Results and terms of experts outside the window are 0. `E` adds
// row `expert` of its tensors along axis 1.
template <class P, class E, class F, class I, class Y, int T> DEVICE void glu_experts(const View* v, const u8* params, Fault* fault, u32 launch) {
    SHARED(float, none, 256);
    const View gate = v[0], up = v[1], q = v[2], ids = v[3], y = v[4 + 2 * E::OPERANDS], made = v[4 + 2 * E::OPERANDS + T];
    const GluParams p = *(const GluParams*)params;
    u32 entries = ids.ne[0] * ids.ne[1], teams = blockDim.x / p.product.lanes, each = rows_at_once<T>(teams);
    u32 end = groups_of_terms(y.ne[0]) * 32;
    if (T) {
        for (u32 i = threadIdx.x; i < 256; i += blockDim.x) none[i] = 0.0f;
    }
    for (u32 n = blockIdx.y; n < entries; n += gridDim.y) {
        Entry entry = entry_of(ids, y, n);
        const u8* terms = row_of(made, entry.slot, entry.token, 0);
        u64 expert;
        if (!find_expert_or_clear<I, Y>(gate, ids, y, p.product, entry, fault, launch, &expert)) {
            if (!T) continue;
            for (u32 first = blockIdx.x * each; first < end; first += gridDim.x * each) put_block_terms(none, first, each, end, terms);
            continue;
        }
        const u8* column = row_of(q, entry.slot % q.ne[1], entry.token, 0);
        Column place = {(u32)expert, 0, 0};
        glu_column<P, E, F, Y, T>(gate, up, expert * gate.ne[1], expert * gate.ne[1], column, v + 4, place, y, entry.out, terms, p);
    }
}

// Computes gated products of the experts that were chosen for many tokens. `E` adds row `expert` of its tensors.
template <class P, class E, class F, class Y, int T, int M, int N> DEVICE void glu_experts_gemm(const View* v, const u8* params) {
    const View *ids = v + 3, *y = v + 4 + 2 * E::OPERANDS, *h = y + 1 + T;
    const GluParams* p = (const GluParams*)params;
    const ExpertOrder order = {(u32*)h[2].at, *(const u32*)(p + 1)};
    u32 slots = ids->ne[0];
    auto put = [&](u32 row, u32 entry, float result) { Y::put(row_of(*y, entry % slots, entry / slots, 0) + (u64)row * y->nb[0], &result); };
    expert_blocks<M / 2>(*v, *ids, h, order, [&](u32 top, u32 expert, const EntryColumns& columns) {
        u64 matrix = (u64)expert * v->ne[1];
        const GemmWeights weights = {v, 1, v->ne[1], {matrix, matrix}};
        gemm_block<P, TwoWeights, M, N>(weights, top, columns, [&](u32 row, u32 n, const float* sums) {
            Column place = {expert, 0, 0};
            float g = E::of(v + 4, sums[0], row, place), u = E::of(v + 4 + E::OPERANDS, sums[1], row, place);
            put(row, columns.entries[n], F::of(g, u, p->numbers));
        });
    }, [&](u32 row, u32 entry) { put(row, entry, 0.0f); });
}
