//! What each launch of a program takes on which device, before its views have places in a frame.

use std::collections::BTreeMap;

use tpc_cpu::host::{most, work};
use tpc_ir::program::{Program, StorageFormat};
use tpc_ir::{Launch, Op, Place, Value};
use tpc_runtime::ExecError;

use super::ahead::AheadPlan;
use super::fuse::{Role, Together, at_places};
use super::memory::device;
use super::terms::{Half, TermsPlan, in_terms};
use crate::kernels::Fused;

/// A task of one place: its kernels, which run one after another.
pub(super) struct Wanted {
    /// The device; `None` for the host.
    pub(super) place: Option<usize>,
    /// Tasks of stage 1 come after those of stage 0 on all places of the launch.
    pub(super) stage: usize,
    pub(super) ops: Vec<WantedKernel>,
}

/// A kernel and its values.
pub(super) struct WantedKernel {
    pub(super) does: Does,
    pub(super) operands: Vec<Seen>,
    pub(super) results: Vec<Seen>,
}

/// What a kernel does.
pub(super) enum Does {
    /// An op.
    Op(Op),
    /// The part of a collective that is the participant's of that number.
    Share(Op, usize),
    /// Several ops.
    Together(Fused),
    /// It takes activations apart into terms.
    Terms,
}

/// A value as a kernel sees it.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) value: Value,
    pub(super) lies: Lies,
}

/// Where a value is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lies {
    /// In its own memory.
    Own,
    /// In a part of a staging buffer, to which it is copied.
    Staged(Part),
    /// In a half of the device's memory of terms.
    Terms(Half),
}

impl Seen {
    /// In its own memory.
    const fn own(value: Value) -> Seen {
        Seen {
            value,
            lies: Lies::Own,
        }
    }

