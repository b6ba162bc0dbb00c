// Tiles of a KV cache in shared memory, for blocks of `CHUNK` threads.

// The cells of a chunk, one per thread. Chunks begin at fixed cells, so the order of additions does not depend on the
// number of cells.
enum { CHUNK = 128, WARPS = CHUNK / 32, STAGES = 3 };

// The rows of one KV head and stream, in shared memory.
struct CacheTiles {
    CacheRows rows;
    // The cells per tile, and the bytes of a block of elements. `1 << lanes` adjacent lanes copy a row.
    u32 cells, block, lanes;
    // The distance between rows in shared memory, and the 16-byte windows that cover a row.
    u32 stride, windows;
    // The address of the first row and the distance between rows, modulo 16; 0 if blocks are not adjacent.
    u32 phase, turn;
    // True if all rows have the same phase and their windows lie within the tensor.
    u32 even;

    // Returns the offset of a row within its slot.
    DEVICE_MEMBER u32 offset(u32 cell) const { return (phase + cell * turn) % 16; }
};

DEVICE CacheTiles cache_tiles(const CacheRows& rows, u32 cells, u32 block, u32 lanes) {
    CacheTiles c;
    c.rows = rows;
    c.block = block;
    c.cells = cells;
    c.lanes = lanes;
    c.stride = staged_stride(rows.bytes);
    c.phase = rows.gap ? 0 : (u32)(u64)rows.at % 16;
    c.turn = rows.gap ? 0 : (u32)rows.step % 16;
    c.windows = (c.phase + rows.bytes + 15) / 16;
    const u8 *first = rows.at - c.phase, *last = first + (u64)(rows.cells - 1) * rows.step;
    c.even = !rows.gap && c.turn == 0 && first >= rows.begin && last + 16 * c.windows <= rows.end;
    return c;
}

// Copies rows at any address. A window that crosses an end of the tensor is copied in halves of words.
DEVICE void stage_any(const CacheTiles& t, u32 first, u32 n, u8* to) {
    const CacheRows& r = t.rows;
#pragma unroll 1
    for (u32 c = threadIdx.x >> t.lanes; c < n; c += CHUNK >> t.lanes) {
        const u8* row = r.at + (first + c) * r.step;
        u8* place = to + c * t.stride;
        u32 phase = (u32)(u64)row % 16, windows = r.gap ? r.blocks : (phase + r.bytes + 15) / 16;
#pragma unroll 1
        for (u32 w = threadIdx.x & ((1u << t.lanes) - 1); w < windows; w += 1u << t.lanes) {
            const u8* from = r.gap ? row + w * r.gap : row - phase + 16 * w;
            u8* at = place + w * (r.gap ? t.block : 16);
            if (!r.gap && from >= r.begin && from + 16 <= r.end) {
                cp_async16(at, from);
                continue;
            }
#pragma unroll 1
            for (u32 b = 0; b < (r.gap ? t.block : 16); b += 2)
                if (r.gap || (from + b >= row && from + b < row + r.bytes)) *(u16*)(at + b) = *(const u16*)(from + b);
        }
    }
}

// Starts to copy a tile to shared memory, from cell `first` on. A copy may read bytes outside the rows, but within the
// tensor.
DEVICE void stage_tile(const CacheTiles& t, u32 first, u8* to) {
    u32 n = min(t.cells, t.rows.cells - first), lanes = t.lanes;
    if (!t.even) {
        stage_any(t, first, n, to);
        return;
    }
    u32 own = threadIdx.x >> lanes, rows = CHUNK >> lanes, stride = rows * t.stride;
    u64 step = rows * t.rows.step;
    const u8* row = t.rows.at - t.phase + (first + own) * t.rows.step;
    to += own * t.stride;
#pragma unroll 1
    for (u32 w = threadIdx.x & ((1u << lanes) - 1); w < t.windows; w += 1u << lanes) {
        const u8* from = row + 16 * w;
        u8* place = to + 16 * w;
#pragma unroll 1
        for (u32 c = own; c < n; c += rows, from += step, place += stride) cp_async16(place, from);
    }
}
