//! Attention of few tokens: blocks share the cells of a KV head.
//!
//! A block computes one chunk of cells for up to eight rows. A row is one query head of one token. The rows of a block
//! share the KV head, so a decode step reads the cache once per eight rows. Chunks begin at fixed cells, and rows are
//! independent. The result of a token therefore does not depend on other tokens or later cells.

use super::attention::{Attention, FAMILY};
use super::kernel::{GRID, Geometry, Scratch, Selection, Tensor, kernel};
use super::writable;

pub(super) const TOKENS: usize = 8;

/// The number of cells per chunk, and of threads per block.
const CHUNK: usize = 128;
const FAN: usize = 16;
/// The number of tiles in shared memory: one tile is read while other tiles are loaded.
const STAGES: usize = 3;
/// The maximum bytes of a tile.
const TILE: usize = 9600;
/// The minimum bytes of all tiles. The teams of a block add their values in this memory.
const MIN_TILE_BYTES: usize = 8192;
const ROWS: usize = 8;
const SHARED: usize = 48 << 10;
/// The maximum width of a row of V. Each thread holds eight elements.
const MAX_V_WIDTH: usize = 8 * CHUNK;

#[derive(Clone, Copy)]
struct Tile {
    cells: usize,
    bytes: usize,
    lanes: usize,
}

impl Tile {
    /// Returns the tile size; `None` if a row is too wide or the type is not supported.
    fn of(cache: &Tensor) -> Option<Tile> {
        writable(cache.dtype).ok()?;
        let row = usize::try_from(cache.dtype.bytes(cache.max_dims[0] as u64)?).ok()?;
        let stride = (row + 30) / 16 * 16;
        let cells = [32, 16, 8, 4].into_iter().find(|n| n * stride <= TILE)?;
        Some(Tile {
            cells,
            bytes: cells * stride,
            lanes: row.div_ceil(16).next_power_of_two().clamp(1, 32),
        })
    }
}

pub(super) struct FlashDecode {
    keys: Tile,
    values: Tile,
    rows: usize,
    /// The number of rows per KV head.
    of_head: usize,
}

impl FlashDecode {
    /// Divides the cells among blocks. Returns `None` if sizes exceed the grid, registers or shared memory, or if the
    /// cache type is not supported.
    pub(super) fn of(a: &Attention<'_>) -> Option<FlashDecode> {
        let [dk, tokens, heads, streams] = a.q.max_dims;
        let kv_heads = a.k.max_dims[2];
        if kv_heads > GRID || streams > GRID || a.v.max_dims[0] > MAX_V_WIDTH {
            return None;
        }
        let of_head = heads.checked_div(kv_heads)?.checked_mul(tokens)?;
        let (keys, values) = (Tile::of(&a.k)?, Tile::of(&a.v)?);
        let fits = |rows: &usize| {
            let floats = rows * (dk.next_multiple_of(8) + CHUNK);
            4 * floats + tile_bytes(keys, values) <= SHARED
        };
        let most = of_head.clamp(1, ROWS).next_power_of_two();
        let rows = [8, 4, 2, 1].into_iter().find(|n| *n <= most && fits(n))?;
        Some(FlashDecode {
            keys,
            values,
            rows,
            of_head,
        })
    }

    pub(super) fn kernel(&self, a: &Attention<'_>) -> Selection {
        let [dk, _, heads, streams] = a.q.max_dims;
        let [_, cells, kv_heads, _] = a.k.max_dims;
        let chunks = cells.div_ceil(CHUNK).max(1);
        let tiles = self.of_head.div_ceil(self.rows).max(1);
        let stage = self.keys.bytes.max(self.values.bytes);
        let mut params = a.params();
        for size in [
            self.keys.cells,
            self.values.cells,
            self.keys.lanes,
            self.values.lanes,
            stage,
        ] {
            params = params.u32(size as u32);
        }
        let shared =
            4 * self.rows * (dk.next_multiple_of(8) + CHUNK) + tile_bytes(self.keys, self.values);
        let blocks = chunks
            .checked_mul(tiles)
            .and_then(|n| u32::try_from(n).ok());
        let blocks = blocks.filter(|n| *n <= u32::MAX / 2);
        let geometry = Geometry {
            grid: [
                blocks.ok_or("the cache has too many cells")?,
                kv_heads.max(1) as u32,
                streams.max(1) as u32,
            ],
            threads: CHUNK as u32,
            shared_bytes: shared as u32,
        };
        let units = (streams * kv_heads * tiles) as u64;
        let rows = (streams * kv_heads * self.of_head) as u64;
        debug_assert_eq!(rows, (streams * heads * a.q.max_dims[1]) as u64);
        let of_row = 4 * (a.v.max_dims[0].next_multiple_of(4) + 2) as u64;
        let scratch = Scratch {
            counters: units * 4 * (chunks.div_ceil(FAN) as u64 + 1),
            parts: (rows * chunks as u64).saturating_mul(of_row),
        };
        let blocks_per_multiprocessor = if self.rows == ROWS { 2 } else { 3 };
        let instance = a.instance(FAMILY, "flash_decode").with(self.rows);
        let instance = instance.with_launch_bounds(CHUNK as u32, blocks_per_multiprocessor);
        let kernel = kernel(instance, a.with_slopes(params)?, geometry)?;
        Ok(kernel.with_scratch(scratch))
    }
}

fn tile_bytes(keys: Tile, values: Tile) -> usize {
    (STAGES * keys.bytes.max(values.bytes)).max(MIN_TILE_BYTES)
}
