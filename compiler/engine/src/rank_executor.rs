//! Executors of ranks: rank 0 leads, and the others load and run their shares of its programs.

use std::sync::Arc;

use tpc_core::placement::DeviceKind;
use tpc_cuda::executor::PrebuiltCode;
use tpc_gguf::GgufFile;
use tpc_ir::program::Program;
use tpc_runtime::ranks::{Leader, Outgoing, RankError, RankSeat, Ranks, Share, Tag, follow};
use tpc_runtime::{ExecError, WeightSource};

use crate::executor::{ExecutorKind, ExecutorOptions, LoadedExecutor};
use crate::observer::Observer;
use crate::ranks::RankGroup;
use crate::ranks::load::{self, Seats};
use crate::weights::FileWeights;

impl ExecutorOptions {
    /// Loads rank 0's share, and lets the other ranks load theirs.
    ///
    /// # Errors
    /// Returns the errors of a rank.
    pub(crate) fn lead(
        &self,
        group: &RankGroup,
        program: Arc<Program>,
        weights: &dyn WeightSource,
        (devices, kernels): (&[DeviceKind], &PrebuiltCode),
    ) -> Result<LoadedExecutor, ExecError> {
        let ranks = group.ranks(program.graph.devices.len());
        let busy = group.reserve()?;
        let seats = Seats::new(self.kind.name(), &ranks, devices);
        load::send(group, &program, &seats)?;
        let of = (Arc::clone(&program), &ranks);
        let own = self.load_rank(group, of, weights, (devices, kernels))?;
        load::wait(group)?;
        let transport = Arc::clone(&group.transport);
        let leader = Leader::new(own.executor, program, ranks, transport, busy);
        Ok(LoadedExecutor {
            executor: Box::new(leader),
            no_peer_access: own.no_peer_access,
        })
    }

    /// Loads this rank's share of a program.
    fn load_rank(
        &self,
        group: &RankGroup,
        (program, ranks): (Arc<Program>, &Ranks),
        weights: &dyn WeightSource,
        (devices, kernels): (&[DeviceKind], &PrebuiltCode),
    ) -> Result<LoadedExecutor, ExecError> {
        let seat = RankSeat {
            share: Share::of(&program, ranks.clone(), group.rank())?,
            transport: Arc::clone(&group.transport),
        };
        let options = ExecutorOptions {
            threads: group.threads(self.threads, ranks),
            ..self.clone()
        };
        let kinds = group.kinds(devices, ranks);
        options.load_share(program, weights, (&kinds, kernels), Some(seat))
    }
}

/// Loads this rank's share of a program that rank 0 has sent.
fn load_sent(
    group: &RankGroup,
    (program, seats): (Program, &Seats),
    weights: &dyn WeightSource,
    options: &ExecutorOptions,
) -> Result<LoadedExecutor, ExecError> {
    let kind = ExecutorKind::named(&seats.executor).ok_or_else(|| {
        ExecError::from(RankError {
            rank: Some(0),
            cause: format!("asks for an unknown executor, `{}`", seats.executor),
        })
    })?;
    let options = ExecutorOptions {
        kind,
        ..options.clone()
    };
    let of = (Arc::new(program), &seats.ranks);
    let code = PrebuiltCode::default();
    options.load_rank(group, of, weights, (&seats.kinds, &code))
}

/// Loads and runs this rank's part of rank 0's programs, one after the other, until rank 0 ends.
///
/// # Errors
/// Returns the error of this rank or of another. All ranks then fail.
pub fn serve_rank(
    group: &RankGroup,
    file: &GgufFile,
    options: &ExecutorOptions,
    observer: &dyn Observer,
) -> Result<(), ExecError> {
    loop {
        let bytes = group.transport.receive(0, Tag::READY);
        let bytes = bytes.map_err(ExecError::from)?;
        let run = load::read(&bytes, group.transport.ranks());
        let run = run.map_err(|cause| {
            ExecError::from(RankError {
                rank: Some(group.rank()),
                cause,
            })
        });
        drop(bytes);
        let done = run.and_then(|run| match run {
            None => Ok(false),
            Some((program, seats)) => {
                let weights = FileWeights { file, observer };
                let own = load_sent(group, (program, &seats), &weights, options);
                drop(weights);
                let mut executor = own?.executor;
                let ready = Outgoing {
                    to: 0,
                    tag: Tag::READY,
                    bytes: b"ready",
                };
                let sent = group.transport.post(ready);
                sent.map_err(ExecError::from)?;
                follow(&mut *executor, &*group.transport)?;
                Ok(true)
            }
        });
        match done {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(e) => {
                group.transport.fail(&e.to_string());
                return Err(e);
            }
        }
    }
}
