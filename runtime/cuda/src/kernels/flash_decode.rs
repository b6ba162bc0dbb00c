//! Attention of few tokens: blocks share the cells of a KV head.
//!
//! A block computes chunks of cells for up to eight rows, one chunk after another. A row is one query head of one token.
//! The rows of a block share the KV head, so a decode step reads the cache once per eight rows. Chunks begin at fixed
//! cells, and rows are independent. The result of a token therefore does not depend on other tokens or later cells.

use super::attention::{Attention, FAMILY};
use super::kernel::{GRID, Geometry, Scratch, Selection, Tensor, kernel};
use super::writable;

pub(super) const TOKENS: usize = 8;

/// The number of cells per chunk, and of threads per block.
const CHUNK: usize = 128;
/// The logarithm of the minimum number of chunks per group.
const FAN: u32 = 4;
/// The number of tiles in shared memory: one tile is read while other tiles are loaded.
const STAGES: usize = 3;
/// The maximum bytes of a tile.
const TILE: usize = 9600;
const ROWS: usize = 8;
/// The number of rows up to which the values of all teams are in shared memory at once.
const WHOLE_ROWS: usize = 4;

/// Returns how many blocks fit the registers of a multiprocessor.
fn resident(rows: usize) -> u32 {
    if rows == ROWS { 2 } else { 3 }
}
/// The maximum bytes of dynamic shared memory: 48 KB, less 2 KB for sizes, addresses and views.
const SHARED: usize = 46 << 10;
/// The maximum width of a row of V. Each thread holds eight elements.
const MAX_V_WIDTH: usize = 8 * CHUNK;

#[derive(Clone, Copy)]
struct Tile {
    cells: usize,
    bytes: usize,
    /// The number of adjacent lanes that copy a row, a power of two.
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
    /// The logarithm of the number of chunks per group.
    fan: u32,
}

impl FlashDecode {
    /// Divides the cells among blocks. Returns `None` if sizes exceed the grid, registers or shared memory, or if the
    /// cache type is not supported.
    pub(super) fn of(a: &Attention<'_>) -> Option<FlashDecode> {
        let [dk, tokens, heads, streams] = a.q.max_dims;
        let kv_heads = a.k.max_dims[2];
        if kv_heads > GRID || a.v.max_dims[0] > MAX_V_WIDTH {
            return None;
        }
        let of_head = heads.checked_div(kv_heads)?.checked_mul(tokens)?;
        let (keys, values) = (Tile::of(&a.k)?, Tile::of(&a.v)?);
        let dv = a.v.max_dims[0];
        let fits =
            |rows: &usize| shared_bytes(dk, *rows, stages(keys, values, *rows, dv)) <= SHARED;
        let most = of_head.clamp(1, ROWS).next_power_of_two();
        let rows = [8, 4, 2, 1].into_iter().find(|n| *n <= most && fits(n))?;
        let fan = fan(a.k.max_dims[1].div_ceil(CHUNK))?;
        let tiles = of_head.div_ceil(rows).max(1);
        let fits_grid = streams.max(1).checked_mul(tiles).is_some_and(|n| n <= GRID);
        fits_grid.then_some(FlashDecode {
            keys,
            values,
            rows,
            of_head,
            fan,
        })
    }

    pub(super) fn kernel(&self, a: &Attention<'_>) -> Selection {
        let [dk, _, heads, streams] = a.q.max_dims;
        let [_, cells, kv_heads, _] = a.k.max_dims;
        let chunks = cells.div_ceil(CHUNK).max(1);
        let tiles = self.of_head.div_ceil(self.rows).max(1);
        let blocks = self.blocks(chunks, tiles, a);
        let stage = self.keys.bytes.max(self.values.bytes);
        let mut params = a.params().f32(a.op.scale / a.op.softcap);
        for size in [stage as u32, tiles as u32, self.fan] {
            params = params.u32(size);
        }
        let room = stages(self.keys, self.values, self.rows, a.v.max_dims[0]);
        let geometry = Geometry {
            grid: [
                blocks as u32,
                kv_heads.max(1) as u32,
                (streams.max(1) * tiles) as u32,
            ],
            threads: CHUNK as u32,
            shared_bytes: shared_bytes(dk, self.rows, room) as u32,
        };
        let units = (streams * kv_heads * tiles) as u64;
        let rows = (streams * kv_heads * self.of_head) as u64;
        debug_assert_eq!(rows, (streams * heads * a.q.max_dims[1]) as u64);
        let of_row = 4 * (a.v.max_dims[0].next_multiple_of(4) + 2) as u64;
        let scratch = Scratch {
            counters: units * 4 * (chunks.div_ceil(1 << self.fan) as u64 + 1),
            parts: (rows * chunks as u64).saturating_mul(of_row),
        };
        let instance = a.instance(FAMILY, "flash_decode");
        let mut instance = instance.with(u32::from(a.sinks.is_some()));
        let (k, v) = (self.keys, self.values);
        for size in [self.rows, k.cells, k.lanes, v.cells, v.lanes] {
            instance = instance.with(size);
        }
        let instance = instance.with_launch_bounds(CHUNK as u32, resident(self.rows));
        let kernel = kernel(instance, a.with_slopes(params)?, geometry)?;
        Ok(kernel.with_scratch(scratch))
    }

    /// Returns the number of blocks that share the chunks of a tile of rows: enough for all resident blocks of the
    /// device, at most one per chunk.
    fn blocks(&self, chunks: usize, tiles: usize, a: &Attention<'_>) -> usize {
        let [_, _, kv_heads, streams] = a.k.max_dims;
        let others = tiles.saturating_mul(kv_heads).saturating_mul(streams);
        let resident = a.multiprocessors.max(1) as usize * resident(self.rows) as usize;
        resident.div_ceil(others.max(1)).clamp(1, chunks)
    }
}

/// Returns the bytes of all tiles in shared memory. The teams of a block add their values in this memory.
fn stages(keys: Tile, values: Tile, rows: usize, dv: usize) -> usize {
    let pieces = dv.div_ceil(8).max(1);
    let teams = CHUNK / pieces;
    let kept = match rows <= WHOLE_ROWS {
        true => teams,
        false => teams.div_ceil(2),
    };
    (STAGES * keys.bytes.max(values.bytes)).max(rows * kept * pieces * 32)
}

/// Returns the bytes of the scores, the queries and the tiles. A piece of queries has eight elements of each row, and four
/// more floats, so that pieces begin in different banks.
fn shared_bytes(dk: usize, rows: usize, stages: usize) -> usize {
    4 * (rows * CHUNK + dk.div_ceil(8) * (8 * rows + 4)) + stages
}

/// Returns the logarithm of the number of chunks per group; `None` if a group or the groups exceed a chunk's threads.
fn fan(chunks: usize) -> Option<u32> {
    (FAN..=CHUNK.ilog2()).find(|fan| chunks.div_ceil(1 << fan) <= CHUNK)
}
