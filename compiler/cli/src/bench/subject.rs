//! The model that `tpc bench` measures.

use std::path::Path;

use tpc_core::pipeline::ModelSize;
use tpc_cpu::Ceilings;
use tpc_engine::{ExecutorKind, Loader, PreparedModel};

pub(super) struct Subject {
    pub(super) model: String,
    pub(super) file: String,
    pub(super) size: ModelSize,
    pub(super) backend: &'static str,
    pub(super) devices: String,
    pub(super) n_devices: usize,
    pub(super) ubatch: usize,
    /// The types of the K and V caches.
    pub(super) cache_types: [String; 2],
    pub(super) threads: usize,
    pub(super) split_mode: String,
}

impl Subject {
    pub(super) fn new(path: &Path, ready: &PreparedModel, loader: &Loader<'_>) -> Subject {
        Subject {
            model: ready.name.clone(),
            file: path.display().to_string(),
            size: ready.size,
            backend: loader.executor.kind.name(),
            devices: ready.devices.clone(),
            n_devices: ready.n_devices(),
            ubatch: loader.batch,
            cache_types: ready.cache_types.clone(),
            threads: match loader.executor.kind {
                ExecutorKind::Reference => 1,
                _ => loader.executor.threads,
            },
            split_mode: ready.split_mode.clone(),
        }
    }

    /// Measures the limits of the first device's threads; `None` on cards and for the reference.
    pub(super) fn limits(&self) -> Option<Ceilings> {
        let threads = self.threads / self.n_devices.max(1);
        match self.backend == ExecutorKind::Cpu.name() {
            true => Ceilings::measure(threads.max(1)),
            false => None,
        }
    }
}
