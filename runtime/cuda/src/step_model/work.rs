//! The work of a launch: its blocks, instructions, bytes and tensor instructions.

use super::constants::IDP_WEIGHTS;
use super::key::KernelKey;
use super::table::KernelCounts;
use crate::executor::{PlannedKernel, PlannedTensor};
use crate::nvrtc::LoopUnit;

/// Multiply-adds of a tensor instruction of f16, and of int8.
const HMMA: f64 = 2048.0;
/// Turing's tensor instruction of f16 is half as large.
const HMMA_SM_75: f64 = 1024.0;
const IMMA: f64 = 4096.0;
/// Columns of a tile of products with int8 tensor instructions.
const IMMA_COLUMNS: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    /// Blocks with work, and blocks that end at once.
    pub(super) blocks: f64,
    pub(super) idle: f64,
    pub(super) warps: f64,
    /// The products in one launch. A block computes one of them, and runs its part of the code.
    pub(super) parts: f64,
    /// Iterations of the main loop of a warp.
    pub(super) trips: f64,
    /// Iterations that wait for their own loads of weights.
    pub(super) waits: f64,
    /// Tiles of a warp's rows, if the loads of a tile begin while the warp computes the tile before; else 0.
    pub(super) ahead: f64,
    /// Bytes from memory.
    pub(super) bytes: f64,
    /// Operations of a warp's tensor instructions in an iteration.
    pub(super) tensor: f64,
}

fn product(sizes: &[u64]) -> f64 {
    sizes.iter().map(|n| *n as f64).product()
}

/// Returns the number of products in one launch.
fn parts(name: &str) -> f64 {
    let each = ["GroupedProduct<", "Gemv<"].map(|part| name.matches(part).count());
    each.iter().sum::<usize>().max(1) as f64
}

/// Returns the first weight in planes.
fn weight(kernel: &PlannedKernel) -> Option<&PlannedTensor> {
    kernel.operands.iter().find(|t| t.planes)
}

impl Work {
    pub(super) fn of(kernel: &PlannedKernel, counts: &KernelCounts) -> Work {
        let grid = product(&kernel.grid.map(u64::from));
        let warps = f64::from(kernel.threads.div_ceil(32));
        let mut work = Work {
            blocks: grid,
            idle: 0.0,
            warps,
            parts: parts(&kernel.name),
            trips: 0.0,
            waits: 0.0,
            ahead: 0.0,
            bytes: bytes(kernel),
            tensor: 0.0,
        };
        let done = f64::from(counts.code.done.max(1));
        let all_warps = grid * warps;
        let key = KernelKey::of(&kernel.name);
        if KernelKey::is_attention(key.template()) {
            work.attention(kernel, counts, done);
            return work;
        }
        match counts.code.unit {
            LoopUnit::Idp => {
                let weights = kernel.weight_elements as f64;
                work.trips = weights / (all_warps * 32.0 * IDP_WEIGHTS * done);
                work.waits = match weight(kernel).filter(|_| work.parts > 1.0) {
                    // The loops of the parts differ; each iteration has a pair of groups per lane.
                    Some(weight) => weight.dims[0] as f64 / (64.0 * 32.0),
                    None => work.trips,
                };
                if key.template().ends_with("gemv") {
                    let pairs = weight(kernel).map_or(0.0, |w| w.dims[0] as f64 / 64.0);
                    work.ahead = (pairs / 32.0).ceil();
                    work.waits = 0.0;
                }
            }
            LoopUnit::Imma => {
                let adds = kernel.weight_elements as f64 * IMMA_COLUMNS * 2.0;
                work.trips = adds / IMMA / (all_warps * done);
                work.waits = work.trips;
            }
            LoopUnit::Hmma => work.tiles(kernel, counts, done),
            LoopUnit::Bytes => {
                let files = kernel.operands.iter().filter(|t| !t.planes);
                let read = files.map(|t| t.bytes as f64).sum::<f64>().min(work.bytes);
                work.trips = read / (all_warps * 32.0 * done);
            }
            LoopUnit::Ffma | LoopUnit::None => {}
        }
        work.waits = work.waits.ceil();
        if work.parts < 2.0 {
            work.trips = work.trips.ceil().max(1.0);
        }
        work
    }

