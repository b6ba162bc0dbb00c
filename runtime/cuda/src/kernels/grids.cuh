// Formats whose codes index grids. The module defines the tables (`IQ1_S`, `IQ2_XXS` and so on) before this file.

DEVICE u32 short_at(const u8* b) { return *(const u16*)b; }

// Returns eight sign bits from seven. The eighth bit makes the number of minus signs even.
DEVICE u32 eight_signs(u32 seven) {
    seven &= 127;
    return seven | (__popc(seven) & 1) << 7;
}

DEVICE float signed_by(u32 signs, u32 j, float x) { return signs >> j & 1 ? -x : x; }

DEVICE float step2(u32 row, u32 j) {
    u32 step = row >> (2 * j) & 3;
    return step == 0 ? 8.0f : step == 1 ? 25.0f : step == 2 ? 43.0f : 0.0f;
}

DEVICE float nibble_scale(const u8* b, u32 n) {
    return (float)(2 * (b[n / 2] >> (4 * (n % 2)) & 15) + 1);
}

#ifdef NEEDS_IQ1_S
struct Iq1S {
    enum { LEN = 256, BYTES = 50, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 g = i / 32, l = i % 32 / 8, qh = short_at(b + 34 + 2 * g);
        u32 row = IQ1_S[b[2 + 4 * g + l] | (qh >> (3 * l) & 7) << 8];
        float v = 8.0f * (float)((i32)(row >> (2 * (i % 8)) & 3) - 1) + (qh & 0x8000u ? -1.0f : 1.0f);
        return half_at(b) * (float)(2 * (qh >> 12 & 7) + 1) * 0.125f * v;
    }
};
struct Iq1M {
    enum { LEN = 256, BYTES = 56, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 n = i / 8, s = i / 16, d = 0;
        for (u32 k = 0; k < 4; k++) d |= short_at(b + 48 + 2 * k) >> 12 << (4 * k);
        u32 qh = b[32 + n / 2] >> (4 * (n % 2));
        u32 row = IQ1_S[b[n] | (qh & 7) << 8];
        float v = 8.0f * (float)((i32)(row >> (2 * (i % 8)) & 3) - 1) + (qh & 8 ? -1.0f : 1.0f);
        float step = (float)(2 * (short_at(b + 48 + 2 * (s / 4)) >> (3 * (s % 4)) & 7) + 1);
        return h2f((u16)d) * step * 0.125f * v;
    }
};
#endif
#ifdef NEEDS_IQ2_XXS
struct Iq2Xxs {
    enum { LEN = 256, BYTES = 66, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 g = i / 32, l = i % 32 / 8, aux = word_at(b + 2 + 8 * g + 4);
        float v = signed_by(eight_signs(aux >> (7 * l)), i % 8, step2(IQ2_XXS[b[2 + 8 * g + l]], i % 8));
        return half_at(b) * (float)(2 * (aux >> 28) + 1) * 0.125f * v;
    }
};
#endif
#ifdef NEEDS_IQ2_XS
struct Iq2Xs {
    enum { LEN = 256, BYTES = 74, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 q = short_at(b + 2 + 2 * (i / 8));
        float v = signed_by(eight_signs(q >> 9), i % 8, step2(IQ2_XS[q & 511], i % 8));
        return half_at(b) * nibble_scale(b + 66, i / 16) * 0.125f * v;
    }
};
#endif
#ifdef NEEDS_IQ2_S
struct Iq2S {
    enum { LEN = 256, BYTES = 82, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 n = i / 8, high = b[66 + n / 4] >> (2 * (n % 4)) & 3;
        float v = signed_by(b[34 + n], i % 8, step2(IQ2_S[b[2 + n] | high << 8], i % 8));
        return half_at(b) * nibble_scale(b + 74, i / 16) * 0.125f * v;
    }
};
#endif
#ifdef NEEDS_IQ3_XXS
struct Iq3Xxs {
    enum { LEN = 256, BYTES = 98, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 g = i / 32, l = i % 32 / 4, aux = word_at(b + 66 + 4 * g), row = IQ3_XXS[b[2 + 8 * g + l]];
        u32 step = row >> (4 * (i % 4)) & 7;
        float v = step == 7 ? 62.0f : (float)(8 * step + 4);
        v = signed_by(eight_signs(aux >> (7 * (l / 2))), i % 8, v);
        return half_at(b) * (float)(2 * (aux >> 28) + 1) * 0.25f * v;
    }
};
#endif
#ifdef NEEDS_IQ3_S
struct Iq3S {
    enum { LEN = 256, BYTES = 110, UNIT = 2 };
    DEVICE float at(const u8* b, u32 i) {
        u32 n = i / 4, high = b[66 + n / 8] >> (n % 8) & 1, row = IQ3_S[b[2 + n] | high << 8];
        float v = (float)(2 * (row >> (4 * (i % 4)) & 7) + 1);
        v = signed_by((u32)b[74 + n / 2] >> (4 * (n % 2)), i % 4, v);
        return half_at(b) * nibble_scale(b + 106, i / 32) * v;
    }
};
#endif
