// Expert products of many tokens with tensor cores. Entries (slots of tokens) are ordered by expert, so a block reads the
// weights of one expert for up to `N` entries.

struct ExpertTile {
    u32 expert; // the number of experts: entries without an expert of this device, whose results are 0
    u32 first, count;
};

// The tiles and entries in scratch memory.
struct ExpertOrder {
    u32* at;
    u32 most; // the maximum number of tiles
    DEVICE_MEMBER u32& tiles() const { return *at; }
    DEVICE_MEMBER ExpertTile* tile(u32 n) const { return (ExpertTile*)(at + 4) + n; }
    DEVICE_MEMBER u32* entries() const { return (u32*)tile(most); }
};

struct ExpertOrderParams {
    ProductParams product;
    u32 most, columns;
};

// Sums over lanes up to this lane.
DEVICE u32 running_sum(u32 v) {
    for (u32 o = 1; o < 32; o *= 2) {
        u32 other = __shfl_up_sync(0xffffffffu, v, o);
        v += threadIdx.x % 32 >= o ? other : 0;
    }
    return v;
}

// Orders the entries by expert, in one block. The order among the entries of an expert may differ between runs; it does
// not change results.
template <class I> DEVICE void expert_order(const View* v, const u8* params, Fault* fault, u32 launch) {
    DYN_SHARED(u32, counts);
    const View a = v[0], ids = v[1];
    const ExpertOrderParams p = *(const ExpertOrderParams*)params;
    const ExpertOrder order = {(u32*)v[4].at, p.most};
    u32 experts = a.ne[2], all = ids.ne[0] * ids.ne[1];
    auto expert_of = [&](u32 n, bool told) {
        u64 expert;
        bool own = find_expert<I>(a, ids, p.product, n % ids.ne[0], n / ids.ne[0], told, fault, launch, &expert);
        return own ? (u32)expert : experts;
    };
    for (u32 i = threadIdx.x; i <= experts; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (u32 n = threadIdx.x; n < all; n += blockDim.x) atomicAdd(&counts[expert_of(n, true)], 1u);
    __syncthreads();
    if (threadIdx.x < 32) {
        u32 entries = 0, tiles = 0;
        for (u32 top = 0; top <= experts; top += 32) {
            u32 expert = top + threadIdx.x, count = expert <= experts ? counts[expert] : 0, own = (count + p.columns - 1) / p.columns;
            u32 up_to = running_sum(count), tiles_up_to = running_sum(own);
            u32 first = entries + up_to - count, at = tiles + tiles_up_to - own;
            for (u32 i = 0; i < own; i++) {
                ExpertTile tile = {expert, first + i * p.columns, min(count - i * p.columns, p.columns)};
                *order.tile(at + i) = tile;
            }
            if (expert <= experts) counts[expert] = first;
            entries += __shfl_sync(0xffffffffu, up_to, 31);
            tiles += __shfl_sync(0xffffffffu, tiles_up_to, 31);
        }
        if (threadIdx.x == 0) order.tiles() = tiles;
    }
    __syncthreads();
    for (u32 n = threadIdx.x; n < all; n += blockDim.x) order.entries()[atomicAdd(&counts[expert_of(n, false)], 1u)] = n;
}

// The columns of a block: entries of an expert. `h` has a column per token, or one per slot of a token.
struct EntryColumns {
    const View* h;
    const u32* entries;
    u32 length, slots;
    DEVICE_MEMBER u32 count() const { return length; }
    DEVICE_MEMBER const u8* at(u32 n) const {
        u32 entry = entries[n];
        return row_of(*h, entry % slots % h->ne[1], entry / slots, 0);
    }
};

// Calls `block(top, expert, columns)` for the tiles of experts, and `none(row, entry)` for results without an expert.
template <int EACH, class F, class G> DEVICE void expert_blocks(const View& a, const View& ids, const View* h, const ExpertOrder& order, F block, G none) {
    u32 rows = a.ne[1];
    for (u32 n = blockIdx.x; n < order.tiles(); n += gridDim.x) {
        const ExpertTile tile = *order.tile(n);
        const u32* entries = order.entries() + tile.first;
        for (u32 top = blockIdx.y * EACH; top < rows; top += gridDim.y * EACH) {
            if (tile.expert < a.ne[2]) {
                EntryColumns columns = {h, entries, tile.count, ids.ne[0]};
                block(top, tile.expert, columns);
                continue;
            }
            for (u32 i = threadIdx.x; i < EACH * tile.count; i += blockDim.x)
                if (top + i % EACH < rows) none(top + i % EACH, entries[i / EACH]);
        }
    }
}

// Computes `y[:, slot, token] = w[ids[slot, token]] x[:, slot, token]`.
template <class P, class E, class Y, int M, int N> DEVICE void experts_gemm(const View* v, const u8* params) {
    const View *ids = v + 2, *y = v + 3 + E::OPERANDS, *h = y + 1;
    const ExpertOrder order = {(u32*)h[2].at, ((const ExpertOrderParams*)params)->most};
    u32 slots = ids->ne[0];
    auto put = [&](u32 row, u32 entry, float sum) { Y::put(row_of(*y, entry % slots, entry / slots, 0) + (u64)row * y->nb[0], &sum); };
    expert_blocks<M>(*v, *ids, h, order, [&](u32 top, u32 expert, const EntryColumns& columns) {
        const GemmWeights weights = {v, 0, v->ne[1], {(u64)expert * v->ne[1], 0}};
        gemm_block<P, OneWeight, M, N>(weights, top, columns, [&](u32 row, u32 n, const float* sums) {
            Column place = {expert, 0, 0};
            put(row, columns.entries[n], E::of(v + 3, sums[0], row, place));
        });
    }, [&](u32 row, u32 entry) { put(row, entry, 0.0f); });
}

// Computes the products of entries as f32 in scratch memory, for `sum_entries`.
template <class P, class E, int MORE, int M, int N> DEVICE void entries_gemm(const View* v, const u8* params) {
    const View *ids = v + 2, *h = v + 5 + E::OPERANDS + MORE;
    const ExpertOrderParams* p = (const ExpertOrderParams*)params;
    const ExpertOrder order = {(u32*)h[2].at, p->most};
    float* parts = (float*)(order.entries() + ids->ne[0] * ids->ne[1]);
    auto put = [&](u32 row, u32 entry, float sum) { parts[(u64)entry * v->ne[1] + row] = sum; };
    expert_blocks<M>(*v, *ids, h, order, [&](u32 top, u32 expert, const EntryColumns& columns) {
        const GemmWeights weights = {v, 0, v->ne[1], {(u64)expert * v->ne[1], 0}};
        gemm_block<P, OneWeight, M, N>(weights, top, columns, [&](u32 row, u32 n, const float* sums) {
            Column place = {expert, 0, 0};
            put(row, columns.entries[n], E::of(v + 3, sums[0], row, place));
        });
    }, [&](u32 row, u32 entry) { put(row, entry, 0.0f); });
}

// Adds the weighted products of a token in slot order, then the tensors of `More`. `BIASES` operands precede the weights.
template <class More, class W, class Y, int BIASES> DEVICE void sum_entries(const View* v, const u8* params) {
    const View a = v[0], ids = v[2], w = v[3 + BIASES], y = v[4 + BIASES + More::OPERANDS];
    const ExpertOrder order = {(u32*)v[6 + BIASES + More::OPERANDS].at, ((const ExpertOrderParams*)params)->most};
    u32 rows = a.ne[1], slots = ids.ne[0], tokens = ids.ne[1];
    const float* parts = (const float*)(order.entries() + slots * tokens);
    for (u64 i = thread_number(); i < (u64)rows * tokens; i += thread_count()) {
        u32 row = i % rows, token = i / rows;
        Column place = {y.ne[1] == 1 ? 0 : token, y.ne[1] == 1 ? token : 0, 0};
        float sum = 0.0f;
        for (u32 s = 0; s < slots; s++) {
            float by = element<W>(w, row_of(w, wrapped(s, w.ne[1]), wrapped(token, w.ne[2]), 0), wrapped(row, w.ne[0]));
            sum += mul_rn(parts[((u64)token * slots + s) * rows + row], by);
        }
        sum = More::of(v + 4 + BIASES, sum, row, place);
        Y::put(row_of(y, place.c, place.i2, 0) + (u64)row * y.nb[0], &sum);
    }
}
