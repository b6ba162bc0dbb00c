use std::sync::Arc;

use tpc_cuda::executor::PrebuiltCode;
use tpc_gguf::GgufFile;
use tpc_runtime::ExecError;
use tpc_runtime::ranks::{Outgoing, RankError, Tag, follow};

use super::{RankGroup, load};
use crate::executor::ExecutorOptions;
use crate::observer::Observer;
use crate::weights::FileWeights;

/// Loads and runs this rank's part of rank 0's programs, one after the other, until rank 0 ends.
///
/// # Errors
/// Returns the error of this rank or of another. All ranks then fail.
pub fn serve(
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
                let options = ExecutorOptions {
                    kind: seats.executor,
                    ..options.clone()
                };
                let of = (Arc::new(program), &seats.ranks);
                let code = PrebuiltCode::default();
                let own = group.share(&options, of, &weights, (&seats.kinds, &code));
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

/// Lets all other ranks end.
pub fn end(group: &RankGroup) {
    for to in 1..group.transport.ranks() {
        // If a rank has failed, all end anyway.
        let _ = group.transport.post(Outgoing {
            to,
            tag: Tag::READY,
            bytes: &[],
        });
    }
}
