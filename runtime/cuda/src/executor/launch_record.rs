use tpc_ir::program::Program;
use tpc_ir::{Launch, RANK};
use tpc_runtime::Frame;

use super::device_view::DeviceView;
use super::launches::{KernelRun, LaunchTask, Launches};
use crate::dump::LaunchRecord;

/// Returns the names of a kernel's launch in a batch of this shape.
pub(super) fn launch_record(
    program: &Program,
    launches: &Launches,
    frame: &Frame<DeviceView>,
    (launch, device): (Launch, usize),
    (run, shape): (&KernelRun, usize),
) -> LaunchRecord {
    let data = program.launch(launch);
    let mut ops: Vec<String> = Vec::new();
    for inst in data.covered_insts() {
        let name = program.graph.inst(*inst).op.name();
        if !ops.iter().any(|known| known == name) {
            ops.push(name.to_owned());
        }
    }
    if ops.is_empty() {
        ops.push(data.kernel.clone());
    }
    let value = launches.slots[run.slots.start + run.operands];
    let of_value = program.graph.value(value);
    let names = program.graph.devices.get(device);
    LaunchRecord {
        number: launch.index() as u32,
        device: names.map_or_else(|| format!("device {device}"), |d| d.name.clone()),
        kernel: run.kernels[shape]
            .as_ref()
            .map_or_else(String::new, |k| k.instance.entry()),
        ops,
        tensor: of_value.name.to_string(),
        value: value.to_string(),
        dtype: of_value.ty.dtype.to_string(),
        shape: frame.view(value).sizes().map(|n| n as u64) as [u64; RANK],
    }
}

/// Returns the kernel that reports indices out of range, or else the last kernel.
pub(super) fn reporting_run(
    launches: &Launches,
    launch: Launch,
    device: usize,
    shape: usize,
) -> Option<&KernelRun> {
    let tasks = launches.tasks[launch.index()].iter();
    let runs = tasks.filter_map(|task| match task {
        LaunchTask::Device {
            device: of,
            kernels,
            ..
        } if *of == device => Some(kernels),
        LaunchTask::Device { .. } | LaunchTask::Host { .. } => None,
    });
    let runs: Vec<&KernelRun> = runs.flatten().collect();
    let reports = |r: &&&KernelRun| {
        let kernel = r.kernels[shape].as_ref();
        kernel.is_some_and(|k| k.instance.reports_faults())
    };
    runs.iter().find(reports).or(runs.last()).copied()
}
