// Block formats, with the layouts of `tpc_runtime::quant`.

DEVICE float half_at(const u8* b) { return h2f(*(const u16*)b); }
DEVICE u32 word_at(const u8* b) { return (u32)*(const u16*)b | (u32)*(const u16*)(b + 2) << 16; }

// Returns code `i` of `BITS`-bit codes, which are interleaved over `WIDTH` bytes.
template <u32 BITS, u32 WIDTH> DEVICE u32 plane(const u8* b, u32 i) {
    const u32 per = WIDTH * 8 / BITS;
    u32 in = i % per;
    return b[i / per * WIDTH + in % WIDTH] >> (BITS * (in / WIDTH)) & ((1u << BITS) - 1u);
}

DEVICE float extreme(const float* x, u32 n) {
    float best = 0.0f;
    for (u32 i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(best)) best = x[i];
    return best;
}

DEVICE float inverse(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

// Converts to an integer from `low` to `high`, truncating; NaN gives 0.
DEVICE i32 saturate(float x, i32 low, i32 high) {
    if (!(x == x)) return 0;
    return x <= (float)low ? low : x >= (float)high ? high : (i32)x;
}

// Quantises 32 elements to codes around `zero`. The extreme element gets code 0. Returns the scale.
DEVICE float symmetric_codes(const float* x, i32 zero, u8* codes) {
    float d = extreme(x, 32) / (float)-zero, id = inverse(d);
    for (u32 i = 0; i < 32; i++) {
        i32 q = saturate(mul_rn(x[i], id) + ((float)zero + 0.5f), 0, 255);
        codes[i] = (u8)(q < 2 * zero - 1 ? q : 2 * zero - 1);
    }
    return d;
}

// Quantises 32 elements to codes from 0 (the minimum) to `top` (the maximum). Returns the scale; writes the minimum to
// `least`.
DEVICE float affine_codes(const float* x, i32 top, u8* codes, float* least) {
    float low = 3.402823466e38f, high = -3.402823466e38f;
    for (u32 i = 0; i < 32; i++) {
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    float d = (high - low) / (float)top, id = inverse(d);
    for (u32 i = 0; i < 32; i++) {
        i32 q = saturate(mul_rn(x[i] - low, id) + 0.5f, 0, 255);
        codes[i] = (u8)(q < top ? q : top);
    }
    *least = low;
    return d;
}

DEVICE void put_half(u8* b, float x) { *(u16*)b = f2h(x); }

DEVICE void put_nibbles(u8* b, const u8* codes) {
    for (u32 i = 0; i < 16; i++) b[i] = (u8)((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}

DEVICE void put_fives(u8* b, const u8* codes) {
    u32 high = 0;
    for (u32 i = 0; i < 32; i++) high |= (u32)(codes[i] >> 4) << i;
    *(u16*)b = (u16)high;
    *(u16*)(b + 2) = (u16)(high >> 16);
    put_nibbles(b + 4, codes);
}

DEVICE u32 five_bits(const u8* b, u32 i) {
    return plane<4, 16>(b + 4, i) | (word_at(b) >> i & 1u) << 4;
}

struct Q4_0 {
    enum { LEN = 32, BYTES = 18, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        return (float)((i32)plane<4, 16>(b + 2, i) - 8) * half_at(b);
    }
    DEVICE void put(u8* b, const float* x) {
        u8 codes[32];
        put_half(b, symmetric_codes(x, 8, codes));
        put_nibbles(b + 2, codes);
    }
};
struct Q4_1 {
    enum { LEN = 32, BYTES = 20, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        return (float)plane<4, 16>(b + 4, i) * half_at(b) + half_at(b + 2);
    }
    DEVICE void put(u8* b, const float* x) {
        u8 codes[32];
        float least, d = affine_codes(x, 15, codes, &least);
        put_half(b, d);
        put_half(b + 2, least);
        put_nibbles(b + 4, codes);
    }
};
struct Q5_0 {
    enum { LEN = 32, BYTES = 22, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        return (float)((i32)five_bits(b + 2, i) - 16) * half_at(b);
    }
    DEVICE void put(u8* b, const float* x) {
        u8 codes[32];
        put_half(b, symmetric_codes(x, 16, codes));
        put_fives(b + 2, codes);
    }
};
struct Q5_1 {
    enum { LEN = 32, BYTES = 24, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        return (float)five_bits(b + 4, i) * half_at(b) + half_at(b + 2);
    }
    DEVICE void put(u8* b, const float* x) {
        u8 codes[32];
        float least, d = affine_codes(x, 31, codes, &least);
        put_half(b, d);
        put_half(b + 2, least);
        put_fives(b + 4, codes);
    }
};
struct Q8_0 {
    enum { LEN = 32, BYTES = 34, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) { return (float)((const i8*)b)[2 + i] * half_at(b); }
    DEVICE void put(u8* b, const float* x) {
        float most = fabsf(extreme(x, 32)), id = most == 0.0f ? 0.0f : 127.0f / most;
        put_half(b, most / 127.0f);
        for (u32 i = 0; i < 32; i++) ((i8*)b)[2 + i] = (i8)saturate(rintf(mul_rn(x[i], id)), -128, 127);
    }
};
struct Q8_1 {
    enum { LEN = 32, BYTES = 36, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) { return (float)((const i8*)b)[4 + i] * half_at(b); }
};
struct Q2K {
    enum { LEN = 256, BYTES = 84, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 scale = b[i / 16];
        float d = half_at(b + 80) * (float)(scale & 15), m = half_at(b + 82) * (float)(scale >> 4);
        return d * (float)plane<2, 32>(b + 16, i) - m;
    }
};
struct Q3K {
    enum { LEN = 256, BYTES = 110, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 j = i / 16;
        u32 low = b[96 + j % 8] >> (4 * (j / 8)) & 15, high = b[104 + j % 4] >> (2 * (j / 4)) & 3;
        float d = half_at(b + 108) * (float)((i32)(low | high << 4) - 32);
        u32 code = plane<2, 32>(b + 32, i) | (b[i % 32] >> (i / 32) & 1) << 2;
        return d * (float)((i32)code - 4);
    }
};

// Decodes scale and minimum of group `j` of 32 elements, for q4_k and q5_k.
DEVICE void scale_and_least(const u8* b, u32 j, u32* scale, u32* least) {
    if (j < 4) {
        *scale = b[j] & 63;
        *least = b[j + 4] & 63;
    } else {
        *scale = (b[j + 4] & 15) | b[j - 4] >> 6 << 4;
        *least = b[j + 4] >> 4 | b[j] >> 6 << 4;
    }
}

DEVICE float affine_32(const u8* b, u32 i, u32 code) {
    u32 scale, least;
    scale_and_least(b + 4, i / 32, &scale, &least);
    float d = half_at(b) * (float)scale, m = half_at(b + 2) * (float)least;
    return d * (float)code - m;
}

struct Q4K {
    enum { LEN = 256, BYTES = 144, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) { return affine_32(b, i, plane<4, 32>(b + 16, i)); }
};
struct Q5K {
    enum { LEN = 256, BYTES = 176, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 high = b[16 + i % 32] >> (i / 32) & 1;
        return affine_32(b, i, plane<4, 32>(b + 48, i) | high << 4);
    }
};
struct Q6K {
    enum { LEN = 256, BYTES = 210, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 code = plane<4, 64>(b, i) | plane<2, 32>(b + 128, i) << 4;
        return half_at(b + 208) * (float)((const i8*)b)[192 + i / 16] * (float)((i32)code - 32);
    }
};
struct Q8K {
    enum { LEN = 256, BYTES = 292, UNIT = 4 };
    DEVICE float at(const u8* b, u32 i) { return *(const float*)b * (float)((const i8*)b)[4 + i]; }
};

CONSTANT i8 IQ4_VALUES[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

DEVICE float iq4_value(u32 code) { return (float)IQ4_VALUES[code]; }

struct Iq4Nl {
    enum { LEN = 32, BYTES = 18, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) { return half_at(b) * iq4_value(plane<4, 16>(b + 2, i)); }
    // Returns the code of the nearest table entry; ties go up.
    DEVICE u8 nearest(float x) {
        u32 above = 1;
        while (above < 15 && iq4_value(above) <= x) above++;
        return (u8)(x - iq4_value(above - 1) < iq4_value(above) - x ? above - 1 : above);
    }
    DEVICE void put(u8* b, const float* x) {
        u8 codes[32];
        float most = extreme(x, 32), d = 0.0f;
        for (u32 i = 0; i < 32; i++) codes[i] = 0;
        if (!(fabsf(most) < 1e-15f)) {
            float id = 1.0f / (most / -127.0f), num = 0.0f, den = 0.0f;
            for (u32 i = 0; i < 32; i++) {
                codes[i] = nearest(mul_rn(id, x[i]));
                float q = iq4_value(codes[i]), w = mul_rn(x[i], x[i]);
                num += mul_rn(mul_rn(w, q), x[i]);
                den += mul_rn(mul_rn(w, q), q);
            }
            d = num / den;
        }
        put_half(b, d);
        put_nibbles(b + 2, codes);
    }
};
struct Iq4Xs {
    enum { LEN = 256, BYTES = 136, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 j = i / 32;
        u32 low = b[4 + j / 2] >> (4 * (j % 2)) & 15, high = (u32)*(const u16*)(b + 2) >> (2 * j) & 3;
        float d = half_at(b) * (float)((i32)(low | high << 4) - 32);
        return d * iq4_value(plane<4, 16>(b + 8, i));
    }
};

CONSTANT i8 FP4_VALUES[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

DEVICE float fp4_value(u32 code) { return (float)FP4_VALUES[code]; }

struct Mxfp4 {
    enum { LEN = 32, BYTES = 17, UNIT = 1 };
    DEVICE float at(const u8* b, u32 i) {
        u32 e = b[0];
        float d = u2f(e < 2 ? 0x00200000u << e : (e - 1) << 23);
        return fp4_value(plane<4, 16>(b + 1, i)) * d;
    }
};
struct Nvfp4 {
    enum { LEN = 64, BYTES = 36, UNIT = 1 };
    DEVICE float at(const u8* b, u32 i) {
        u32 d = b[i / 16], exponent = d >> 3 & 15;
        float m = (float)(d & 7), scale;
        if (d == 0 || d == 0x7f) scale = 0.0f;
        else if (exponent == 0) scale = m * 0.0009765625f;
        else scale = (8.0f + m) * u2f((127 + exponent - 11) << 23);
        return fp4_value(plane<4, 8>(b + 4, i)) * scale;
    }
};
CONSTANT u8 POWERS_OF_THREE[5] = {1, 3, 9, 27, 81};

struct Tq1_0 {
    enum { LEN = 256, BYTES = 54, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 at, n;
        if (i < 160) at = i % 32, n = i / 32;
        else if (i < 240) at = 32 + (i - 160) % 16, n = (i - 160) / 16;
        else at = 48 + (i - 240) % 4, n = (i - 240) / 4;
        u32 digit = (u32)(u8)(b[at] * POWERS_OF_THREE[n]) * 3 >> 8;
        return ((float)digit - 1.0f) * half_at(b + 52);
    }
};
struct Tq2_0 {
    enum { LEN = 256, BYTES = 66, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        return ((float)plane<2, 32>(b, i) - 1.0f) * half_at(b + 64);
    }
};
struct Q1_0 {
    enum { LEN = 128, BYTES = 18, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        return b[2 + i / 8] >> (i % 8) & 1 ? half_at(b) : -half_at(b);
    }
};
struct Q2_0 {
    enum { LEN = 64, BYTES = 18, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        return ((float)(b[2 + i / 4] >> (2 * (i % 4)) & 3) - 1.0f) * half_at(b);
    }
};
