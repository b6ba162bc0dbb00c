use tpc_ir::program::{FileTarget, SumOrder, Target};
use tpc_ir::{Bindings, Symbol};

use crate::machine::{Engine, Topology, Workload};
use crate::place::LayerPlacement;

/// The machine, workload and placement of a plan.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// The machine.
    pub topology: Topology,
    /// The batches.
    pub workload: Workload,
    /// The devices' names, in order.
    pub devices: Vec<String>,
    /// The place of every layer, and overrides.
    pub layer_placement: LayerPlacement,
    /// The weights of `--tensor-split`; `None` for weights by bandwidth.
    pub tensor_split: Option<Vec<f64>>,
    /// The price of a stored byte, in reads of a byte: [`Workload::MEMORY_PRICE`], or more if memory is short.
    pub memory_price: f64,
    /// The estimated engine.
    pub engine: Engine,
    /// Number of tokens in the cache for estimates.
    pub depth: u64,
    /// The order of sums over devices.
    pub sums: SumOrder,
    /// The number of cells that the plan's graphs count as one; more than 1 if caches are divided by cells.
    pub cell_unit: u64,
    /// The target that stores the weights. If it can repack blocks, ranges may end inside blocks.
    pub storage: &'static dyn Target,
}

impl PlanRequest {
    /// Returns a request for one stage, with device weights by bandwidth.
    pub fn new(topology: Topology, workload: Workload, devices: Vec<String>) -> PlanRequest {
        PlanRequest {
            topology,
            workload,
            layer_placement: LayerPlacement::single_stage(devices.len()),
            devices,
            tensor_split: None,
            memory_price: Workload::MEMORY_PRICE,
            engine: Engine::default(),
            depth: 0,
            sums: SumOrder::default(),
            cell_unit: 1,
            storage: &FileTarget,
        }
    }

    /// Divides the caches of stages with several devices by cells. Each of `parallel` sequences has whole units of cells.
    pub fn divide_cells(&mut self, parallel: u64) {
        self.cell_unit = crate::cells::cell_unit(&self.layer_placement);
        for batch in [&mut self.workload.decode, &mut self.workload.prefill] {
            *batch = batch.in_units(self.cell_unit);
            for symbol in [Symbol::NCtx, Symbol::NCtxSwa] {
                let parts = parallel.max(1).saturating_mul(self.cell_unit);
                let cells = batch.get(symbol).div_ceil(parts).saturating_mul(parts);
                *batch = batch.with(symbol, cells);
            }
        }
    }

    /// Returns the batch of one token after `depth` tokens.
    pub fn decode_batch(&self) -> Bindings {
        self.at_depth(self.workload.decode, self.depth.saturating_add(1))
    }

    /// Returns the largest batch of a prompt after `depth` tokens.
    pub fn prefill_batch(&self) -> Bindings {
        let prefill = self.workload.prefill;
        let tokens = prefill.get(Symbol::NTokens);
        self.at_depth(prefill, self.depth.saturating_add(tokens))
    }

    /// Returns the batch with attention to `cells` cells, rounded up to the engines' step and at most the cache.
    pub fn at_depth(&self, batch: Bindings, cells: u64) -> Bindings {
        const STEP: u64 = 256;
        let cells = cells.checked_next_multiple_of(STEP).unwrap_or(cells);
        let cells = cells.min(batch.get(Symbol::NCtx));
        batch
            .with(Symbol::NKv, cells)
            .with(Symbol::NKvSwa, cells.min(batch.get(Symbol::NCtxSwa)))
    }

    /// Returns the device weights: each device's relative part of the work.
    pub fn device_weights(&self) -> Vec<f64> {
        match &self.tensor_split {
            Some(s) => (0..self.devices.len())
                .map(|i| s.get(i).copied().unwrap_or(0.0))
                .collect(),
            None => (0..self.devices.len())
                .map(|i| self.topology.device(i).bandwidth)
                .collect(),
        }
    }

    /// Returns the weights of a stage's devices; equal weights if all are zero.
    pub fn stage_device_weights(&self, stage: usize) -> Vec<f64> {
        let all = self.device_weights();
        let devices = &self.layer_placement.stages[stage];
        let weights: Vec<f64> = devices.iter().map(|&d| all[d]).collect();
        if weights.iter().all(|&w| w <= 0.0) {
            return vec![1.0; weights.len()];
        }
        weights
    }
}
