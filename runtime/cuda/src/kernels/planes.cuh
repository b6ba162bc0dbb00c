// Weights in planes, with the layout of `runtime/cuda/src/planes`. A pair is two groups of 32 elements.

// The formats in planes. An element is `d step (code - ZERO) - m least`. Each head has one `d` and one `m`; each half
// group has one `step` and one `least`.
//
// - `LOW`, `HIGH`: the low and high bits of a code.
// - `STEPS`: bytes of steps per group.
// - `HEAD`: bytes of a head. `SPAN` groups share a head.
// - `ZERO`: the code of the value zero.
// - `TABLE`: nonzero if codes index a table.
// - `TWO`: 1 if each half of a group has its own step.
// - `LEAST`: 1 if the format has minima.
template <int LOW_, int HIGH_, int STEPS_, int HEAD_, int SPAN_, int ZERO_, int TABLE_, int TWO_, int LEAST_> struct Form {
    enum {
        LOW = LOW_, HIGH = HIGH_, STEPS = STEPS_, HEAD = HEAD_, SPAN = SPAN_,
        ZERO = ZERO_, TABLE = TABLE_, TWO = TWO_, LEAST = LEAST_, CHUNKS = LOW_ / 2
    };
    DEVICE float step(u32, u32) { return 1.0f; }
    DEVICE float least(u32, u32) { return 1.0f; }
    DEVICE float d(u32 head) { return HEAD_ ? h2f((u16)head) : 1.0f; }
    DEVICE float m(u32 head) { return h2f((u16)(head >> 16)); }
};

template <int HIGH, int ZERO, int TABLE> struct HeadPlanes : Form<4, HIGH, 0, 2, 1, ZERO, TABLE, 0, 0> {};
template <int HIGH> struct AffinePlanes : Form<4, HIGH, 0, 4, 1, 0, 0, 0, 1> {
    DEVICE float m(u32 head) { return -h2f((u16)(head >> 16)); }
};
struct Q4_0Planes : HeadPlanes<0, 8, 0> {};
struct Q5_0Planes : HeadPlanes<1, 16, 0> {};
struct Iq4NlPlanes : HeadPlanes<0, 0, 1> {};
struct Q4_1Planes : AffinePlanes<0> {};
struct Q5_1Planes : AffinePlanes<1> {};
struct Q8_0Planes : Form<8, 0, 0, 2, 1, 0, 0, 0, 0> {};
template <int HIGH> struct AffineSteps : Form<4, HIGH, 2, 4, 8, 0, 0, 0, 1> {
    DEVICE float step(u32 steps, u32) { return (float)(steps & 0xff); }
    DEVICE float least(u32 steps, u32) { return (float)(steps >> 8 & 0xff); }
};
struct Q4KPlanes : AffineSteps<0> {};
struct Q5KPlanes : AffineSteps<1> {};
template <int LOW, int HIGH, int ZERO> struct SignedSteps : Form<LOW, HIGH, 2, 2, 8, ZERO, 0, 1, 0> {
    DEVICE float step(u32 steps, u32 half) { return byte_to_float(steps >> (8 * half)); }
};
struct Q3KPlanes : SignedSteps<2, 1, 4> {};
struct Q6KPlanes : SignedSteps<4, 2, 32> {};
struct Q2KPlanes : Form<2, 0, 2, 4, 8, 0, 0, 1, 1> {
    DEVICE float step(u32 steps, u32 half) { return (float)(steps >> (8 * half) & 15); }
    DEVICE float least(u32 steps, u32 half) { return (float)(steps >> (8 * half + 4) & 15); }
};
struct Iq4XsPlanes : Form<4, 0, 1, 2, 8, 0, 1, 0, 0> {
    DEVICE float step(u32 steps, u32) { return byte_to_float(steps); }
};
// The step is half of a power of two, given by its exponent.
struct Mxfp4Planes : Form<4, 0, 1, 0, 1, 12, 2, 0, 0> {
    // The least exponent gives half of 2^-127, a subnormal number.
    DEVICE float step(u32 e, u32) { return u2f(max(e << 23 & 0x7f800000u, 0x00400000u)) * 0.5f; }
};
// The step is half of an unsigned e4m3 number, whose bits are shifted into a float with another exponent bias.
struct Nvfp4Planes : Form<4, 0, 2, 0, 1, 12, 2, 1, 0> {
    DEVICE float step(u32 steps, u32 half) {
        u32 e = (half ? steps << 12 : steps << 20) & 0x07f00000u;
        return u2f(e == 0x07f00000u ? 0 : e) * u2f((119 + 127) << 23);
    }
};
struct TernaryPlanes : Form<2, 0, 0, 2, 8, 1, 0, 0, 0> {};
struct Tq1_0Planes : TernaryPlanes {};
struct Tq2_0Planes : TernaryPlanes {};

struct PlaneRow {
    const u8 *low, *high, *steps, *heads;
};

