use tpc_ir::Place;
use tpc_ir::program::BatchShape;

use super::point::Point;
use crate::pipeline::CompiledModel;
use crate::placement::Placement;

/// Bytes of intermediate values in the requested plan, per token of a batch, and per token and cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compute {
    per_token: f64,
    per_cell: f64,
}

impl Compute {
    pub(super) fn of(compiled: &CompiledModel, placement: &Placement) -> Compute {
        let cells = compiled.caches.n_ctx;
        let window = compiled.model.summary.window;
        let few = cells.min(256);
        let at = |cells: u64| {
            let batch = crate::pipeline::memory_batch_of(
                cells,
                window,
                placement.ubatch_size,
                placement.parallel,
            );
            let prints = compiled.footprints_of(BatchShape { most: batch });
            let devices = prints
                .iter()
                .filter(|(place, _)| matches!(place, Place::Device(_)));
            devices.map(|(_, print)| print.compute).max().unwrap_or(0) as f64
        };
        let (most, least) = (at(cells), at(few));
        let tokens = placement.ubatch_size.max(1) as f64;
        let slope = (most - least).max(0.0) / (cells - few).max(1) as f64;
        Compute {
            per_token: (least - slope * few as f64).max(0.0) / tokens,
            per_cell: slope / tokens,
        }
    }

    /// Computes the bytes at a point, before drafts correct them.
    pub(super) fn bytes(self, point: &Point) -> f64 {
        (self.per_token + self.per_cell * point.ctx_size as f64) * point.ubatch as f64
    }
}
