use tpc_cpu::host::HostOps;
use tpc_cpu::{CpuOptions, KernelError, View};
use tpc_ir::Bindings;
use tpc_ir::program::Program;
use tpc_runtime::ExecError;

use super::device_view::DeviceView;
use super::frames::Frames;
use super::launches::{LaunchTask, Launches};
use super::memory::Arenas;
use super::options::CudaOptions;

#[derive(Debug)]
pub(super) struct HostLaunches {
    pub(super) ops: HostOps,
    views: Vec<Vec<View>>,
}

impl HostLaunches {
    pub(super) fn new(
        program: &Program,
        launches: &Launches,
        arenas: &Arenas,
        options: CudaOptions,
    ) -> Result<HostLaunches, ExecError> {
        let cpu = CpuOptions {
            options: options.options,
            ..CpuOptions::with_threads(options.threads)
        };
        let first_byte = |arena| arenas.address(arena) as *mut u8;
        let ops = HostOps::new(program, &launches.hosted, &first_byte, cpu)?;
        let views = vec![Vec::new(); launches.hosted.len()];
        Ok(HostLaunches { ops, views })
    }

    pub(super) fn set(
        &mut self,
        (launches, frames): (&Launches, &Frames),
        slots: &[DeviceView],
        sizes: &Bindings,
    ) -> Result<(), ExecError> {
        for task in launches.tasks.iter().flatten() {
            if let LaunchTask::Host { op, slots: of, .. } = task {
                let view = |slot: usize| match launches.staged.get(&slot) {
                    Some(part) => slots[slot].dense(frames.staging(launches, *part)),
                    None => slots[slot],
                };
                self.views[*op] = of.clone().map(|slot| view(slot).on_host()).collect();
            }
        }
        self.ops.resize(sizes)
    }

    #[allow(unsafe_code)]
    pub(super) fn run(&mut self, op: usize) -> Result<(), KernelError> {
        // SAFETY: the verifier has checked that every view is inside its arena, which is host memory. It has also
        // checked that steps with overlapping memory are ordered; the edges of the graph keep this order.
        unsafe { self.ops.run(op, &self.views[op]) }
    }
}
