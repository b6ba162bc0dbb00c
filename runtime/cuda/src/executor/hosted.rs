//! The ops that the host runs within graphs.

use tpc_cpu::host::HostedOp;
use tpc_cpu::{KernelError, Team, View};
use tpc_ir::Bindings;
use tpc_ir::program::Program;
use tpc_runtime::ExecError;

use super::launches::{Launches, Task};
use super::memory::DeviceView;
use super::options::CudaOptions;

/// The ops of the host, with threads that run them.
#[derive(Debug)]
pub(super) struct Hosted {
    team: Team,
    ops: Vec<HostedOp>,
    views: Vec<Vec<View>>,
}

impl Hosted {
    pub(super) fn new(
        program: &Program,
        launches: &Launches,
        options: CudaOptions,
    ) -> Result<Hosted, ExecError> {
        let team = Team::new(options.threads.max(1)).map_err(|e| ExecError::Parameter {
            what: e.to_string(),
        })?;
        let mut ops = Vec::new();
        for (op, operands, results) in &launches.hosted {
            let op = HostedOp::new(program, op, (operands, results), options.options);
            ops.push(op?);
        }
        let views = vec![Vec::new(); ops.len()];
        Ok(Hosted { team, ops, views })
    }

    /// The views of a batch of these sizes.
    pub(super) fn set(
        &mut self,
        launches: &Launches,
        slots: &[DeviceView],
        sizes: &Bindings,
    ) -> Result<(), ExecError> {
        for task in launches.tasks.iter().flatten() {
            if let Task::Host { op, slots: range } = task {
                let views = slots[range.clone()].iter().map(DeviceView::on_host);
                self.views[*op] = views.collect();
                self.ops[*op].resize(sizes)?;
            }
        }
        Ok(())
    }

    /// Runs an op on the views of the batch.
    #[allow(unsafe_code)]
    pub(super) fn run(&mut self, op: usize) -> Result<(), KernelError> {
        // SAFETY: the verifier has found every view inside its arena, which is memory of the host, and the steps that meet in
        // memory in an order, which the edges of the graph keep.
        unsafe { self.ops[op].run(&mut self.team, &self.views[op]) }
    }
}
