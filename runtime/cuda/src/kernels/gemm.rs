//! Selects kernels of products of many columns with weights in planes, and of their activations as f16.

use super::kernel::{Geometry, Request, Selection, Tensor, grid_per_row, instance, kernel};
use super::params::Params;
use super::product_template::{FAMILY, geometry};
use super::source::{Arguments, Instance};

/// The most columns that have the bits of one column. Products of more columns use tensor cores.
pub(crate) const MAX_ORDERED_COLUMNS: usize = 8;

/// The elements of K that a block multiplies at a time, and the copies of the activations in shared memory.
const STEP: usize = 32;
const COPIES: usize = 3;

/// The layout of activations as f16: the elements of a column, then its factor in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halves {
    /// The bytes of a column.
    pub column: usize,
}

impl Halves {
    /// Returns the layout for columns of `k` elements.
    pub const fn of(k: usize) -> Halves {
        Halves { column: 2 * k + 16 }
    }
}

/// Selects the kernel that converts activations to [`Halves`].
pub(super) fn halves(request: &Request<'_>) -> Selection {
    let [x] = request.reals()?;
    let template = instance(FAMILY, "halves", &[x.dtype], Arguments::Views);
    kernel(
        template,
        Params::new(),
        grid_per_row(x.rows(), x.max_dims[0]),
    )
}

/// True if a product of these activations (not of experts) reads [`Halves`].
pub(super) fn is_wide(activations: &Tensor) -> bool {
    activations.max_dims[1] > MAX_ORDERED_COLUMNS
}

/// The rows and columns of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

const LARGE: Tile = Tile {
    rows: 128,
    columns: 128,
};
const SMALL: Tile = Tile {
    rows: 64,
    columns: 64,
};
/// The number of large tiles from which all multiprocessors of a large card are busy.
const MANY_TILES: usize = 96;

impl Tile {
    /// Returns the tile for a product. `rows` counts the rows of all weights.
    pub(super) fn of(rows: usize, columns: usize, batches: usize) -> Tile {
        let count = rows.div_ceil(LARGE.rows) * columns.div_ceil(LARGE.columns) * batches;
        match count >= MANY_TILES {
            true => LARGE,
            false => SMALL,
        }
    }

    /// Returns the tile for expert products with this number of entries per expert.
    pub(super) fn of_experts(entries: usize) -> Tile {
        match entries >= LARGE.columns {
            true => LARGE,
            false => SMALL,
        }
    }

    /// Adds the tile to a template.
    pub(super) fn instance(self, template: Instance) -> Instance {
        self.bounds(template.with(self.rows).with(self.columns))
    }

    /// States the threads of a block, so that their registers fit.
    pub(super) fn bounds(self, template: Instance) -> Instance {
        template.with_launch_bounds(self.threads(), 1)
    }

    const fn threads(self) -> u32 {
        self.columns as u32 * 2
    }

    /// Returns the geometry for a number of blocks along the rows.
    pub(super) fn geometry(self, blocks: usize, columns: usize, batches: usize) -> Geometry {
        let of = geometry((columns, self.columns), blocks, batches, 0);
        let step_bytes = 2 * STEP;
        let shared = (2 * self.rows + COPIES * self.columns) * step_bytes + 4 * self.rows;
        Geometry {
            threads: self.threads(),
            shared_bytes: shared as u32,
            ..of
        }
    }
}
