//! Loads weights into their arenas.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use tpc_ir::program::{Program, StorageFormat, WeightPart};
use tpc_ir::{Buffer, TensorType};
use tpc_runtime::host::{BufferedWeight, load_weights};
use tpc_runtime::{ExecError, PackedWeight, WeightSource};

use super::memory::Region;
use crate::error::KernelError;
use crate::product::{Format, Source};
use crate::target::{ROWS16, stack};
use crate::team::Team;

/// Maximum number of file bytes in memory during packing.
const WAVE: usize = 8 << 20;

struct Job<'a> {
    part: PackedWeight<'a>,
    format: Format,
    n: usize,
    to: *mut u8,
}

// SAFETY: workers write panels that do not overlap.
unsafe impl Sync for Job<'_> {}

pub(super) fn weights(
    program: &Program,
    arenas: &mut [Region],
    (source, wanted): (&dyn WeightSource, &dyn Fn(Buffer) -> bool),
    team: &mut Team,
) -> Result<(), ExecError> {
    load_weights(program, source, wanted, &mut |weight| {
        store(weight, arenas, source, team)
    })
}

fn store(
    weight: BufferedWeight<'_>,
    arenas: &mut [Region],
    source: &dyn WeightSource,
    team: &mut Team,
) -> Result<(), ExecError> {
    let BufferedWeight {
        value,
        ty,
        part,
        buffer,
        ..
    } = weight;
    let extent = buffer.extent(0);
    let arena = &mut arenas[buffer.arena.index()];
    match buffer.format {
        StorageFormat::FILE => {
            let to = arena.range(extent.offset, part.bytes.len())?;
            for (to, from) in to.chunks_mut(WAVE).zip(part.bytes.chunks(WAVE)) {
                to.copy_from_slice(from);
                source.release(from);
            }
            Ok(())
        }
        ROWS16 => {
            let bytes = usize::try_from(extent.bytes).unwrap_or(usize::MAX);
            let to = arena.range(extent.offset, bytes)?;
            rows16(part, ty, to, source, team).map_err(|e| e.at(|| value.to_string()))
        }
        format => Err(ExecError::Malformed {
            what: format!(
                "{value} is stored as {}, which the CPU executor does not support",
                format.name()
            ),
        }),
    }
}

/// Packs a weight into its buffer.
pub(super) fn rows16(
    part: PackedWeight<'_>,
    ty: &TensorType,
    to: &mut [u8],
    source: &dyn WeightSource,
    team: &mut Team,
) -> Result<(), ExecError> {
    let start = part.start;
    let found = stack(WeightPart { ty, start });
    let found = found.filter(|(format, n)| format.bytes() * n == to.len());
    let (format, n) = found.ok_or_else(|| ExecError::Malformed {
        what: "the weight cannot be packed".into(),
    })?;
    let to = to.as_mut_ptr();
    let job = Job {
        part,
        format,
        n,
        to,
    };
    packed(&job, source, team)
}

/// Packs a weight on all threads. Releases file bytes early, so that no large tensor is in memory twice.
fn packed(job: &Job<'_>, source: &dyn WeightSource, team: &mut Team) -> Result<(), ExecError> {
    let panels = job.format.panels();
    let all = job.n * panels;
    let each = (job.part.bytes.len() / all.max(1)).max(1);
    let step = (WAVE / each).max(1);
    for start in (0..all).step_by(step) {
        let wave = start..all.min(start + step);
        wave_of(job, wave.clone(), team)?;
        let at = |unit: usize| (unit * each).min(job.part.bytes.len());
        source.release(&job.part.bytes[at(wave.start)..at(wave.end)]);
    }
    Ok(())
}

/// Packs a range of panels, numbered over all matrices of the weight.
fn wave_of(job: &Job<'_>, wave: Range<usize>, team: &mut Team) -> Result<(), ExecError> {
    let part = job.format.part();
    let (from, k) = (part.start() - job.part.skipped(), job.part.row_len());
    let matrix = job.part.bytes.len() / job.n.max(1);
    // On a busy machine, some workers do not take part, so all take panels until none is left.
    let next = AtomicUsize::new(wave.start);
    let misfit = KernelError::Shape {
        what: "the weight does not match its format",
    };
    let run = team.run(|_| {
        let panels = job.format.panels();
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|unit| *unit < wave.end);
        while let Some(unit) = take() {
            let (i, panel) = (unit / panels, unit % panels);
            let bytes = &job.part.bytes[i * matrix..(i + 1) * matrix];
            let source = Source { bytes, from, k };
            let len = job.format.panel_bytes();
            // SAFETY: the panel is inside the buffer and is this worker's.
            let out = unsafe {
                std::slice::from_raw_parts_mut(
                    job.to.add(i * job.format.bytes() + panel * len),
                    len,
                )
            };
            let packed = job.format.pack(source, panel..panel + 1, out);
            packed.map_err(|_| misfit)?;
        }
        Ok(())
    });
    run.map_err(super::io::error)
}

#[cfg(test)]
mod tests {
    use tpc_ir::{DType, Dim};
    use tpc_runtime::{MemoryWeights, WeightData, pack};

    use super::*;

    #[test]
    fn a_weight_is_packed_completely_by_fewer_workers() {
        let (rows, k) = (160_u64, 64_u64);
        let bytes: Vec<u8> = (0..DType::Q4_0.bytes(rows * k).expect("whole blocks"))
            .map(|i| (i * 37 % 251) as u8)
            .collect();
        let ty = TensorType::new(DType::Q4_0, [k, rows].map(Dim::from));
        let (format, n) = stack(WeightPart { ty: &ty, start: 0 }).expect("a format");
        let packed = |team: &mut Team| {
            let data = WeightData {
                dtype: DType::Q4_0,
                ne: [k, rows, 1, 1],
                bytes: &bytes,
            };
            let part = pack("w", data, None).expect("a part");
            let mut to = vec![0; format.bytes() * n];
            rows16(part, &ty, &mut to, &MemoryWeights::new(), team).expect("it is packed");
            to
        };
        let mut team = Team::new(3).expect("threads");
        let by_all = packed(&mut team);
        team.leave_out(2);
        assert!(by_all == packed(&mut team), "panels are missing");
    }
}
