//! What each launch of a program takes on which device, before its views have places in a frame.

use std::collections::{BTreeMap, BTreeSet};

use tpc_cpu::host::{most, work};
use tpc_ir::program::{Program, Step, StoredFormat};
use tpc_ir::{Launch, Op, Place, Value};
use tpc_runtime::ExecError;

use super::fuse::{Together, together};
use super::memory::device;
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
    /// In the device's memory of terms.
    Terms,
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
    const fn terms(value: Value) -> Seen {
        Seen {
            value,
            lies: Lies::Terms,
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
    /// The products whose activations are in terms already, for the product before them.
    kept: BTreeSet<Launch>,
    /// The launches that make terms of what they compute, for the next product.
    making: BTreeSet<Launch>,
    /// The staging buffers, by their participants.
    known: BTreeMap<Vec<usize>, usize>,
    pub(super) staging: Vec<Staging>,
}

impl Wants {
    /// For the launches of a program.
    pub(super) fn new(program: &Program) -> Result<Wants, ExecError> {
        let mut out = Wants::default();
        let queues = program.phases.iter().flat_map(|phase| &phase.queues);
        for queue in queues.filter(|q| q.place != Place::Host) {
            // The activations that are in terms, and the last launch that may make terms of what it computes.
            let mut last = None;
            let mut maker = None;
            for step in &queue.steps {
                let Step::Launch(launch) = *step else {
                    continue;
                };
                if let Some(x) = activations(program, launch)? {
                    match maker {
                        Some((made, by)) if made == x => {
                            out.making.insert(by);
                            out.kept.insert(launch);
                        }
                        _ if last == Some(x) => {
                            out.kept.insert(launch);
                        }
                        _ => {}
                    }
                    last = Some(x);
                    maker = None;
                }
                if let Some(made) = may_make(program, launch) {
                    maker = Some((made, launch));
                }
            }
        }
        Ok(out)
    }

    /// The tasks of a launch.
    pub(super) fn of(
        &mut self,
        program: &Program,
        launch: Launch,
        reach: &mut Reach<'_>,
    ) -> Result<Vec<Wanted>, ExecError> {
        if let Some(together) = together_of(program, launch) {
            return self
                .together(program, launch, &together)
                .map(|task| vec![task]);
        }
        let (op, operands, results) = work(program, launch)?;
        if op.is_collective() {
            return self.collective(program, (&op, &operands, &results), reach);
        }
        let to = match program.launch(launch).places.as_slice() {
            [place] => device(*place)?.map(|d| d.0 as usize),
            _ => return Err(malformed("it has several places")),
        };
        let Op::Copy(_) = op else {
            let mut task = computed(program, to, (op, operands, results));
            if self.kept.contains(&launch) {
                task.ops.retain(|k| !matches!(k.does, Does::Terms));
            }
            return Ok(vec![task]);
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

    /// The task of several ops.
    fn together(
        &self,
        program: &Program,
        launch: Launch,
        together: &Together,
    ) -> Result<Wanted, ExecError> {
        let place = place_of(program, together.result)?;
        let mut operands: Vec<Seen> = together.operands.iter().map(|v| Seen::own(*v)).collect();
        let mut results = vec![Seen::own(together.result)];
        let mut ops = Vec::new();
        if let Some(at) = together.terms {
            let x = together.operands[at];
            operands[at] = Seen::terms(x);
            if !self.kept.contains(&launch) {
                ops.push(taken_apart(x));
            }
        }
        if self.making.contains(&launch) {
            results.push(Seen::terms(together.result));
        }
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
                does: Does::Share(op.clone(), rank),
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

/// The kernel that takes activations apart.
fn taken_apart(x: Value) -> WantedKernel {
    WantedKernel {
        does: Does::Terms,
        operands: vec![Seen::own(x)],
        results: vec![Seen::terms(x)],
    }
}

/// What a launch of several ops does.
fn together_of(program: &Program, launch: Launch) -> Option<Together> {
    let insts = program.launch(launch).covers();
    let several = insts.len() > 1;
    several.then(|| together(&program.graph, insts, &|v| format_of(program, v)))?
}

/// The activations that a launch reads in terms.
fn activations(program: &Program, launch: Launch) -> Result<Option<Value>, ExecError> {
    if let Some(together) = together_of(program, launch) {
        return Ok(together.terms.map(|at| together.operands[at]));
    }
    let (op, operands, _) = work(program, launch)?;
    Ok(in_terms(program, &op, &operands))
}

/// The result of a launch that can make its terms, too.
fn may_make(program: &Program, launch: Launch) -> Option<Value> {
    let together = together_of(program, launch)?;
    let norm = matches!(together.fused, Fused::NormMul(_));
    let k = program.graph.value(together.result).ty.dims[0].as_const();
    let whole = k.is_some_and(|k| k.is_multiple_of(32));
    (norm && whole).then_some(together.result)
}

/// The activations of a product that reads them in terms.
fn in_terms(program: &Program, op: &Op, operands: &[Value]) -> Option<Value> {
    let product = matches!(op, Op::MulMat(_) | Op::MulMatId(_));
    let planes = |v: &Value| format_of(program, *v) == StoredFormat::Planes;
    let first = operands.first().filter(|_| product);
    first.filter(|v| planes(v)).and(operands.get(1)).copied()
}

/// How a value is stored.
pub(super) fn format_of(program: &Program, value: Value) -> StoredFormat {
    let home = program.home(value);
    home.map_or(StoredFormat::File, |h| program.buffer(h.buffer).format)
}

/// An op on one place. A device copies first what it updates elsewhere, and takes apart the activations that it multiplies with
/// weights in planes.
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
    if place.is_some()
        && let Some(x) = in_terms(program, &op, &operands)
    {
        ops.push(taken_apart(x));
        reads[1] = Seen::terms(x);
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

fn malformed(what: &str) -> ExecError {
    ExecError::Malformed { what: what.into() }
}