    /// Sets the work of tiles on tensor cores. A tile has as many rows as columns, one per two threads.
    fn tiles(&mut self, kernel: &PlannedKernel, counts: &KernelCounts, done: f64) {
        let tile = f64::from(kernel.threads / 2);
        let Some(weight) = weight(kernel) else {
            return;
        };
        let size = if counts.target == "sm_75" {
            HMMA_SM_75
        } else {
            HMMA
        };
        self.trips = tile * tile * weight.dims[0] as f64 / size / self.warps / done;
        self.tensor = done * size * 2.0;
        let stack = product(&weight.dims[2..]);
        let ids = kernel.operands.iter().find(|t| t.dtype == "i32");
        if let Some(ids) = ids.filter(|_| stack > 1.0) {
            // Entries are spread evenly over the experts.
            let entries = product(&ids.dims);
            let used = stack.min(entries);
            let columns = used * (entries / used / tile).ceil();
            let busy = columns.min(f64::from(kernel.grid[0]));
            let share = busy / f64::from(kernel.grid[0]).max(1.0);
            self.idle = self.blocks * (1.0 - share);
            self.blocks *= share;
        }
    }

    /// Sets the work of attention. Blocks divide the cells of the largest context; blocks without cells end at once.
    fn attention(&mut self, kernel: &PlannedKernel, counts: &KernelCounts, done: f64) {
        let [q, k, v, ..] = kernel.operands.as_slice() else {
            return;
        };
        let (cells, most) = (k.dims[1] as f64, k.most[1].max(1) as f64);
        let [_, tokens, heads, streams] = q.dims.map(|n| n as f64);
        let mut adds = tokens * heads * streams * cells;
        let tensor = counts.code.unit == LoopUnit::Hmma;
        if tensor {
            // A token sees the cells before it; queries have two terms.
            adds *= 1.0 - (tokens - 1.0) / (2.0 * cells.max(tokens));
            adds *= (2 * q.dims[0] + v.dims[0]) as f64;
            let size = if counts.target == "sm_75" {
                HMMA_SM_75
            } else {
                HMMA
            };
            self.trips = adds / size / (self.blocks * self.warps * done);
            self.tensor = done * size * 2.0;
        } else {
            let along = f64::from(kernel.grid[0]);
            let busy = (along * cells / most).ceil().clamp(1.0, along) / along;
            self.idle = self.blocks * (1.0 - busy);
            self.blocks *= busy;
            adds *= (q.dims[0] + v.dims[0]) as f64;
            self.trips = adds / 32.0 / (self.blocks * self.warps * done);
        }
        self.trips = self.trips.max(1.0);
        self.bytes = (q.bytes + k.bytes + v.bytes) as f64;
    }
}

/// Returns the bytes from memory. Lookups and writes of rows touch as many bytes as their smaller tensor has.
fn bytes(kernel: &PlannedKernel) -> f64 {
    let of = |tensors: &[PlannedTensor]| -> Vec<u64> {
        let files = tensors.iter().filter(|t| !t.planes);
        files.map(|t| t.bytes).collect()
    };
    let (operands, results) = (of(&kernel.operands), of(&kernel.results));
    let most = operands.iter().copied().max().unwrap_or(0);
    let template = kernel.name.split('<').next().unwrap_or("");
    let rows = ["get_rows", "set_rows", "set_slice", "plane_rows"];
    if rows.contains(&template) {
        let all = operands.iter().chain(&results);
        // Tensors below 64 bytes are indices.
        let least = all.copied().filter(|n| *n > 64).min().unwrap_or(0);
        return 2.0 * least as f64;
    }
    // A result may be a whole cache, of which the launch writes a few rows.
    let written: u64 = results.iter().map(|n| (*n).min(most)).sum();
    (operands.iter().sum::<u64>() + written + kernel.weight_bytes) as f64
}
