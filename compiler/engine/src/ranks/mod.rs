//! Plans whose devices are in several processes.
//!
//! All ranks run the same command. Rank 0 plans; the others receive the program, load their devices' parts of the
//! weights from their own file, and [follow](serve).

mod hello;
mod load;
mod serve;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tpc_cpu::{CoreSets, CpuExecutor, CpuOptions};
use tpc_ir::program::Program;
use tpc_runtime::ranks::{Leader, Ranks, Transport};
use tpc_runtime::{ExecError, WeightSource};

pub use hello::{Fingerprint, Hello, compare};
pub use serve::{end, serve};

/// The processes that run a plan together.
#[derive(Clone, Debug)]
pub struct RankGroup {
    /// The connection of this process to the others.
    pub transport: Arc<dyn Transport>,
    /// The machine of each rank.
    pub hosts: Vec<String>,
    /// True if the user states the threads of all devices together. Otherwise each machine uses its cores.
    pub threads_stated: bool,
    /// The machine of each device, if the topology states it.
    pub machines: Option<Vec<usize>>,
    /// The executor that the other ranks follow, if any.
    pub busy: Arc<Mutex<Weak<()>>>,
}

impl RankGroup {
    /// Returns this process's rank.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// Returns the rank of each device: the topology's machines, or equal parts in order.
    pub fn ranks(&self, devices: usize) -> Ranks {
        let count = self.transport.ranks();
        let stated = self.machines.clone().filter(|m| m.len() == devices);
        let stated = stated.and_then(|machines| Ranks::new(machines, count));
        stated.unwrap_or_else(|| Ranks::even(devices, count))
    }

    /// Returns the threads of this process, of `all` threads of all devices.
    fn threads(&self, all: usize, ranks: &Ranks) -> usize {
        let devices = ranks.of_devices();
        let own = devices.iter().filter(|r| **r == self.rank()).count();
        let each = match self.threads_stated {
            true => all / devices.len().max(1),
            false => {
                let host = self.hosts.get(self.rank());
                let beside = self.hosts.iter().filter(|h| Some(*h) == host).count();
                crate::devices::cores::usable() / beside.max(1) / own.max(1)
            }
        };
        each.max(1) * own.max(1)
    }

    /// Loads rank 0's part, and lets the other ranks load theirs.
    ///
    /// # Errors
    /// Returns the errors of a rank.
    pub(crate) fn lead(
        &self,
        program: Arc<Program>,
        weights: &dyn WeightSource,
        options: CpuOptions,
    ) -> Result<Leader<CpuExecutor>, ExecError> {
        let ranks = self.ranks(program.graph.devices.len());
        let busy = Arc::new(());
        {
            let mut last = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            if last.upgrade().is_some() {
                let what = "several ranks run one program at a time".to_owned();
                return Err(ExecError::Malformed { what });
            }
            *last = Arc::downgrade(&busy);
        }
        load::send(self, &program, &ranks)?;
        let own = self.executor(Arc::clone(&program), weights, options, &ranks)?;
        load::wait(self)?;
        Ok(Leader::new(
            own,
            program,
            ranks,
            Arc::clone(&self.transport),
            busy,
        ))
    }

    fn executor(
        &self,
        program: Arc<Program>,
        weights: &dyn WeightSource,
        options: CpuOptions,
        ranks: &Ranks,
    ) -> Result<CpuExecutor, ExecError> {
        let share = tpc_runtime::ranks::Share::of(&program, ranks.clone(), self.rank())?;
        let seat = tpc_cpu::RankSeat {
            share,
            transport: Arc::clone(&self.transport),
        };
        let options = CpuOptions {
            threads: self.threads(options.threads, ranks),
            ..options
        };
        // MPI binds processes to cores.
        let cores = CoreSets::default();
        CpuExecutor::on_rank(program, weights, options, (&cores, Some(seat)))
    }
}
