// Rotary position embedding.

struct RopeParams {
    u32 pairs;
    u32 halves;    // pairs are `i` and `i + pairs`, otherwise neighbours
    u32 positions; // positions of a token
    u32 factors;   // whether frequencies are divided
    double scale;
    double magnitude;
    // Then `pairs` of each: the plain frequency and YaRN's mix in f64, and which position it turns by.
};

// A thread turns a pair of elements of all heads of a token, or passes an element behind the pairs on.
template <class X, class I, class Q, class Y> DEVICE void rope(const View* v, const u8* params) {
    const RopeParams p = *(const RopeParams*)params;
    const View x = v[0], positions = v[1], factors = v[p.factors ? 2 : 0], y = v[p.factors ? 3 : 2];
    const double* plain = (const double*)(params + sizeof(RopeParams));
    const double* mixes = plain + p.pairs;
    const u32* which = (const u32*)(mixes + p.pairs);
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
        double frequency = plain[unit];
        if (p.factors) frequency /= (double)Q::at(factors.at + unit * factors.nb[0], 0);
        frequency = p.scale * frequency * (1.0 - mixes[unit]) + frequency * mixes[unit];
        i64 position = I::integer(positions.at + (u64)(which[unit] * tokens + token) * positions.nb[0]);
        double angle = (double)position * frequency;
        angle -= rint(angle * 0.15915494309189535) * 6.283185307179586;
        float s = sinf((float)angle), c = cosf((float)angle), m = (float)p.magnitude;
        s *= m;
        c *= m;
        u32 first = p.halves ? unit : 2 * unit, second = p.halves ? unit + p.pairs : 2 * unit + 1;
        for (u32 head = 0; head < x.ne[1]; head++) {
            const u8* from = row_of(x, head, token, batch);
            float a = element<X>(x, from, first), b = element<X>(x, from, second);
            float left = a * c - b * s, right = a * s + b * c;
            u8* to = row_of(y, head, token, batch);
            Y::put(to + first * y.nb[0], &left);
            Y::put(to + second * y.nb[0], &right);
        }
    }
}
