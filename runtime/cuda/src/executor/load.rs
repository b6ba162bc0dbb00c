#![allow(unsafe_code)]

use tpc_cpu::host::HostOps;
use tpc_ir::Place;
use tpc_ir::program::{Program, StorageFormat};
use tpc_runtime::host::{BufferedWeight, load_weights};
use tpc_runtime::ranks::Share;
use tpc_runtime::{ExecError, WeightSource};

use super::memory::{Arenas, error};
use super::options::weight_planes;
use crate::driver::{Driver, Endpoint};
use crate::planes::{PLANES, Planes};

pub(super) fn weights(
    program: &Program,
    (arenas, share): (&Arenas, Option<&Share>),
    source: &dyn WeightSource,
    driver: &mut impl Driver,
    (host, threads): (&mut HostOps, usize),
) -> Result<(), ExecError> {
    let wanted = |buffer| share.is_none_or(|share| share.uses(program, buffer));
    load_weights(program, source, &wanted, &mut |weight| {
        store(weight, arenas, source, driver, (host, threads))
    })
}

fn store(
    weight: BufferedWeight<'_>,
    arenas: &Arenas,
    source: &dyn WeightSource,
    driver: &mut impl Driver,
    (host, threads): (&mut HostOps, usize),
) -> Result<(), ExecError> {
    let BufferedWeight {
        value,
        ty,
        place,
        part,
        buffer,
    } = weight;
    let malformed = |what: &str| ExecError::Malformed {
        what: format!("{value} {what}"),
    };
    let extent = buffer.extent(0);
    let to = arenas.endpoint(buffer.arena.index(), extent.offset);
    match buffer.format {
        StorageFormat::FILE => driver.write(to, &part.bytes).map_err(error),
        Planes::FORMAT => {
            let found = weight_planes(ty).filter(|_| place != Place::Host);
            let (planes, rows) = found.ok_or_else(|| malformed("cannot be stored in planes"))?;
            let (offsets, end) = planes.offsets(rows).unwrap_or_default();
            if end != extent.bytes {
                return Err(malformed("has planes of the wrong size"));
            }
            in_planes(
                (&planes, offsets),
                &part.bytes,
                (to, threads),
                source,
                driver,
            )
        }
        tpc_cpu::ROWS16 => {
            if place != Place::Host {
                return Err(malformed("is on a device, in a storage format of CPUs"));
            }
            let first = to.address as *mut u8;
            // SAFETY: the arena is host memory, and the verifier has checked that it contains the buffer. Kernels do
            // not run yet.
            let to = unsafe { std::slice::from_raw_parts_mut(first, extent.bytes as usize) };
            host.pack(part, ty, to, source)
                .map_err(|e| e.at(|| value.to_string()))
        }
        format => Err(malformed(&format!(
            "is stored as {}, which devices do not support",
            format.name()
        ))),
    }
}

/// Packs rows into planes on a device. Each wave releases its pages of the file, to avoid holding a large tensor twice.
fn in_planes(
    (planes, offsets): (&Planes, [u64; PLANES]),
    rows: &[u8],
    (to, threads): (Endpoint, usize),
    source: &dyn WeightSource,
    driver: &mut impl Driver,
) -> Result<(), ExecError> {
    /// The bytes of the file that a wave packs.
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
