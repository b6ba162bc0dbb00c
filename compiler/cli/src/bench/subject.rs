//! The model that `tpc bench` measures.

use std::path::Path;

use tpc_core::pipeline::ModelSize;
use tpc_cpu::Ceilings;
use tpc_engine::step::{SerialTimes, serial_times};
use tpc_engine::{ExecutorKind, Loader, PreparedModel};

use super::measure::Test;
use crate::execution::Opened;

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
    /// Predicted times of kernels, with `--profile` on cards.
    pub(super) predicted: Option<SerialTimes>,
}

/// Predicts the times of a model's kernels on cards; `None` for artefacts and unknown cards.
pub(super) fn predicted(opened: &Opened) -> Option<SerialTimes> {
    let placement = opened.placement()?;
    let compiled = tpc_engine::plan(&opened.file, placement).ok()?;
    serial_times(&compiled, placement)
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
            predicted: None,
        }
    }

    /// Returns the predicted microseconds of a kernel's launch in a test.
    pub(super) fn predicted_us(&self, test: Test, kernel: &str) -> Option<f64> {
        let predicted = self.predicted.as_ref()?;
        let times = match test {
            Test::Prompt { .. } => &predicted.prompt,
            Test::Generation { .. } | Test::Both { .. } => &predicted.token,
        };
        times.get(kernel).copied()
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