DEVICE u32 pairs_of(const View& a) { return (a.ne[0] / 32 + 1) / 2; }

// Returns the addresses of a row. Rows are counted over all matrices of the weight.
template <class P> DEVICE PlaneRow plane_row(const View& a, u64 row) {
    u64 rows = rows_of(a), pairs = pairs_of(a), heads = P::SPAN == 1 ? 2 * pairs : a.ne[0] / 32 / P::SPAN;
    u64 low = pairs * (P::LOW * 8), high = pairs * (P::HIGH * 8), steps = pairs * (P::STEPS * 2);
    PlaneRow at;
    const u8* plane = a.at;
    at.low = plane + row * low;
    plane += rows * low;
    at.high = plane + row * high;
    plane += (rows * high + 15) / 16 * 16;
    at.steps = plane + row * steps;
    plane += (rows * steps + 15) / 16 * 16;
    at.heads = plane + row * (heads * P::HEAD);
    return at;
}

struct PairTile {
    i32 first, len;
};
DEVICE PairTile tile_of(i32 first, u32 pairs) {
    PairTile t;
    t.first = first;
    t.len = min((i32)pairs - first, 32);
    return t;
}

template <class P> DEVICE const uint4* chunk_of(const PlaneRow& row, const PairTile& tile, i32 in, i32 c) {
    return (const uint4*)row.low + (tile.first * P::CHUNKS + in) + c * tile.len;
}

template <class P> struct PairScales {
    u32 steps, heads[2];
};
template <class P> struct Pair {
    uint4 low[P::CHUNKS];
    u32 high[4];
    PairScales<P> scales;
};

template <class P> DEVICE PairScales<P> load_scales(const PlaneRow& row, i32 pair) {
    PairScales<P> s;
    s.steps = s.heads[0] = s.heads[1] = 0;
    if (P::STEPS == 2) s.steps = load_global((const u32*)row.steps + pair);
    if (P::STEPS == 1) s.steps = load_global((const u16*)row.steps + pair);
    if (P::SPAN == 1 && P::HEAD == 4) {
        uint2 both = load_global((const uint2*)row.heads + pair);
        s.heads[0] = both.x;
        s.heads[1] = both.y;
    }
    if (P::SPAN == 1 && P::HEAD == 2) {
        s.heads[0] = load_global((const u32*)row.heads + pair);
        s.heads[1] = s.heads[0] >> 16;
    }
    if (P::SPAN > 1) {
        u32 n = (u32)pair / (P::SPAN > 1 ? P::SPAN / 2 : 1);
        s.heads[0] = s.heads[1] = P::HEAD == 4 ? load_global((const u32*)row.heads + n) : load_global((const u16*)row.heads + n);
    }
    return s;
}

// Returns the steps of a group in the lowest bytes. Steps of the next group may follow.
template <class P> DEVICE u32 steps_of(const PairScales<P>& s, u32 half) { return s.steps >> (8 * P::STEPS * half); }

template <class P> DEVICE Pair<P> load_pair(const PlaneRow& row, const PairTile& tile, i32 in) {
    Pair<P> out;
    i32 pair = tile.first + in;
#pragma unroll
    for (u32 c = 0; c < P::CHUNKS; c++) out.low[c] = load_once(chunk_of<P>(row, tile, in, c));
    if (P::HIGH == 1) {
        uint2 high = load_global((const uint2*)row.high + pair);
        out.high[0] = high.x;
        out.high[1] = high.y;
    }
    if (P::HIGH == 2) {
        uint4 high = load_once((const uint4*)row.high + pair);
        out.high[0] = high.x;
        out.high[1] = high.y;
        out.high[2] = high.z;
        out.high[3] = high.w;
    }
    out.scales = load_scales<P>(row, pair);
    return out;
}

// The first word of each half of a table of sixteen bytes, and a selector. The other words are constants of instructions.
struct Tables {
    u32 lower, upper, select;
};
// Returns the words xor `zero`. If the compiler does not know that `zero` is 0, it keeps the words in registers.
template <class P> DEVICE Tables tables_of(u32 zero) {
    Tables t = {(P::TABLE == 1 ? 0xbfad9881u : 0x0f0e0d0cu) ^ zero, (P::TABLE == 1 ? 0x26190d01u : 0x090a0b0cu) ^ zero, 0x32103210u ^ zero};
    return t;
}

// Looks up eight indices in a table of sixteen bytes. The first four results go to `low`, the others to `high`.
//
// Table 1 has signed bytes. Table 2 has codes below 128, so a selector above 7, which repeats the highest bit of a byte, gives 0.
template <int TABLE> DEVICE void look_up(u32 n, const Tables& t, u32* low, u32* high) {
    if (TABLE == 2) {
        u32 m = n ^ 0x88888888u;
        *low = byte_perm(t.lower, 0x18141210u, n) | byte_perm(t.upper, 0x00040608u, m);
        *high = byte_perm(t.lower, 0x18141210u, n >> 16) | byte_perm(t.upper, 0x00040608u, m >> 16);
        return;
    }
    u32 s = n & 0x77777777u, upper = (n >> 1 & 0x44444444u) | t.select;
    *low = byte_perm(byte_perm(t.lower, 0xf6eaddcfu, s), byte_perm(t.upper, 0x71594535u, s), upper);
    s >>= 16;
    *high = byte_perm(byte_perm(t.lower, 0xf6eaddcfu, s), byte_perm(t.upper, 0x71594535u, s), upper >> 16);
}