    /// In terms.
    const fn terms(value: Value, half: Half) -> Seen {
        Seen {
            value,
            lies: Lies::Terms(half),
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
    terms: TermsPlan,
    ahead: AheadPlan,
    /// The staging buffers, by their participants.
    known: BTreeMap<Vec<usize>, usize>,
    pub(super) staging: Vec<Staging>,
}

impl Wants {
    /// For the launches of a program.
    pub(super) fn new(program: &Program) -> Result<Wants, ExecError> {
        Ok(Wants {
            terms: TermsPlan::new(program)?,
            ahead: AheadPlan::new(program),
            ..Wants::default()
        })
    }

    /// The tasks of a launch.
    pub(super) fn of(
        &mut self,
        program: &Program,
        launch: Launch,
        reach: &mut Reach<'_>,
    ) -> Result<Vec<Wanted>, ExecError> {
        if let Some(roles) = roles(program, launch) {
            return match roles.as_slice() {
                [(_, Role::Together(together))] => {
                    Ok(vec![self.together(program, launch, together)?])
                }
                _ => self.meeting(program, launch, &roles, reach),
            };
        }
        let (op, operands, results) = work(program, launch)?;
        if op.is_collective() {
            let places = results
                .iter()
                .map(|v| (program.graph.value(*v).place, Role::Share));
            return self.meeting(program, launch, &places.collect::<Vec<_>>(), reach);
        }
        let to = match program.launch(launch).places.as_slice() {
            [place] => device(*place)?.map(|d| d.0 as usize),
            _ => return Err(malformed("it has several places")),
        };
        let Op::Copy(_) = op else {
            return Ok(vec![self.computed(
                program,
                (launch, to),
                (op, operands, results),
            )]);
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
        Ok(vec![self.computed(
            program,
            (launch, place),
            (op, operands, results),
        )])
    }

    /// The task of several ops.
    fn together(
        &self,
        program: &Program,
        launch: Launch,
        together: &Together,
    ) -> Result<Wanted, ExecError> {
        let place = place_of(program, together.results[0])?;
        let here = program.graph.value(together.results[0]).place;
        let mut operands: Vec<Seen> = together.operands.iter().map(|v| Seen::own(*v)).collect();
        let mut results: Vec<Seen> = together.results.iter().map(|v| Seen::own(*v)).collect();
        // What is updated elsewhere is copied first.
        let mut ops = Vec::new();
        for inst in program.launch(launch).covered_insts() {
            let data = program.graph.inst(*inst);
            ops.extend(moved(program, &data.op, data.operands[0], data.results[0]));
        }
        if let Some(at) = together.terms {
            let x = together.operands[at];
            let (half, there) = self.terms.read((launch, here));
            operands[at] = Seen::terms(x, half);
            if !there {
                ops.push(taken_apart(x, half));
            }
        }
        if let (Some((_, half)), Some(made)) =
            (self.terms.made((launch, here)), together.results.last())
        {
            results.push(Seen::terms(*made, half));
        }
        operands.extend(self.ahead.of(launch, here).map(Seen::own));
        ops.push(WantedKernel {
            does: Does::Together(together.fused.clone()),
            operands,
            results,
        });
        Ok(Wanted {
            place,
            stage: 0,
            ops,
        })
    }

    /// An op on one place. A device copies first what it updates elsewhere, and takes apart the activations that it multiplies with
    /// weights in planes.
    fn computed(
        &self,
        program: &Program,
        (launch, place): (Launch, Option<usize>),
        (op, operands, results): (Op, Vec<Value>, Vec<Value>),
    ) -> Wanted {
        let mut reads: Vec<Seen> = operands.iter().map(|v| Seen::own(*v)).collect();
        let here = (launch, program.graph.value(results[0]).place);
        let mut results: Vec<Seen> = results.iter().map(|v| Seen::own(*v)).collect();
        let mut ops = Vec::new();
        if place.is_some() {
            let first = reads.first().map(|r| r.value);
            let moved = first.and_then(|from| moved(program, &op, from, results[0].value));
            if let Some(copy) = moved {
                ops.push(copy);
                reads[0] = results[0];
            }
            if let Some(x) = in_terms(program, &op, &operands) {
                let (half, there) = self.terms.read(here);
                reads[1] = Seen::terms(x, half);
                if !there {
                    ops.push(taken_apart(x, half));
                }
            }
            if let Some((x, half)) = self.terms.made(here) {
                results.push(Seen::terms(x, half));
            }
        }
        ops.push(WantedKernel {
            does: Does::Op(op),
            operands: reads,
            results,
        });
        Wanted {
            place,
            stage: 0,
            ops,
        }
    }

    /// The tasks of a launch in which devices meet: of each participant one, or two where some memory is out of reach.
    fn meeting(
        &mut self,
        program: &Program,
        launch: Launch,
        roles: &[(Place, Role)],
        reach: &mut Reach<'_>,
    ) -> Result<Vec<Wanted>, ExecError> {
        let collective = program.launch(launch).covered_insts().first();
        let collective = collective.ok_or_else(|| malformed("it covers no collective"))?;
        let data = program.graph.inst(*collective);
        let (seen, mut out) = self.exchanged(program, &data.operands, reach)?;
        for (rank, (place, role)) in roles.iter().enumerate() {
            let mut task = match role {
                Role::Share => Wanted {
                    place: device(*place)?.map(|d| d.0 as usize),
                    stage: 1,
                    ops: vec![WantedKernel {
                        does: Does::Share(data.op.clone(), rank),
                        operands: seen.clone(),
                        results: vec![Seen::own(data.results[rank])],
                    }],
                },
                Role::Together(together) => self.together(program, launch, together)?,
            };
            task.stage = 1;
            let operands = task.ops.iter_mut().flat_map(|op| &mut op.operands);
            for operand in operands.filter(|o| o.lies == Lies::Own) {
                let staged = seen.iter().find(|s| s.value == operand.value);
                *operand = staged.copied().unwrap_or(*operand);
            }
            out.push(task);
        }
        Ok(out)
    }

    /// Where all devices see what each gives, and the copies by which it comes there.
    fn exchanged(
        &mut self,
        program: &Program,
        given: &[Value],
        reach: &mut Reach<'_>,
    ) -> Result<(Vec<Seen>, Vec<Wanted>), ExecError> {
        let mut places = Vec::new();
        for value in given {
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
        let mut copies = Vec::new();
        let mut seen: Vec<Seen> = given.iter().map(|v| Seen::own(*v)).collect();
        if !reached {
            for (part, seen) in seen.iter_mut().enumerate() {
                let staged = self.part(program, &places, (part, seen.value))?;
                copies.push(copied(places[part], 0, *seen, staged));
                *seen = staged;
            }
        }
        Ok((seen, copies))
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
            lies: Lies::Staged(Part { buffer, part }),
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
        does: Does::Op(Op::Copy(tpc_ir::op::Copy)),
        operands: vec![from],
        results: vec![to],
    }
}

/// The copy of what an op updates, where the result lies elsewhere.
fn moved(program: &Program, op: &Op, from: Value, to: Value) -> Option<WantedKernel> {
    let moved = op.is_update() && program.home(from) != program.home(to);
    moved.then(|| copy(Seen::own(from), Seen::own(to)))
}

/// The kernel that takes activations apart.
fn taken_apart(x: Value, half: Half) -> WantedKernel {
    WantedKernel {
        does: Does::Terms,
        operands: vec![Seen::own(x)],
        results: vec![Seen::terms(x, half)],
    }
}

/// What each place does of a launch of several ops; `None` where it is of one.
pub(super) fn roles(program: &Program, launch: Launch) -> Option<Vec<(Place, Role)>> {
    let insts = program.launch(launch).covered_insts();
    let format = |v: Value| format_of(program, v);
    let kept = |v: Value| program.home(v).is_some();
    let several = insts.len() > 1;
    several.then(|| at_places(&program.graph, insts, &format, &kept))?
}

/// How a value is stored.
pub(super) fn format_of(program: &Program, value: Value) -> StorageFormat {
    let home = program.home(value);
    home.map_or(StorageFormat::FILE, |h| program.buffer(h.buffer).format)
}

fn malformed(what: &str) -> ExecError {
    ExecError::Malformed { what: what.into() }
}
