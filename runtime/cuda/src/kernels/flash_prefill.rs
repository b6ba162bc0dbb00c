//! Attention of many tokens on tensor cores, in tiles of rows.
//!
//! A row is one query head of one token; the rows of a tile share a KV head. A block loops over tiles of cells, so K
//! and V are read once per 64 rows. Queries are split into two f16 terms, scaled by a power of two per row. K, V and
//! weights are f16. Rows of quantised caches beyond the range of f16 are scaled by powers of two; scores and weights
//! reverse the scaling. Tiles begin at fixed cells, and the result of a row does not depend on other rows.

use tpc_ir::DType;

use super::attention::Attention;
use super::kernel::{GRID, Geometry, Selection, float, kernel};
use super::source::Family;

pub(super) const FAMILY: Family = Family {
    name: "flash_prefill",
    text: concat!(
        include_str!("terms.cuh"),
        "\n#line 1 \"cache.cuh\"\n",
        include_str!("cache.cuh"),
        "\n#line 1 \"flash_prefill.cu\"\n",
        include_str!("flash_prefill.cu")
    ),
};

const ROWS: usize = 64;
const THREADS: u32 = 128;
/// The limit of dynamic shared memory in bytes. Compute capability 7.5 has 64 KiB, and the kernel declares less than 1
/// KiB.
const SHARED: usize = 63 << 10;
/// The memory in which the block transposes results, with 36 floats per row.
const OUTPUT_BYTES: usize = ROWS * 36 * 4;

/// Template arguments that determine registers and tiles: queries of `16 * steps` elements, `columns` columns of V,
/// tiles of `cells` cells.
#[derive(Clone, Copy)]
struct Shape {
    steps: usize,
    columns: usize,
    cells: usize,
}

pub(super) struct FlashPrefill {
    shape: Shape,
    shared: usize,
    /// The bytes of a row of K, and of V.
    rows: [usize; 2],
    tiles: usize,
    parts: usize,
}

impl FlashPrefill {
    /// Returns the launch; `None` if f16 cannot hold the cache type or a tile exceeds shared memory.
    pub(super) fn of(a: &Attention<'_>) -> Option<FlashPrefill> {
        let [dk, tokens, heads, streams] = a.q.max_dims;
        let (kv_heads, dv) = (a.k.max_dims[2], a.v.max_dims[0]);
        float(a.q.dtype).ok()?;
        if !fits_f16(a.k.dtype) || !fits_f16(a.v.dtype) || kv_heads > GRID || streams > GRID {
            return None;
        }
        let (steps, columns, cells) = match (dk, dv) {
            (..=64, ..=64) => (4_usize, 64_usize, 32_usize),
            (..=128, _) => (8, 128, 32),
            (..=256, _) => (16, 64, 16),
            _ => return None,
        };
        let row = |dtype: DType, n: usize| usize::try_from(dtype.bytes(n as u64)?).ok();
        let rows = [row(a.k.dtype, dk)?, row(a.v.dtype, dv)?];
        let raw: usize = rows.iter().map(|n| (n + 30) / 16 * 16).sum();
        let keys = 2 * (16 * steps + 8);
        let values = columns * (2 * cells + 16) + columns / 8 * 16;
        // Second terms of queries wider than 128 elements exceed the registers and are in shared memory.
        let low = if steps > 8 {
            16 * steps * THREADS as usize
        } else {
            0
        };
        let shared = cells.checked_mul(raw + keys)?.checked_add(values + low)?;
        let of_head = heads.checked_div(kv_heads)?.checked_mul(tokens)?;
        (shared <= SHARED).then_some(FlashPrefill {
            shape: Shape {
                steps,
                columns,
                cells,
            },
            shared: shared.max(OUTPUT_BYTES),
            rows,
            tiles: of_head.div_ceil(ROWS).max(1),
            parts: dv.div_ceil(columns).max(1),
        })
    }

    pub(super) fn kernel(&self, a: &Attention<'_>) -> Selection {
        let lanes = |bytes: usize| bytes.div_ceil(16).next_power_of_two().clamp(1, 32);
        let params = a
            .params()
            .u32(lanes(self.rows[0]) as u32)
            .u32(lanes(self.rows[1]) as u32)
            .u32(self.parts as u32);
        let blocks = self.tiles.checked_mul(self.parts);
        let blocks = blocks.and_then(|n| u32::try_from(n).ok());
        let blocks = blocks.filter(|n| *n <= u32::MAX / 2);
        let geometry = Geometry {
            grid: [
                blocks.ok_or("the batch has too many tokens")?,
                a.k.max_dims[2].max(1) as u32,
                a.q.max_dims[3].max(1) as u32,
            ],
            threads: THREADS,
            shared_bytes: self.shared as u32,
        };
        let Shape {
            steps,
            columns,
            cells,
        } = self.shape;
        let instance = a.instance(FAMILY, "flash_prefill");
        let instance = instance.with(steps).with(columns).with(cells);
        kernel(
            instance.with_launch_bounds(THREADS, 2),
            a.with_slopes(params)?,
            geometry,
        )
    }
}

/// True if f16 can hold the elements of a cache: f16 itself, or quantised codes.
fn fits_f16(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::F16
            | DType::Q8_0
            | DType::Q4_0
            | DType::Q4_1
            | DType::Q5_0
            | DType::Q5_1
            | DType::Iq4Nl
    )
}
