//! Weights into their arenas.
#![allow(unsafe_code)]

use std::collections::BTreeSet;

use tpc_cpu::host::HostedOps;
use tpc_ir::op::Op;
use tpc_ir::program::{Program, StorageFormat};
use tpc_runtime::{ExecError, WeightSource, pack};

use super::memory::{Arenas, error};
use super::options::of_weight;
use crate::driver::{Driver, Endpoint};
use crate::planes::{PLANES, Planes};

/// Writes every weight where the program says.
pub(super) fn weights(
    program: &Program,
    arenas: &Arenas,
    source: &dyn WeightSource,
    driver: &mut impl Driver,
    (host, threads): (&mut HostedOps, usize),
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
            StorageFormat::FILE => {
                let to = arenas.endpoint(buffer.arena.index(), buffer.extent(0).offset);
                driver.write(to, &part.bytes).map_err(error)?;
            }
            Planes::FORMAT => {
                let found = of_weight(&data.ty).filter(|_| data.place != tpc_ir::Place::Host);
                let (planes, rows) = found.ok_or_else(|| ExecError::Malformed {
                    what: format!("{value} cannot be stored in planes"),
                })?;
                let to = arenas.endpoint(buffer.arena.index(), buffer.extent(0).offset);
                let (offsets, end) = planes.offsets(rows).unwrap_or_default();
                if end != buffer.extent(0).bytes {
                    return Err(ExecError::Malformed {
                        what: format!("{value} has planes of another size"),
                    });
                }
                in_planes(
                    (&planes, offsets),
                    &part.bytes,
                    (to, threads),
                    source,
                    driver,
                )?;
            }
            tpc_cpu::ROWS16 => {
                if data.place != tpc_ir::Place::Host {
                    return Err(ExecError::Malformed {
                        what: format!("{value} is stored as CPUs store weights"),
                    });
                }
                let extent = buffer.extent(0);
                let at = arenas.endpoint(buffer.arena.index(), extent.offset).address;
                // SAFETY: the arena is memory of the host, in which the verifier has found the buffer. Nothing runs yet.
                let to =
                    unsafe { std::slice::from_raw_parts_mut(at as *mut u8, extent.bytes as usize) };
                host.pack(part, &data.ty, to, source)
                    .map_err(|e| e.at(|| value.to_string()))?;
            }
            format => {
                return Err(ExecError::Malformed {
                    what: format!(
                        "{value} is stored as {}, which is no format of cards",
                        format.name()
                    ),
                });
            }
        }
        source.release(whole.bytes);
    }
    Ok(())
}

/// Packs rows into planes, and writes them to a device. What has been read of the file is given back as it goes, so that no large
/// tensor is in memory twice.
fn in_planes(
    (planes, offsets): (&Planes, [u64; PLANES]),
    rows: &[u8],
    (to, threads): (Endpoint, usize),
    source: &dyn WeightSource,
    driver: &mut impl Driver,
) -> Result<(), ExecError> {
    /// Bytes of the file that are packed at once.
    const WAVE: usize = 16 << 20;
    let each = planes.file_bytes();
    let row_bytes = planes.row_bytes();
    let at_once = (WAVE / each).max(1);
    let mut parts = row_bytes.map(|bytes| vec![0; bytes * at_once]);
    for (wave, rows) in rows.chunks(at_once * each).enumerate() {
        let n = rows.len() / each;
        let mut i = 0;
        let of_wave = parts.each_mut().map(|part| {
            i += 1;
            &mut part[..n * row_bytes[i - 1]]
        });
        let packed = planes.pack(rows, of_wave, threads);
        packed.map_err(|e| ExecError::Malformed {
            what: e.to_string(),
        })?;
        source.release(rows);
        for (plane, part) in parts.iter().enumerate() {
            let first = (wave * at_once * row_bytes[plane]) as u64;
            let to = Endpoint {
                address: to.address + offsets[plane] + first,
                ..to
            };
            let part = &part[..n * row_bytes[plane]];
            if !part.is_empty() {
                driver.write(to, part).map_err(error)?;
            }
        }
    }
    Ok(())
}
