// Fused Q/K norm, RoPE, scale and KV-cache write. A warp computes one row of a head at a time.

struct HeadsParams {
    u32 width;   // the maximum elements of a row
    u32 unused;
    // A `HeadParams` per part follows, then the embedding's parameters.
};

struct HeadParams {
    NormParams norm;
    u32 warps; // the warps of a separate norm kernel, which define the order of the sum
    float scale, bias;
    CellParts cells;
};

struct HeadsShared {
    const RopeParams* rope;
    View positions, factors;
    Fault* fault;
    u32 launch;
};

// Returns the sum (of squares if `S` is 1) over a row, in the order of a block of `warps` warps. All lanes must call
// it.
template <class X, int S> DEVICE float head_sum(const View& x, const u8* row, float shift, u32 warps) {
    float sum = 0.0f;
    for (u32 w = 0; w < warps; w++) {
        float part = 0.0f;
        // A lane has four adjacent elements at a time.
        for (u32 i = (w * 32 + threadIdx.x % 32) * 4; i < x.ne[0]; i += warps * 128)
            for (u32 j = i; j < i + 4 && j < x.ne[0]; j++) {
                float e = element<X>(x, row, j) - shift;
                part += S ? e * e : e;
            }
        part = warp_sum(part);
        sum = warps == 1 ? part : sum + part;
    }
    return sum;
}

// A part: queries, keys or values. `NORM`: a norm times `W` comes first. `TURN`: positions of type `P`, with factors of
// type `Q`, rotate the row. `SCALE`: the row is scaled. `STORE`: `I` has the row indices of the cache `y`, 1 for all
// cells and 2 for the cells of some parts.
template <class X, class W, class P, class Q, class I, class Y, int NORM, int TURN, int SCALE, int STORE> struct Head {
    enum { OPERANDS = 1 + NORM + (STORE > 0) };

    // True if a later token writes the same cache cell: the last write wins.
    DEVICE bool is_replaced(const View& index, u32 token, u32 tokens, i64 to) {
        if (tokens == 1) return false;
        float found = 0.0f;
        for (u32 j = token + 1 + threadIdx.x % 32; j < tokens; j += 32)
            if (I::integer(index.at + j * index.nb[0]) == to) found = 1.0f;
        return warp_max(found) > 0.0f;
    }

    DEVICE void row(const View* in, const View& y, u64 n, const HeadParams& p, const HeadsShared& all, float* own) {
        const View x = in[0], w = in[NORM], index = in[NORM + (STORE > 0)];
        Place at = place_of(n, 1, x);
        u32 head = at.i[1], token = at.i[2], lane = threadIdx.x % 32, width = x.ne[0];
        const u8* from = row_of(x, head, token, at.i[3]);
        u8* to = row_of(y, head, token, at.i[3]);
        if (STORE) {
            i64 named = I::integer(index.at + token * index.nb[0]), cell = named;
            if (STORE == 2 && named >= 0) {
                cell = local_cell(named, p.cells);
                if (cell < 0) return;
            }
            bool wrong = cell < 0 || cell >= (i64)y.ne[2];
            if (wrong && lane == 0) report(all.fault, all.launch, cell, y.ne[2]);
            if (wrong || is_replaced(index, token, x.ne[2], named)) return;
            to = row_of(y, head, (u32)cell, 0);
        }
        const u8* by = row_of(w, head % w.ne[1], token % w.ne[2], at.i[3] % w.ne[3]);
        Affine a = {0.0f, 1.0f};
        if (NORM) {
            float mean = p.norm.kind == 1 ? head_sum<X, 0>(x, from, 0.0f, p.warps) / (float)width : 0.0f;
            float squares = head_sum<X, 1>(x, from, mean, p.warps);
            a = affine(p.norm, mean, squares / (float)width, squares);
        }
        for (u32 i = lane; i < width; i += 32) {
            float e = element<X>(x, from, i);
            if (NORM) {
                e = (e - a.shift) * a.factor;
                e = e * element<W>(w, by, i % w.ne[0]);
            }
            own[i] = e;
        }
        __syncwarp();
        if (TURN) {
            const RopeParams& rope = *all.rope;
            for (u32 unit = lane; unit < rope.pairs; unit += 32) {
                Turn t = turn_of<P, Q>(rope, (const u8*)all.rope, all.positions, all.factors, unit, token, x.ne[2]);
                u32 first = rope.halves ? unit : 2 * unit, second = rope.halves ? unit + rope.pairs : 2 * unit + 1;
                float left = own[first] * t.c - own[second] * t.s, right = own[first] * t.s + own[second] * t.c;
                own[first] = left;
                own[second] = right;
            }
            __syncwarp();
        }
        for (u32 b = lane; b < width / Y::LEN; b += 32) {
            float values[Y::LEN];
            for (u32 j = 0; j < Y::LEN; j++) {
                float e = own[b * Y::LEN + j];
                values[j] = SCALE ? p.scale * e + p.bias : e;
            }
            Y::put(to + b * y.nb[0], values);
        }
        __syncwarp();
    }
};

template <class... Parts> struct HeadsOf {
    enum { OPERANDS = 0, COUNT = 0 };
    DEVICE u64 rows(const View*) { return 0; }
    DEVICE void row(const View*, const View*, u64, const HeadParams*, const HeadsShared&, float*) {}
};
template <class H, class... Rest> struct HeadsOf<H, Rest...> {
    enum { OPERANDS = H::OPERANDS + HeadsOf<Rest...>::OPERANDS, COUNT = 1 + HeadsOf<Rest...>::COUNT };
    DEVICE u64 rows(const View* in) { return rows_of(in[0]) + HeadsOf<Rest...>::rows(in + H::OPERANDS); }
    DEVICE void row(const View* in, const View* out, u64 n, const HeadParams* p, const HeadsShared& all, float* own) {
        u64 mine = rows_of(in[0]);
        if (n < mine) {
            H::row(in, out[0], n, *p, all, own);
            return;
        }
        HeadsOf<Rest...>::row(in + H::OPERANDS, out + 1, n - mine, p + 1, all, own);
    }
};

// Runs all parts. The first `SHARED_VIEWS` views belong to all parts: positions (if at least 1), frequency factors (if
// 2).
template <int SHARED_VIEWS, class... Parts> DEVICE void heads(const View* v, const u8* params, Fault* fault, u32 launch) {
    DYN_SHARED(float, rows);
    const HeadsParams p = *(const HeadsParams*)params;
    const HeadParams* each = (const HeadParams*)(params + sizeof(HeadsParams));
    typedef HeadsOf<Parts...> All;
    HeadsShared all;
    all.rope = (const RopeParams*)(params + (sizeof(HeadsParams) + All::COUNT * sizeof(HeadParams) + 7) / 8 * 8);
    all.positions = v[0];
    all.factors = v[SHARED_VIEWS > 1 ? 1 : 0];
    all.fault = fault;
    all.launch = launch;
    const View* in = v + SHARED_VIEWS;
    u32 warps = blockDim.x / 32, warp = threadIdx.x / 32;
    u64 n = All::rows(in);
    for (u64 row = (u64)blockIdx.x * warps + warp; row < n; row += (u64)gridDim.x * warps)
        All::row(in, in + All::OPERANDS, row, each, all, rows + warp * p.width);
}
