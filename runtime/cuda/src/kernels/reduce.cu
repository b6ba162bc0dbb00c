struct SumParams {
    u32 axis;
    u32 mean;  // 1 if sums are divided by the runtime size of the launch
    u32 lanes; // threads that share a sum
};

template <class X, class Y> DEVICE void sum(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const SumParams p = *(const SumParams*)params;
    u32 axis = p.axis, lanes = p.lanes;
    u32 lane = threadIdx.x % lanes;
    u64 n = rows_of(y) * y.ne[0], at_once = thread_count() / lanes;
    u64 first = thread_number() / 32 * 32 / lanes, within = threadIdx.x % 32 / lanes;
    for (u64 start = first; start < n; start += at_once) {
        bool real = start + within < n;
        Place at = place_of(real ? start + within : 0, y.ne[0], y), from = at;
        float out = 0.0f;
        for (u32 i = lane; real && i < x.ne[axis]; i += lanes) {
            from.i[axis] = i;
            out += element<X>(x, row_of(x, from.i[1], from.i[2], from.i[3]), from.i[0]);
        }
        out = lanes_sum(out, lanes);
        if (p.mean) out /= (float)v[2].ne[0];
        if (real && lane == 0) Y::put(address(y, at), &out);
    }
}

// A thread adds one row.
template <class X, class Y> DEVICE void cumsum(const View* v) {
    const View x = v[0], y = v[1];
    for (u64 row = thread_number(); row < rows_of(x); row += thread_count()) {
        Place at = place_of(row, 1, x);
        const u8* from = address(x, at);
        u8* to = address(y, at);
        // Kahan summation: `lost` is the rounding error of the sum.
        float out = 0.0f, lost = 0.0f;
        for (u32 i = 0; i < x.ne[0]; i++) {
            float next = element<X>(x, from, i) - lost, sum = out + next;
            lost = (sum - out) - next;
            out = sum;
            Y::put(to + i * y.nb[0], &out);
        }
    }
}

// Returns the number of elements in the row that sort before an element.
template <class X> DEVICE u32 rank_of(const View& x, const Place& at, bool ascending) {
    const u8* row = row_of(x, at.i[1], at.i[2], at.i[3]);
    float own = element<X>(x, row, at.i[0]);
    u32 rank = 0;
    for (u32 j = 0; j < x.ne[0]; j++)
        rank += before(element<X>(x, row, j), j, own, at.i[0], ascending) ? 1 : 0;
    return rank;
}

// Writes 0 if fewer than `k` elements of the row sort before an element, otherwise -inf. A thread ranks one element.
template <class X, class Y> DEVICE void top_mask(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    u32 k = *(const u32*)params;
    u64 n = rows_of(x) * x.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, x.ne[0], x);
        float out = rank_of<X>(x, at, false) < k ? 0.0f : u2f(0xff800000u);
        Y::put(address(y, at), &out);
    }
}

struct TopKMaskParams {
    u32 has_scores;
    u32 has_members;
    u32 has_extra;
};

// Keeps the mask in the cells of picks and in extra cells, and writes -inf elsewhere. Skips indices that are out of
// range. A thread searches one cell.
template <class M, class P, class S, class B, class E, class Y> DEVICE void top_k_mask(const View* v, const u8* params) {
    const TopKMaskParams p = *(const TopKMaskParams*)params;
    u32 next = 2;
    const View mask = v[0], picks = v[1];
    const View scores = v[p.has_scores ? next++ : 0];
    const View members = v[p.has_members ? next++ : 0];
    const View extra = v[p.has_extra ? next++ : 0];
    const View y = v[next];
    u32 n_picks = p.has_members ? members.ne[1] : p.has_scores ? scores.ne[0] : y.ne[0];
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        i64 cell = at.i[0];
        const u8* row = row_of(picks, at.i[1], at.i[2], at.i[3]);
        bool kept = false;
        for (u32 j = 0; j < picks.ne[0] && !kept; j++) {
            i64 pick = P::integer(row + j * picks.nb[0]);
            if (pick < 0 || pick >= (i64)n_picks) continue;
            if (p.has_scores) {
                float score = element<S>(scores, row_of(scores, at.i[1], at.i[2], at.i[3]), (u32)pick);
                if (!(score > u2f(0xff800000u))) continue;
            }
            if (!p.has_members) {
                kept = pick == cell;
                continue;
            }
            const u8* cells = row_of(members, (u32)pick, 0, 0);
            for (u32 k = 0; k < members.ne[0] && !kept; k++) kept = B::integer(cells + k * members.nb[0]) == cell;
        }
        if (p.has_extra) {
            const u8* cells = row_of(extra, at.i[1], at.i[2], at.i[3]);
            for (u32 j = 0; j < extra.ne[0] && !kept; j++) kept = E::integer(cells + j * extra.nb[0]) == cell;
        }
        float out = u2f(0xff800000u);
        if (kept) out = element<M>(mask, row_of(mask, at.i[1] % mask.ne[1], at.i[2] % mask.ne[2], at.i[3] % mask.ne[3]), at.i[0]);
        Y::put(address(y, at), &out);
    }
}

// Writes the indices that sort a row, up to the width of the result. A thread ranks one element.
template <class X, class Y> DEVICE void order(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    bool ascending = *(const u32*)params != 0;
    u64 n = rows_of(x) * x.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, x.ne[0], x);
        u32 rank = rank_of<X>(x, at, ascending);
        if (rank < y.ne[0]) Y::put_integer(row_of(y, at.i[1], at.i[2], at.i[3]) + rank * y.nb[0], at.i[0]);
    }
}
