struct RopeParams {
    u32 pairs;
    u32 halves;    // 1 if a pair is `i` and `i + pairs`; otherwise its elements are adjacent
    u32 positions; // positions per token
    u32 factors;   // 1 if the frequencies are divided by factors
    double scale;
    double magnitude;
    // Three tables of `pairs` entries follow: plain frequency (f64), YaRN's mix (f64), index of the position (u32).
};

// Sine and cosine of a pair, times the magnitude. The tables follow the parameters.
struct Turn {
    float s, c;
};
template <class I, class Q> DEVICE Turn turn_of(const RopeParams& p, const u8* params, const View& positions, const View& factors, u32 unit, u32 token, u32 tokens) {
    const double* plain = (const double*)(params + sizeof(RopeParams));
    const double* mixes = plain + p.pairs;
    const u32* which = (const u32*)(mixes + p.pairs);
    double frequency = plain[unit];
    if (p.factors) frequency /= (double)Q::at(factors.at + unit * factors.nb[0], 0);
    frequency = p.scale * frequency * (1.0 - mixes[unit]) + frequency * mixes[unit];
    i64 position = I::integer(positions.at + (u64)(which[unit] * tokens + token) * positions.nb[0]);
    double angle = (double)position * frequency;
    angle -= rint(angle * 0.15915494309189535) * 6.283185307179586;
    float m = (float)p.magnitude;
    Turn t = {sinf((float)angle) * m, cosf((float)angle) * m};
    return t;
}
