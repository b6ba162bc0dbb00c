// Caches divided by cells.

// The parts of a cache's cells that a device stores: block `b` of 64 cells belongs to part `b % of`. `of` is 0 if the cache
// is not divided.
struct CellParts {
    u32 first, count, of;
};

// Returns the position of a cell of the whole cache among the cells of the parts; -1 for a cell of another part.
DEVICE i64 local_cell(i64 cell, const CellParts& parts) {
    u64 block = (u64)cell / 64, round = block / parts.of, part = block % parts.of;
    if (part < parts.first || part - parts.first >= parts.count) return -1;
    return (i64)((round * parts.count + part - parts.first) * 64 + (u64)cell % 64);
}
