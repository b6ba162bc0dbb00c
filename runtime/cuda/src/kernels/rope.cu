// A thread rotates one pair of elements in all heads of a token, or copies one element without rotation.
template <class X, class I, class Q, class Y> DEVICE void rope(const View* v, const u8* params) {
    const RopeParams p = *(const RopeParams*)params;
    const View x = v[0], positions = v[1], factors = v[p.factors ? 2 : 0], y = v[p.factors ? 3 : 2];
    u32 units = x.ne[0] - p.pairs, tokens = x.ne[2];
    u64 n = (u64)units * tokens * x.ne[3];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        u32 unit = (u32)(i % units), token = (u32)(i / units % tokens), batch = (u32)(i / units / tokens);
        if (unit >= p.pairs) {
            u32 e = unit + p.pairs;
            for (u32 head = 0; head < x.ne[1]; head++) {
                float same = element<X>(x, row_of(x, head, token, batch), e);
                Y::put(row_of(y, head, token, batch) + e * y.nb[0], &same);
            }
            continue;
        }
        Turn t = turn_of<I, Q>(p, params, positions, factors, unit, token, tokens);
        u32 first = p.halves ? unit : 2 * unit, second = p.halves ? unit + p.pairs : 2 * unit + 1;
        for (u32 head = 0; head < x.ne[1]; head++) {
            const u8* from = row_of(x, head, token, batch);
            float a = element<X>(x, from, first), b = element<X>(x, from, second);
            float left = a * t.c - b * t.s, right = a * t.s + b * t.c;
            u8* to = row_of(y, head, token, batch);
            Y::put(to + first * y.nb[0], &left);
            Y::put(to + second * y.nb[0], &right);
        }
    }
}
