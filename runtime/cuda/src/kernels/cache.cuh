// KV cache rows: copies to shared memory, and decoding of eight elements at a time.

// The mask value and score of an invisible cell.
DEVICE float minus_infinity() { return u2f(0xff800000u); }

// What attention writes besides the values of a row: nothing, the int8 terms of the values, or the log-sum-exp of the
// row's scores as one more element.
enum { PLAIN, WITH_TERMS, WITH_LSE };

// Returns the logarithm of a sum of exponentials, from the maximum and the sum relative to it; -infinity for no score.
DEVICE float log_sum_exp(float top, float total) { return top + logf(total); }

// A tile of `own` rows from `first` on. A row is one query head of one token. The heads of a token are adjacent and
// share a KV head.
struct RowTile {
    u32 group, tokens, kv, stream, first, own;
    DEVICE_MEMBER u32 head(u32 r) const { return kv * group + (first + r) % group; }
    DEVICE_MEMBER u32 token(u32 r) const { return (first + r) / group; }
};

// The rows of one KV head and stream, one per cell.
struct CacheRows {
    const u8* at;
    u64 step;
    // The bounds of the whole tensor. Kernels may also read bytes between rows.
    const u8 *begin, *end;
    // The bytes and blocks per row. `gap` is the byte distance between blocks; 0 if they are adjacent.
    u32 bytes, blocks;
    u64 gap;
    u32 cells;
};

// A block of the cache has `len` elements and `bytes` bytes.
DEVICE CacheRows cache_rows(const View& v, u32 len, u32 bytes, u32 kv, u32 stream) {
    CacheRows r;
    r.at = row_of(v, 0, kv, stream);
    r.step = v.nb[1];
    r.blocks = (v.ne[0] + len - 1) / len;
    r.bytes = r.blocks * bytes;
    r.gap = r.blocks > 1 && v.nb[0] != bytes ? v.nb[0] : 0;
    r.cells = v.ne[1];
    r.begin = v.at;
    r.end = v.at + bytes;
    if (v.ne[1] && r.blocks) r.end += (r.blocks - 1) * v.nb[0] + (v.ne[1] - 1) * v.nb[1] + (v.ne[2] - 1) * v.nb[2] + (v.ne[3] - 1) * v.nb[3];
    return r;
}
template <class T> DEVICE CacheRows cache_rows(const View& v, u32 kv, u32 stream) { return cache_rows(v, T::LEN, T::BYTES, kv, stream); }

// Returns the bytes per row in shared memory. Shared and global addresses of a row are equal modulo 16.
DEVICE u32 staged_stride(u32 bytes) { return (bytes + 30) / 16 * 16; }

// Returns the offset of a row within its slot in shared memory.
DEVICE u32 phase_of(const CacheRows& r, u32 cell) { return r.gap ? 0 : (u32)((u64)(r.at + cell * r.step) % 16); }

// Starts to copy rows to shared memory. `lanes` adjacent lanes copy a row, 16 bytes each per step. A copy may read
// bytes outside the row, but within the tensor.
template <class T> DEVICE void stage(const CacheRows& r, u32 first, u32 count, u8* to, u32 lanes) {
    u32 lane = threadIdx.x % lanes, stride = staged_stride(r.bytes);
    for (u32 c = threadIdx.x / lanes; c < count && first + c < r.cells; c += blockDim.x / lanes) {
        const u8* row = r.at + (first + c) * r.step;
        u8* place = to + c * stride;
        if (r.gap) {
            for (u32 b = lane; b < r.blocks; b += lanes) copy_block<T>(place + b * T::BYTES, row + b * r.gap);
            continue;
        }
        const u8* aligned = row - (u64)row % 16;
        u32 windows = ((u32)(row - aligned) + r.bytes + 15) / 16;
        for (u32 w = lane; w < windows; w += lanes) {
            const u8* from = aligned + 16 * w;
            if (from >= r.begin && from + 16 <= r.end) {
                cp_async16(place + 16 * w, from);
                continue;
            }
            for (u32 b = 0; b < 16; b += 2)
                if (from + b >= row && from + b < row + r.bytes) *(u16*)(place + 16 * w + b) = *(const u16*)(from + b);
        }
    }
}

DEVICE void two_reals(F16, u32 w, float* out) {
    out[0] = h2f((u16)w);
    out[1] = h2f((u16)(w >> 16));
}
DEVICE void two_reals(Bf16, u32 w, float* out) {
    out[0] = u2f(w << 16);
    out[1] = u2f(w & 0xffff0000u);
}
// Other types are not decoded from words.
template <class T> DEVICE void two_reals(T, u32, float*) {}
DEVICE void four_words(F32, const uint4& w, float* out) {
    out[0] = u2f(w.x);
    out[1] = u2f(w.y);
    out[2] = u2f(w.z);
    out[3] = u2f(w.w);
}
template <class T> DEVICE void four_words(T t, const uint4& w, float* out) {
    two_reals(t, w.x, out);
    two_reals(t, w.y, out + 2);
    two_reals(t, w.z, out + 4);
    two_reals(t, w.w, out + 6);
}