// Extracts the high bits of word `j`, at bit `j % (8 / HIGH) * HIGH` of each byte, and shifts them above the low bits.
template <class P> DEVICE u32 high_bits(u32 word, u32 j) {
    const u32 mask = P::HIGH == 1 ? 0x01010101u : 0x03030303u;
    return (word >> (j % (P::HIGH == 1 ? 8 : 4) * P::HIGH) & mask) << P::LOW;
}
// Does the same with one shift, for a constant `j`.
template <class P> DEVICE u32 high_bits_at(u32 word, u32 j) {
    const u32 mask = (P::HIGH == 1 ? 0x01010101u : 0x03030303u) << P::LOW;
    u32 from = j % (P::HIGH == 1 ? 8 : 4) * P::HIGH;
    return (from < P::LOW ? word << (P::LOW - from) : word >> (from - P::LOW)) & mask;
}

DEVICE u32 word_in(const uint4& v, u32 i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// Decodes a group's codes, one byte each. Word `j` has codes `4j` to `4j + 4`.
template <class P> DEVICE void group_words(const Pair<P>& pair, u32 half, const Tables& tables, u32* words) {
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        u32 &low = words[j], &high = words[4 + j];
        if (P::LOW == 8) {
            low = word_in(pair.low[(2 * half) % P::CHUNKS], j);
            high = word_in(pair.low[(2 * half + 1) % P::CHUNKS], j);
        } else if (P::LOW == 2) {
            low = word_in(pair.low[0], 2 * half) >> (2 * j) & 0x03030303u;
            high = word_in(pair.low[0], 2 * half + 1) >> (2 * j) & 0x03030303u;
        } else {
            u32 nibbles = word_in(pair.low[half % P::CHUNKS], j);
            if (P::TABLE) look_up<P::TABLE>(nibbles, tables, &low, &high);
            else low = nibbles & 0x0f0f0f0fu, high = nibbles >> 4 & 0x0f0f0f0fu;
        }
        if (P::HIGH) {
            low |= high_bits_at<P>(pair.high[P::HIGH == 1 ? half : 2 * half], j);
            high |= high_bits_at<P>(pair.high[P::HIGH == 1 ? half : 2 * half + 1], 4 + j);
        }
    }
}

// Returns word `j` of a group, if `j` is known only at run time.
template <class P> DEVICE u32 group_word(const PlaneRow& row, const PairTile& tile, u32 in, u32 half, u32 j) {
    u32 code, pair = tile.first + in;
    if (P::LOW == 8) {
        code = load_global((const u32*)chunk_of<P>(row, tile, in, 2 * half + j / 4) + j % 4);
    } else if (P::LOW == 2) {
        u32 word = load_global((const u32*)chunk_of<P>(row, tile, in, 0) + (2 * half + j / 4));
        code = word >> (2 * (j % 4)) & 0x03030303u;
    } else {
        u32 nibbles = load_global((const u32*)chunk_of<P>(row, tile, in, half) + j % 4);
        if (P::TABLE) {
            u32 low, high;
            look_up<P::TABLE>(nibbles, tables_of<P>(0), &low, &high);
            code = j < 4 ? low : high;
        } else {
            code = nibbles >> (j / 4 * 4) & 0x0f0f0f0fu;
        }
    }
    if (P::HIGH) {
        u32 at = pair * (2 * P::HIGH) + half * P::HIGH + (P::HIGH == 2 ? j / 4 : 0);
        code |= high_bits<P>(load_global((const u32*)row.high + at), j);
    }
    return code;
}

template <class P> DEVICE float plane_element(const PlaneRow& row, u32 pairs, u32 i) {
    u32 pair = i / 64, half = i / 32 % 2, j = i % 32 / 4, which = i % 32 / 16;
    u32 byte = group_word<P>(row, tile_of(pair / 32 * 32, pairs), pair % 32, half, j) >> (8 * (i % 4));
    i32 code = P::TABLE == 1 || P::LOW == 8 ? (i32)(i8)byte : (i32)(byte & 0xff);
    PairScales<P> s = load_scales<P>(row, pair);
    u32 head = half ? s.heads[1] : s.heads[0], steps = steps_of<P>(s, half);
    float value = P::d(head) * P::step(steps, which) * (float)(code - P::ZERO);
    return P::LEAST ? value - P::m(head) * P::least(steps, which) : value;
}
