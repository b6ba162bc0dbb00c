//! What each launch of a program takes on which device, before its views have places in a frame.

use std::collections::BTreeMap;

use tpc_cpu::host::{most, work};
use tpc_ir::program::Program;
use tpc_ir::{Launch, Op, Value};
use tpc_runtime::ExecError;

use super::memory::device;

/// A task of one place: its kernels, which run one after another.
pub(super) struct Wanted {
    /// The device; `None` for the host.
    pub(super) place: Option<usize>,
    /// Tasks of stage 1 come after those of stage 0 on all places of the launch.
    pub(super) stage: usize,
    pub(super) ops: Vec<WantedKernel>,
}

/// A kernel: an op and its values.
pub(super) struct WantedKernel {
    pub(super) op: Op,
    /// The number among the participants, for a collective.
    pub(super) rank: Option<usize>,
    pub(super) operands: Vec<Seen>,
    pub(super) results: Vec<Seen>,
}

/// A value as a kernel sees it.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) value: Value,
    /// The part of a staging buffer that it is copied to, where it is not seen in its own memory.
    pub(super) staged: Option<Part>,
}

impl Seen {
    /// In its own memory.
    const fn own(value: Value) -> Seen {
        Seen {
            value,
            staged: None,
        }
    }
}

/// A part of a staging buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) buffer: usize,
    pub(super) part: usize,
}

/// A buffer in memory of the host by which devices exchange what they cannot reach: a part per participant. Launches of the same
/// participants use it one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Staging {
    pub(super) parts: usize,
    /// The bytes of a part.
    pub(super) bytes: usize,
}

/// Asks whether the kernels of a device reach the memory of another.
pub(super) type Reach<'a> = dyn FnMut(usize, usize) -> Result<bool, ExecError> + 'a;

/// Makes the tasks of launches.
#[derive(Default)]
pub(super) struct Wants {
    /// The staging buffers, by their participants.
    known: BTreeMap<Vec<usize>, usize>,
    pub(super) staging: Vec<Staging>,
}

impl Wants {
    /// The tasks of a launch.
    pub(super) fn of(
        &mut self,
        program: &Program,
        launch: Launch,
        reach: &mut Reach<'_>,
    ) -> Result<Vec<Wanted>, ExecError> {
        let (op, operands, results) = work(program, launch)?;
        if op.is_collective() {
            return self.collective(program, (&op, &operands, &results), reach);
        }
        let to = match program.launch(launch).places.as_slice() {
            [place] => device(*place)?.map(|d| d.0 as usize),
            _ => return Err(malformed("it has several places")),
        };
        let Op::Copy(_) = op else {
            return Ok(vec![computed(program, to, (op, operands, results))]);
        };
        let from = place_of(program, operands[0])?;
        if let (Some(from), Some(to)) = (from, to)
            && from != to
            && !reach(from, to)?
        {
            let part = self.part(program, &[from, to], (0, operands[0]))?;
            return Ok(vec![
                copied(from, 0, Seen::own(operands[0]), part),
                copied(to, 1, part, Seen::own(results[0])),
            ]);
        }
        // Devices push what they copy; the host's memory is in reach of all.
        let place = from.or(to);
        Ok(vec![computed(program, place, (op, operands, results))])
    }

    /// The tasks of a collective: of each participant one, or two where some memory is out of reach.
    fn collective(
        &mut self,
        program: &Program,
        (op, operands, results): (&Op, &[Value], &[Value]),
        reach: &mut Reach<'_>,
    ) -> Result<Vec<Wanted>, ExecError> {
        let mut places = Vec::new();
        for value in operands {
            let place = place_of(program, *value)?;
            places.push(place.ok_or_else(|| malformed("the host takes part in it"))?);
        }
        let mut reached = true;
        for (reader, owner) in places
            .iter()
            .flat_map(|a| places.iter().map(move |b| (*a, *b)))
        {
            reached &= reader == owner || reach(reader, owner)?;
        }
        let mut out = Vec::new();
        let mut seen: Vec<Seen> = operands.iter().map(|v| Seen::own(*v)).collect();
        if !reached {
            for (part, seen) in seen.iter_mut().enumerate() {
                let staged = self.part(program, &places, (part, seen.value))?;
                out.push(copied(places[part], 0, *seen, staged));
                *seen = staged;
            }
        }
        for (rank, place) in places.iter().enumerate() {
            let kernel = WantedKernel {
                op: op.clone(),
                rank: Some(rank),
                operands: seen.clone(),
                results: vec![Seen::own(results[rank])],
            };
            out.push(Wanted {
                place: Some(*place),
                stage: 1,
                ops: vec![kernel],
            });
        }
        Ok(out)
    }

    /// The value in its part of the staging buffer of these participants, which has room for the largest batch.
    fn part(
        &mut self,
        program: &Program,
        participants: &[usize],
        (part, value): (usize, Value),
    ) -> Result<Seen, ExecError> {
        let next = self.staging.len();
        let buffer = *self.known.entry(participants.to_vec()).or_insert(next);
        if buffer == next {
            self.staging.push(Staging::default());
        }
        let staging = &mut self.staging[buffer];
        staging.parts = participants.len();
        for shape in &program.shapes {
            let [n, rest @ ..] = most(program, value, &shape.most)?;
            let row = program.graph.value(value).ty.dtype.bytes(n as u64);
            let rows = rest.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
            let bytes = row
                .zip(rows)
                .and_then(|(row, rows)| rows.checked_mul(row as usize));
            let bytes = bytes.ok_or_else(|| ExecError::Size {
                what: format!("of {value}"),
            })?;
            staging.bytes = staging.bytes.max(bytes.next_multiple_of(256));
        }
        Ok(Seen {
            value,
            staged: Some(Part { buffer, part }),
        })
    }
}

/// The place of a value: a device, or `None` for the host.
fn place_of(program: &Program, value: Value) -> Result<Option<usize>, ExecError> {
    Ok(device(program.graph.value(value).place)?.map(|d| d.0 as usize))
}

/// A copy by a device.
fn copied(place: usize, stage: usize, from: Seen, to: Seen) -> Wanted {
    Wanted {
        place: Some(place),
        stage,
        ops: vec![copy(from, to)],
    }
}

fn copy(from: Seen, to: Seen) -> WantedKernel {
    WantedKernel {
        op: Op::Copy(tpc_ir::op::Copy),
        rank: None,
        operands: vec![from],
        results: vec![to],
    }
}

/// An op on one place. A device copies first what it updates elsewhere.
fn computed(
    program: &Program,
    place: Option<usize>,
    (op, operands, results): (Op, Vec<Value>, Vec<Value>),
) -> Wanted {
    let mut reads: Vec<Seen> = operands.iter().map(|v| Seen::own(*v)).collect();
    let results: Vec<Seen> = results.iter().map(|v| Seen::own(*v)).collect();
    let mut ops = Vec::new();
    let moved = |a: Value, b: Value| program.home(a) != program.home(b);
    if op.is_update() && place.is_some() && moved(reads[0].value, results[0].value) {
        ops.push(copy(reads[0], results[0]));
        reads[0] = results[0];
    }
    ops.push(WantedKernel {
        op,
        rank: None,
        operands: reads,
        results,
    });
    Wanted {
        place,
        stage: 0,
        ops,
    }
}

fn malformed(what: &str) -> ExecError {
    ExecError::Malformed { what: what.into() }
}
