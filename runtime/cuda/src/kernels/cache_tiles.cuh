// Tiles of a KV cache in shared memory, for blocks of `CHUNK` threads.

// The cells of a chunk, one per thread. Chunks begin at fixed cells, so the order of additions does not depend on the
// number of cells.
enum { CHUNK = 128, WARPS = CHUNK / 32, STAGES = 3 };

// The rows of one KV head and stream, in shared memory.
struct CacheTiles {
    CacheRows rows;
    // The distance in memory between two rows that a thread copies.
    u64 leap;
    // The distance between rows in shared memory, and the 16-byte windows that cover a row.
    u32 stride, windows;
    // The address of the first row and the distance between rows, modulo 16; 0 if blocks are copied one by one.
    u32 phase, turn;
    // The bytes of a block, and the blocks of a row with blocks of zeros up to a multiple of eight elements.
    u32 block, blocks;
    // 1 if all rows have the same phase and their windows lie within the tensor.
    u32 even;
    // 1 if blocks are copied one by one.
    u32 single;
};

// A block has `len` elements and `bytes` bytes. Rows of single elements are aligned in shared memory, so that a load
// returns several elements; their blocks are copied one by one if that needs another phase.
DEVICE CacheTiles cache_tiles(const View& v, u32 len, u32 bytes, u32 kv, u32 stream, u32 lanes) {
    CacheTiles c;
    c.rows = cache_rows(v, len, bytes, kv, stream);
    const CacheRows& r = c.rows;
    c.leap = r.step * (CHUNK / lanes);
    c.block = bytes;
    c.blocks = len == 1 ? (r.blocks + 7) / 8 * 8 : r.blocks;
    c.stride = staged_stride(r.bytes);
    c.phase = (u32)(u64)r.at % 16;
    c.turn = (u32)r.step % 16;
    c.single = r.gap || (len == 1 && (c.phase || c.turn || c.blocks != r.blocks));
    if (c.single) c.phase = c.turn = 0;
    c.windows = (c.phase + r.bytes + 15) / 16;
    const u8 *first = r.at - c.phase, *last = first + (u64)(r.cells - 1) * r.step;
    c.even = !c.single && c.turn == 0 && first >= r.begin && last + 16 * c.windows <= r.end;
    return c;
}

// Copies rows at any address. A window that crosses an end of the tensor is copied in halves of words.
DEVICE void stage_any(const CacheTiles& t, u32 first, u32 n, u32 lanes, u8* to) {
    const CacheRows& r = t.rows;
    u32 unit = t.single ? t.block : 16;
    u64 step = t.single && r.gap ? r.gap : unit;
#pragma unroll 1
    for (u32 c = threadIdx.x / lanes; c < n; c += CHUNK / lanes) {
        const u8* row = r.at + (first + c) * r.step;
        u32 phase = t.single ? 0 : (u32)(u64)row % 16, count = t.single ? t.blocks : (phase + r.bytes + 15) / 16;
#pragma unroll 1
        for (u32 w = threadIdx.x % lanes; w < count; w += lanes) {
            const u8* from = row - phase + w * step;
            u8* at = to + c * t.stride + w * unit;
            if (!t.single && from >= r.begin && from + 16 <= r.end) {
                cp_async16(at, from);
                continue;
            }
#pragma unroll 1
            for (u32 b = 0; b < unit; b += 2) {
                bool within = t.single ? w < r.blocks : w * 16 + b >= phase && w * 16 + b < phase + r.bytes;
                *(u16*)(at + b) = within ? *(const u16*)(from + b) : 0;
            }
        }
    }
}

// Starts to copy a tile of `cells` cells to shared memory, from cell `first` on. `lanes` adjacent lanes copy a row. A
// copy may read bytes outside the rows, but within the tensor.
DEVICE void stage_tile(const CacheTiles& t, u32 first, u32 cells, u32 lanes, u8* to) {
    u32 n = min(cells, t.rows.cells - first), own = threadIdx.x / lanes, rows = CHUNK / lanes;
    if (!t.even) {
        stage_any(t, first, n, lanes, to);
        return;
    }
    const u8* row = t.rows.at - t.phase + (first + own) * t.rows.step;
    u32 stride = rows * t.stride, windows = t.windows;
    u64 leap = t.leap;
    to += own * t.stride;
#pragma unroll 1
    for (u32 w = threadIdx.x % lanes; w < windows; w += lanes) {
        const u8* from = row + 16 * w;
        u8* place = to + 16 * w;
#pragma unroll 1
        for (u32 c = own; c < n; c += rows, from += leap, place += stride) cp_async16(place, from);
    }
}

// Decodes elements `8 piece` to `8 piece + 8` of a row in a tile. Rows of single elements are aligned.
template <class T> struct TileEight {
    // 1 if the elements are still to be multiplied by the factor that `of` returns.
    enum { SCALED = 0 };
    DEVICE float of(const u8* row, u32 piece, float* out) {
        if (T::LEN > 1) {
            Eight<T>::of(row, piece, 0, out);
            return 1.0f;
        }
        const uint4* at = (const uint4*)(row + piece * 8 * T::BYTES);
        uint4 w = at[0];
        four_words(T(), w, out);
        if (T::BYTES < 4) return 1.0f;
        w = at[1];
        four_words(T(), w, out + 4);
        return 1.0f;
    }
};
template <> struct TileEight<Q8_0> {
    enum { SCALED = 1 };
    DEVICE float of(const u8* row, u32 piece, float* out) {
        const u8 *b = row + piece / 4 * Q8_0::BYTES, *codes = b + 2 + piece % 4 * 8;
        scale_codes(word_at(codes) ^ 0x80808080u, word_at(codes + 4) ^ 0x80808080u, 128.0f, 1.0f, out);
        return half_at(b);
    }
};
