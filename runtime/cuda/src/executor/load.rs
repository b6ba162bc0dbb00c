//! Weights into their arenas.
#![allow(unsafe_code)]

use std::collections::BTreeSet;

use tpc_cpu::host::HostedOps;
use tpc_ir::op::Op;
use tpc_ir::program::{Program, StoredFormat};
use tpc_runtime::{ExecError, WeightSource, pack};

use super::memory::{Arenas, error};
use crate::driver::Driver;

/// Writes every weight where the program says.
pub(super) fn weights(
    program: &Program,
    arenas: &Arenas,
    source: &dyn WeightSource,
    driver: &mut impl Driver,
    host: &mut HostedOps,
) -> Result<(), ExecError> {
    let graph = &program.graph;
    let mut done = BTreeSet::new();
    for (value, data) in graph.values() {
        let (Op::Weight(op), Some(home)) = (graph.def_op(value), program.home(value)) else {
            continue;
        };
        if !done.insert(home.buffer) {
            continue;
        }
        let whole = source.weight(&op.tensor)?;
        let part = pack(&op.tensor, whole, op.parts.as_deref())?;
        let sizes = data.ty.dims.iter().map(tpc_ir::Dim::as_const);
        let declared = sizes.eq(part.ne.iter().map(|n| Some(*n as u64)));
        if !declared || part.dtype != data.ty.dtype {
            return Err(ExecError::WeightMismatch {
                tensor: op.tensor.clone(),
                expected: data.ty.to_string(),
                found: format!("{}{:?}", part.dtype, part.ne),
            });
        }
        let buffer = program.buffer(home.buffer);
        match buffer.format {
            StoredFormat::File => {
                let to = arenas.endpoint(buffer.arena.index(), buffer.extent(0).offset);
                driver.write(to, &part.bytes).map_err(error)?;
            }
            StoredFormat::Rows16 => {
                if data.place != tpc_ir::Place::Host {
                    return Err(ExecError::Malformed {
                        what: format!("{value} is stored as CPUs store weights"),
                    });
                }
                let extent = buffer.extent(0);
                let at = arenas.endpoint(buffer.arena.index(), extent.offset).address;
                // SAFETY: the arena is memory of the host, in which the verifier has found the buffer. Nothing runs yet.
                let to = unsafe {
                    std::slice::from_raw_parts_mut(at as *mut u8, extent.bytes as usize)
                };
                host.pack(part, &data.ty, to, source)
                    .map_err(|e| e.at(|| value.to_string()))?;
            }
        }
        source.release(whole.bytes);
    }
    Ok(())
}
