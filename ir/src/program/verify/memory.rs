//! Runs all queues once, without data.

use std::collections::BTreeMap;

use super::accesses::{reads, writes};
use super::order::{Clock, Done};
use super::structure::{covering_launches, is_leaf};
use super::{ProgramError, codes};
use crate::code::Code;
use crate::entity::{Inst, Launch, Value};
use crate::graph::Output;
use crate::op::{InputKind, Op};
use crate::program::text::Part;
use crate::program::{ArenaKind, Extent, LaunchData, Phase, Program, Step, Work};
use crate::text::Entity;

const MOST: usize = 20;

pub(super) fn check(program: &Program, errors: &mut Vec<ProgramError>) {
    let facts = Facts::of(program);
    for shape in 0..program.shapes.len() {
        let mut run = Run::new(program, &facts, shape);
        run.start();
        let phases = program.phases.iter().enumerate();
        let ended = phases.fold(true, |ended, (n, phase)| ended && run.phase(n, phase));
        if ended {
            run.finish();
        }
        // Most violations of one shape recur in the others.
        if !run.errors.is_empty() {
            errors.append(&mut run.errors);
            return;
        }
    }
}

struct Facts {
    content: Vec<Value>,
    reads: Vec<Vec<Value>>,
    writes: Vec<Vec<Value>>,
}

impl Facts {
    fn of(program: &Program) -> Facts {
        let graph = &program.graph;
        let covering = covering_launches(program);
        let mut content: Vec<Value> = graph.values().map(|(v, _)| v).collect();
        // Weights read under several names share one buffer.
        let mut weights: BTreeMap<usize, Value> = BTreeMap::new();
        for (inst, data) in graph.insts() {
            let first = data.results[0];
            if data.op.is_view() && covering[inst.index()].is_none() {
                content[first.index()] = content[data.operands[0].index()];
            } else if matches!(data.op, Op::Weight(_))
                && let Some(home) = program.home(first)
            {
                let known = *weights.entry(home.buffer.index()).or_insert(first);
                let (a, b) = (graph.def_op(known), &data.op);
                if a == b && graph.value(known).ty == graph.value(first).ty {
                    content[first.index()] = known;
                }
            }
        }
        let launches = || (0..program.launches.len()).map(Launch::new);
        Facts {
            content,
            reads: launches().map(|l| reads(program, l)).collect(),
            writes: launches().map(|l| writes(program, l)).collect(),
        }
    }
}

#[derive(Clone, Debug)]
struct Segment {
    end: u64,
    content: Option<Value>,
    writer: Option<Done>,
    readers: Vec<Done>,
}

#[derive(Clone, Debug, Default)]
struct Bytes(BTreeMap<u64, Segment>);

impl Bytes {
    fn new(bytes: u64) -> Bytes {
        let all = Segment {
            end: bytes,
            content: None,
            writer: None,
            readers: Vec::new(),
        };
        Bytes(BTreeMap::from([(0, all)]))
    }

    fn split(&mut self, at: u64) {
        if let Some((&start, segment)) = self.0.range_mut(..=at).next_back()
            && start < at
            && at < segment.end
        {
            let rest = segment.clone();
            segment.end = at;
            self.0.insert(at, rest);
        }
    }

    fn of(&mut self, extent: Extent) -> impl Iterator<Item = &mut Segment> {
        self.split(extent.offset);
        self.split(extent.end());
        let range = extent.offset..extent.end().max(extent.offset);
        self.0.range_mut(range).map(|(_, s)| s)
    }

    fn set(&mut self, extent: Extent, content: Value, writer: Option<Done>) {
        if extent.bytes == 0 {
            return;
        }
        self.split(extent.offset);
        self.split(extent.end());
        let starts: Vec<u64> = self
            .0
            .range(extent.offset..extent.end())
            .map(|(s, _)| *s)
            .collect();
        for start in starts {
            self.0.remove(&start);
        }
        let segment = Segment {
            end: extent.end(),
            content: Some(content),
            writer,
            readers: Vec::new(),
        };
        self.0.insert(extent.offset, segment);
    }
}

struct Run<'a> {
    program: &'a Program,
    facts: &'a Facts,
    shape: usize,
    arenas: Vec<Bytes>,
    errors: Vec<ProgramError>,
}

