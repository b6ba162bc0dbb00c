// Activations as two int8 terms: `x = d (254 q + r)`, with a precision of 16 bits.
//
// A column consists of tiles of 32 pairs. A pair has ten chunks of 16 bytes; consecutive chunks of a pair are 32 chunks
// apart. Chunks 0 to 3 hold the codes q of both groups, chunks 4 to 7 the codes r. Chunks 8 and 9 hold, for each group,
// d, the sum of the activations, and the sums of 254 q + r over each half.
enum { TILE = 32, TILE_BYTES = 32 * 160, CODES = 0, RESTS = 4, SUMS = 8 };

DEVICE const uint4* terms_at(const u8* tile, i32 in, i32 c) { return (const uint4*)tile + in + c * TILE; }
DEVICE const u8* terms_tile(const u8* column, i32 first) { return column + (i64)first * (TILE_BYTES / TILE); }

// Returns the number of groups in a row of `k` elements. An odd number is padded with a group of zeros.
DEVICE u32 groups_of_terms(u32 k) { return (k / 32 + 1) / 2 * 2; }

// Writes the terms of a group. Eight lanes pass four activations each; all lanes of the warp must call it.
DEVICE void put_terms(const float* e, u32 group, const u8* column, bool real) {
    u32 lane = threadIdx.x % 8;
    float largest = 0.0f;
    for (u32 i = 0; i < 4; i++) {
        // Treat NaN like infinity.
        float size = fabsf(e[i]);
        largest = size <= largest ? largest : size == size ? size : u2f(0x7f800000u);
    }
    for (u32 o = 1; o < 8; o *= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, o));
    bool finite = largest < u2f(0x7f800000u);
    float inverse = finite && largest > 1e-30f ? 127.0f / largest : 0.0f;
    float d = inverse > 0.0f ? largest / (127.0f * 254.0f) : 0.0f;
    if (!finite) d = u2f(0x7fc00000u);
    u32 codes = 0, rests = 0;
    i32 sum = 0;
    for (u32 i = 0; i < 4; i++) {
        float scaled = finite ? mul_rn(e[i], inverse) : 0.0f;
        i32 code = __float2int_rn(scaled);
        i32 rest = __float2int_rn(mul_rn(scaled - (float)code, 254.0f));
        codes |= (u32)(code & 0xff) << (8 * i);
        rests |= (u32)(rest & 0xff) << (8 * i);
        sum += 254 * code + rest;
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    i32 other = __shfl_xor_sync(0xffffffffu, sum, 4);
    if (!real) return;
    const u8* tile = terms_tile(column, group / 2 / TILE * TILE);
    u32 in = group / 2 % TILE, half = group % 2;
    ((u32*)terms_at(tile, in, CODES + 2 * half + lane / 4))[lane % 4] = codes;
    ((u32*)terms_at(tile, in, RESTS + 2 * half + lane / 4))[lane % 4] = rests;
    if (lane == 0) {
        uint4 sums = {f2u(d), f2u(d * (float)(sum + other)), (u32)sum, (u32)other};
        *(uint4*)terms_at(tile, in, SUMS + half) = sums;
    }
}