// Decodes elements `8 piece` to `8 piece + 8` of a row of `n` elements in shared memory; 0 after the end of the row.
template <class T> struct Eight {
    DEVICE void of(const u8* row, u32 piece, u32 n, float* out) {
        const u8* at = row + piece * 8 * T::BYTES;
        if (piece * 8 + 8 <= n && (u64)at % 16 == 0) {
            four_words(T(), ((const uint4*)at)[0], out);
            if (T::BYTES == 4) four_words(T(), ((const uint4*)at)[1], out + 4);
            return;
        }
#pragma unroll
        for (u32 j = 0; j < 8; j++) out[j] = piece * 8 + j < n ? T::at(at + j * T::BYTES, 0) : 0.0f;
    }
};

// Converts four byte codes to floats and subtracts `zero`. The code becomes the low mantissa bits of 2^23.
DEVICE void code_reals(u32 codes, float zero, float* out) {
#pragma unroll
    for (u32 j = 0; j < 4; j++) out[j] = u2f(byte_perm(codes, 0x4b000000u, 0x7540u | j)) - (8388608.0f + zero);
}
DEVICE void scale_codes(u32 low, u32 high, float zero, float d, float* out) {
    code_reals(low, zero, out);
    code_reals(high, zero, out + 4);
#pragma unroll
    for (u32 j = 0; j < 8; j++) out[j] *= d;
}
DEVICE void scale_codes_from(u32 low, u32 high, float d, float least, float* out) {
    code_reals(low, 0.0f, out);
    code_reals(high, 0.0f, out + 4);
#pragma unroll
    for (u32 j = 0; j < 8; j++) out[j] = out[j] * d + least;
}

// Returns word `i` (0 or 1) of the nibbles of a quarter block, one nibble per byte.
DEVICE u32 nibbles(const u8* codes, u32 quarter, u32 i) { return word_at(codes + quarter % 2 * 8 + 4 * i) >> (quarter / 2 * 4) & 0x0f0f0f0fu; }
// Returns bits `from` to `from + 4` as the fifth bits of four codes.
DEVICE u32 fifths(u32 bits, u32 from) { return ((bits >> from & 15u) * 0x00204081u & 0x01010101u) << 4; }
DEVICE u32 fives(const u8* b, u32 quarter, u32 i) { return nibbles(b + 4, quarter, i) | fifths(word_at(b), 8 * quarter + 4 * i); }
// Returns the table values of four nibbles, plus 128.
DEVICE u32 iq4_values(u32 codes) {
    u32 s = (codes | codes >> 4) & 0x00ff00ffu;
    s = (s | s >> 8) & 0xffffu;
    u32 low = byte_perm(0xbfad9881u, 0xf6eaddcfu, s & 0x7777u), high = byte_perm(0x26190d01u, 0x71594535u, s & 0x7777u);
    return byte_perm(low, high, (s >> 1 & 0x4444u) | 0x3210u) ^ 0x80808080u;
}

template <> struct Eight<Q8_0> {
    DEVICE void of(const u8* row, u32 piece, u32, float* out) {
        const u8 *b = row + piece / 4 * Q8_0::BYTES, *codes = b + 2 + piece % 4 * 8;
        scale_codes(word_at(codes) ^ 0x80808080u, word_at(codes + 4) ^ 0x80808080u, 128.0f, half_at(b), out);
    }
};
template <> struct Eight<Q4_0> {
    DEVICE void of(const u8* row, u32 piece, u32, float* out) {
        const u8* b = row + piece / 4 * Q4_0::BYTES;
        scale_codes(nibbles(b + 2, piece % 4, 0), nibbles(b + 2, piece % 4, 1), 8.0f, half_at(b), out);
    }
};
template <> struct Eight<Q4_1> {
    DEVICE void of(const u8* row, u32 piece, u32, float* out) {
        const u8* b = row + piece / 4 * Q4_1::BYTES;
        scale_codes_from(nibbles(b + 4, piece % 4, 0), nibbles(b + 4, piece % 4, 1), half_at(b), half_at(b + 2), out);
    }
};
template <> struct Eight<Q5_0> {
    DEVICE void of(const u8* row, u32 piece, u32, float* out) {
        const u8* b = row + piece / 4 * Q5_0::BYTES;
        scale_codes(fives(b + 2, piece % 4, 0), fives(b + 2, piece % 4, 1), 16.0f, half_at(b), out);
    }
};
template <> struct Eight<Q5_1> {
    DEVICE void of(const u8* row, u32 piece, u32, float* out) {
        const u8* b = row + piece / 4 * Q5_1::BYTES;
        scale_codes_from(fives(b + 4, piece % 4, 0), fives(b + 4, piece % 4, 1), half_at(b), half_at(b + 2), out);
    }
};
template <> struct Eight<Iq4Nl> {
    DEVICE void of(const u8* row, u32 piece, u32, float* out) {
        const u8* b = row + piece / 4 * Iq4Nl::BYTES;
        scale_codes(iq4_values(nibbles(b + 2, piece % 4, 0)), iq4_values(nibbles(b + 2, piece % 4, 1)), 128.0f, half_at(b), out);
    }
};