impl<'a> Run<'a> {
    fn new(program: &'a Program, facts: &'a Facts, shape: usize) -> Run<'a> {
        let arenas = program.arenas.iter().map(|a| Bytes::new(a.bytes)).collect();
        Run {
            program,
            facts,
            shape,
            arenas,
            errors: Vec::new(),
        }
    }

    fn report(&mut self, code: &'static Code, part: Part, what: String) {
        if self.errors.len() < MOST {
            self.errors.push(ProgramError::new(code, part, what));
        }
    }

    fn extent(&self, value: Value) -> Option<(usize, Extent)> {
        let home = self.program.home(value)?;
        let buffer = self.program.buffer(home.buffer);
        Some((buffer.arena.index(), buffer.extent(self.shape)))
    }

    fn content(&self, value: Value) -> Value {
        self.facts.content[value.index()]
    }

    fn start(&mut self) {
        for (value, data) in self.program.graph.values() {
            if self.program.graph.inst(data.def.0).op.is_stored()
                && let Some((arena, extent)) = self.extent(value)
            {
                let content = self.content(value);
                self.arenas[arena].set(extent, content, None);
            }
        }
    }

    fn inputs(&mut self, ahead: u32) {
        for (value, data) in self.program.graph.values() {
            let Op::Input(input) = &self.program.graph.inst(data.def.0).op else {
                continue;
            };
            let needs = match input.kind {
                InputKind::NextTokens(n) => n,
                _ => 0,
            };
            if needs == ahead
                && let Some((arena, extent)) = self.extent(value)
            {
                self.arenas[arena].set(extent, value, None);
            }
        }
    }

    /// Runs a phase; returns false if it deadlocks.
    fn phase(&mut self, n: usize, phase: &Phase) -> bool {
        for arena in &mut self.arenas {
            for segment in arena.0.values_mut() {
                segment.writer = None;
                segment.readers.clear();
            }
        }
        self.inputs(phase.lookahead);
        let queues = phase.queues.len();
        let mut at = vec![0; queues];
        let mut clocks = vec![Clock::new(queues); queues];
        let mut history: Vec<Vec<Clock>> = vec![Vec::new(); queues];
        loop {
            let mut moved = false;
            for q in 0..queues {
                while let Some(step) = phase.queues[q].steps.get(at[q]) {
                    let done = match *step {
                        Step::Wait { queue, steps } => {
                            let known = match steps {
                                0 => Some(Clock::new(queues)),
                                n => history[queue].get(n - 1).cloned(),
                            };
                            known.inspect(|k| clocks[q].join(k)).is_some()
                        }
                        Step::Launch(launch) => {
                            let Some(meeting) = self.meeting_queues(phase, launch, &at) else {
                                break;
                            };
                            let mut joint = clocks[q].clone();
                            for &p in &meeting {
                                joint.join(&clocks[p]);
                            }
                            self.launch(launch, &meeting, &at, &joint);
                            for &p in meeting.iter().filter(|&&p| p != q) {
                                clocks[p] = joint.clone();
                            }
                            clocks[q] = joint;
                            for &p in &meeting {
                                for &o in &meeting {
                                    clocks[p].0[o] = at[o] + 1;
                                }
                            }
                            for &p in meeting.iter().filter(|&&p| p != q) {
                                at[p] += 1;
                                history[p].push(clocks[p].clone());
                            }
                            true
                        }
                    };
                    if !done {
                        break;
                    }
                    at[q] += 1;
                    clocks[q].0[q] = at[q];
                    let clock = clocks[q].clone();
                    history[q].push(clock);
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let mut ended = true;
        for (q, queue) in phase.queues.iter().enumerate() {
            if at[q] < queue.steps.len() {
                let what = format!(
                    "phase {n}: {} never gets beyond step {}",
                    queue.place, at[q]
                );
                self.report(&codes::DEADLOCK, Part::Queue(n, q), what);
                ended = false;
            }
        }
        ended
    }

    /// Returns the queues of a launch, if all have reached it.
    fn meeting_queues(&self, phase: &Phase, launch: Launch, at: &[usize]) -> Option<Vec<usize>> {
        let places = &self.program.launch(launch).places;
        let mut out = Vec::with_capacity(places.len());
        for place in places {
            let q = phase.queues.iter().position(|q| q.place == *place)?;
            if phase.queues[q].steps.get(at[q]) != Some(&Step::Launch(launch)) {
                return None;
            }
            out.push(q);
        }
        Some(out)
    }

    fn launch(&mut self, launch: Launch, meeting: &[usize], at: &[usize], clock: &Clock) {
        let done = |&q: &usize| Done {
            queue: q,
            step: at[q],
        };
        let steps: Vec<Done> = meeting.iter().map(done).collect();
        let facts = self.facts;
        let (reads, writes) = (&facts.reads[launch.index()], &facts.writes[launch.index()]);
        for &value in reads {
            self.read(launch, value, &steps, clock);
        }
        if let Work::Store(output) = self.program.launch(launch).work {
            if let Some(Output::State { state, value }) = self.program.graph.outputs.get(output) {
                let meet = match (self.extent(*state), self.extent(*value)) {
                    (Some((a, to)), Some((b, from))) => a == b && to.overlaps(&from),
                    _ => false,
                };
                if meet && self.program.home(*state) != self.program.home(*value) {
                    let what = format!("{launch} stores {value} onto itself");
                    self.report(&codes::IN_PLACE, Part::Launch(launch), what);
                }
                self.write(launch, *state, *value, &steps, clock);
            }
            return;
        }
        for &value in writes {
            if let Some(why) = self.overwrite_conflict(launch, value, reads) {
                let what = format!("{launch}: {why}");
                self.report(&codes::IN_PLACE, Part::Launch(launch), what);
            }
        }
        for &value in writes {
            self.write(launch, value, value, &steps, clock);
        }
    }

    fn read(&mut self, launch: Launch, value: Value, steps: &[Done], clock: &Clock) {
        let content = self.content(value);
        let Some((arena, extent)) = self.extent(value) else {
            return;
        };
        let (mut stale, mut race) = (false, false);
        for segment in self.arenas[arena].of(extent) {
            stale |= segment.content != Some(content);
            race |= segment
                .writer
                .is_some_and(|w| !clock.has_seen(w) && !steps.contains(&w));
            for &step in steps {
                segment.readers.retain(|r| r.queue != step.queue);
                segment.readers.push(step);
            }
        }
        if stale {
            let what = format!("{launch} reads {value}, which is not in memory");
            self.report(&codes::STALE, Part::Launch(launch), what);
        }
        if race {
            let what = format!("{launch} reads {value} while it may be written");
            self.report(&codes::RACE, Part::Launch(launch), what);
        }
    }

    fn write(
        &mut self,
        launch: Launch,
        value: Value,
        content: Value,
        steps: &[Done],
        clock: &Clock,
    ) {
        let Some((arena, extent)) = self.extent(value) else {
            return;
        };
        if self.program.arenas[arena].kind == ArenaKind::Weights {
            let what = format!("{launch} overwrites a weight");
            self.report(&codes::STALE, Part::Launch(launch), what);
        }
        let mut race = false;
        for segment in self.arenas[arena].of(extent) {
            let touched = segment.writer.iter().chain(&segment.readers);
            race |= touched
                .into_iter()
                .any(|t| !clock.has_seen(*t) && !steps.contains(t));
        }
        if race {
            let what = format!("{launch} writes {value} over memory that may still be in use");
            self.report(&codes::RACE, Part::Launch(launch), what);
        }
        self.arenas[arena].set(extent, content, steps.first().copied());
    }

    /// Returns the reason, if any, why a launch must not overwrite a value that it reads.
    fn overwrite_conflict(&self, launch: Launch, value: Value, reads: &[Value]) -> Option<String> {
        let (arena, extent) = self.extent(value)?;
        for &read in reads {
            let Some((other, of)) = self.extent(read) else {
                continue;
            };
            if other != arena || !of.overlaps(&extent) {
                continue;
            }
            if !self.may_overwrite(launch, value, read) {
                return Some(format!("{value} is written over {read}"));
            }
        }
        None
    }

    /// True if the launch may write `value` over `read`. In a launch of several instructions only an update may, if
    /// the other instructions do not read the updated operand.
    fn may_overwrite(&self, launch: Launch, value: Value, read: Value) -> bool {
        let graph = &self.program.graph;
        let inst = graph.value(value).def.0;
        let data = graph.inst(inst);
        let covered = self.program.launch(launch).covered_insts();
        let same = self.program.home(value) == self.program.home(read);
        if is_leaf(&data.op) || !same {
            return false;
        }
        let by_others = |i: &Inst| *i != inst && graph.inst(*i).operands.contains(&read);
        if covered.len() != 1 && (!data.op.is_update() || covered.iter().any(by_others)) {
            return false;
        }
        let types: Vec<_> = data.operands.iter().map(|&v| &graph.value(v).ty).collect();
        data.operands.contains(&read)
            && data.operands.iter().enumerate().all(|(i, &operand)| {
                operand != read || data.op.in_place(i, &types, &graph.value(value).ty)
            })
    }

    fn finish(&mut self) {
        let program = self.program;
        for (n, output) in program.graph.outputs.iter().enumerate() {
            let part = Part::Graph(Entity::Output(n));
            let value = output.value();
            let is_store = |l: &LaunchData| l.work == Work::Store(n);
            let (place, wanted) = match output {
                Output::Named(..) => (value, self.content(value)),
                Output::State { state, .. } if program.launches.iter().any(is_store) => {
                    (*state, value)
                }
                Output::State { state, .. } if program.home(value) == program.home(*state) => {
                    (*state, self.content(value))
                }
                Output::State { state, .. } => {
                    let what = format!("{value} is never written to the memory of {state}");
                    self.report(&codes::STALE, part, what);
                    continue;
                }
            };
            let Some((arena, extent)) = self.extent(place) else {
                continue;
            };
            let held = self.arenas[arena].of(extent);
            if held.filter(|s| s.content != Some(wanted)).count() > 0 {
                let what = match output {
                    Output::Named(name, _) => {
                        format!("\"{name}\" ({value}) is not in memory at the end")
                    }
                    Output::State { state, .. } => {
                        format!("the memory of {state} does not hold {value} at the end")
                    }
                };
                self.report(&codes::STALE, part, what);
            }
        }
    }
}
