//! The launches and messages of a rank.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::program::{Program, Step};
use tpc_ir::{Buffer, Inst, Launch, Op, Place, Value};

use super::blocks::Blocks;
use super::division::Ranks;
use super::transport::Tag;
use crate::error::ExecError;
use crate::host::{launch_values, outputs};

/// A value that crosses ranks, once per phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The value.
    pub value: Value,
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// The phase.
    pub phase: usize,
    /// The sender's launch that computes the value; `None` if the value exists when the phase begins.
    pub after: Option<Launch>,
    /// The tag.
    pub tag: Tag,
}

/// A rank's part of a program.
#[derive(Clone, Debug)]
pub struct Share {
    ranks: Ranks,
    rank: usize,
    /// True for launches that run on this rank.
    runs: Vec<bool>,
    messages: Vec<Message>,
    /// The message of each operand, by launch and operand, for launches of this rank.
    arrivals: BTreeMap<(Launch, usize), usize>,
    /// The message of each named output that another rank computes, on rank 0.
    outputs: BTreeMap<usize, usize>,
    /// The blocks of collectives with participants on this and another rank.
    collectives: BTreeMap<Launch, Blocks>,
    /// Buffers that a launch of this rank uses.
    buffers: BTreeSet<Buffer>,
}

/// The phase and the launch of each instruction.
struct Producers(BTreeMap<Inst, (usize, Launch)>);

impl Producers {
    fn of(program: &Program) -> Producers {
        let mut out = BTreeMap::new();
        for (at, launch) in steps(program) {
            for inst in program.launch(launch).covered_insts() {
                out.entry(*inst).or_insert((at, launch));
            }
        }
        Producers(out)
    }

    /// Returns the phase and launch that compute a value; `None` for leaves and their views.
    fn of_value(&self, program: &Program, value: Value) -> Option<(usize, Launch)> {
        let mut inst = program.graph.value(value).def.0;
        loop {
            if let Some(found) = self.0.get(&inst) {
                return Some(*found);
            }
            let first = program.graph.inst(inst).operands.first()?;
            inst = program.graph.value(*first).def.0;
        }
    }

    /// Returns the leaf of a value without a launch.
    fn leaf(program: &Program, value: Value) -> &Op {
        let mut inst = program.graph.inst(program.graph.value(value).def.0);
        while let Some(first) = inst.operands.first() {
            inst = program.graph.inst(program.graph.value(*first).def.0);
        }
        &inst.op
    }
}

fn steps(program: &Program) -> impl Iterator<Item = (usize, Launch)> + '_ {
    let phases = program.phases.iter().enumerate();
    let queues = phases.flat_map(|(at, p)| p.queues.iter().map(move |q| (at, q)));
    queues.flat_map(|(at, q)| {
        q.steps.iter().filter_map(move |s| match s {
            Step::Launch(launch) => Some((at, *launch)),
            Step::Wait { .. } => None,
        })
    })
}

/// Returns the host's launches that read only inputs, weights, and results of such launches.
fn repeated(program: &Program, producers: &Producers) -> Result<BTreeSet<Launch>, ExecError> {
    let mut out = BTreeSet::new();
    for (_, launch) in steps(program) {
        if program.launch(launch).places != [Place::Host] {
            continue;
        }
        let (_, operands, _) = launch_values(program, launch)?;
        let known = |v: &Value| {
            let here = program.graph.value(*v).place == Place::Host;
            here && match producers.of_value(program, *v) {
                Some((_, by)) => out.contains(&by),
                None => matches!(Producers::leaf(program, *v), Op::Input(_) | Op::Weight(_)),
            }
        };
        let stores = matches!(program.launch(launch).work, tpc_ir::program::Work::Store(_));
        if !stores && operands.iter().all(known) {
            out.insert(launch);
        }
    }
    Ok(out)
}

impl Share {
    /// Returns rank `rank`'s part of a program.
    ///
    /// # Errors
    /// Returns an error for a launch without instructions.
    pub fn of(program: &Program, ranks: Ranks, rank: usize) -> Result<Share, ExecError> {
        let producers = Producers::of(program);
        let repeated = repeated(program, &producers)?;
        let mut out = Share {
            runs: vec![false; program.launches.len()],
            messages: Vec::new(),
            arrivals: BTreeMap::new(),
            outputs: BTreeMap::new(),
            collectives: BTreeMap::new(),
            buffers: BTreeSet::new(),
            ranks,
            rank,
        };
        let all: Vec<(usize, Launch)> = steps(program).collect();
        let mut runs = vec![BTreeSet::new(); program.launches.len()];
        for &(_, launch) in &all {
            let places = &program.launch(launch).places;
            runs[launch.index()] = places.iter().map(|p| out.ranks.of_place(*p)).collect();
        }
        // A rank repeats the host's launches that its other launches need. Readers follow their operands.
        for &(_, launch) in all.iter().rev() {
            for rank in runs[launch.index()].clone() {
                for value in launch_values(program, launch)?.1 {
                    if let Some((_, by)) = producers.of_value(program, value)
                        && repeated.contains(&by)
                    {
                        runs[by.index()].insert(rank);
                    }
                }
            }
        }
        out.repeat_chains(program, &producers, &repeated, &mut runs)?;
        for (launch, ranks) in runs.iter().enumerate() {
            out.runs[launch] = ranks.contains(&rank);
        }
        let mut known = BTreeMap::new();
        for &(phase, launch) in &all {
            out.connect(
                program,
                (phase, launch),
                (&producers, &repeated, &runs),
                &mut known,
            )?;
        }
        for (i, (phase, value)) in outputs(program).into_iter().enumerate() {
            let from = out.ranks.of_place(program.graph.value(value).place);
            if from != 0 {
                let key = (value, from, 0, phase);
                let message = out.message(program, key, &producers, &mut known);
                if rank == 0 {
                    out.outputs.insert(i, message);
                }
            }
        }
        Ok(out)
    }

    /// Adds the operands' launches of repeated launches, until none is missing.
    fn repeat_chains(
        &self,
        program: &Program,
        producers: &Producers,
        repeated: &BTreeSet<Launch>,
        runs: &mut [BTreeSet<usize>],
    ) -> Result<(), ExecError> {
        let mut open: Vec<Launch> = repeated.iter().copied().collect();
        while let Some(launch) = open.pop() {
            let ranks = runs[launch.index()].clone();
            for value in launch_values(program, launch)?.1 {
                let Some((_, by)) = producers.of_value(program, value) else {
                    continue;
                };
                let before = runs[by.index()].len();
                runs[by.index()].extend(&ranks);
                if runs[by.index()].len() > before {
                    open.push(by);
                }
            }
        }
        Ok(())
    }

    /// Adds the messages and blocks of a launch.
    fn connect(
        &mut self,
        program: &Program,
        (phase, launch): (usize, Launch),
        (producers, repeated, runs): (&Producers, &BTreeSet<Launch>, &[BTreeSet<usize>]),
        known: &mut BTreeMap<(Value, usize, usize, usize), usize>,
    ) -> Result<(), ExecError> {
        let (op, operands, results) = launch_values(program, launch)?;
        let own = self.runs[launch.index()];
        if own {
            let homes = operands
                .iter()
                .chain(&results)
                .filter_map(|v| program.home(*v));
            self.buffers.extend(homes.map(|h| h.buffer));
        }
        if op.is_collective() {
            let places = program.launch(launch).places.iter();
            let ranks: Vec<usize> = places.map(|p| self.ranks.of_place(*p)).collect();
            let here = ranks.contains(&self.rank);
            if here && ranks.iter().any(|r| *r != self.rank) {
                self.collectives.insert(launch, Blocks::of(&op, ranks));
            }
            return Ok(());
        }
        for (i, value) in operands.into_iter().enumerate() {
            let place = program.graph.value(value).place;
            let from = self.ranks.of_place(place);
            let everywhere = place == Place::Host
                && match producers.of_value(program, value) {
                    Some((_, by)) => repeated.contains(&by),
                    None => !matches!(Producers::leaf(program, value), Op::State(_)),
                };
            if everywhere {
                continue;
            }
            for &to in runs[launch.index()].iter().filter(|to| **to != from) {
                let key = (value, from, to, phase);
                let message = self.message(program, key, producers, known);
                if to == self.rank {
                    self.arrivals.insert((launch, i), message);
                }
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        program: &Program,
        key: (Value, usize, usize, usize),
        producers: &Producers,
        known: &mut BTreeMap<(Value, usize, usize, usize), usize>,
    ) -> usize {
        let (value, from, to, phase) = key;
        *known.entry(key).or_insert_with(|| {
            let by = producers.of_value(program, value);
            let tag = Tag::FIRST + (program.launches.len() + self.messages.len()) as u32;
            self.messages.push(Message {
                value,
                from,
                to,
                phase,
                after: by.filter(|(at, _)| *at == phase).map(|(_, l)| l),
                tag: Tag(tag),
            });
            self.messages.len() - 1
        })
    }

    /// Returns the rank.
    pub const fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the rank of each device.
    pub const fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// True if the place's memory is on this rank. Each rank has memory of the host.
    pub fn has(&self, place: Place) -> bool {
        place == Place::Host || self.ranks.of_place(place) == self.rank
    }

    /// True if the launch runs on this rank, perhaps also on others.
    pub fn runs(&self, launch: Launch) -> bool {
        self.runs.get(launch.index()).copied().unwrap_or(false)
    }

    /// True if a launch of this rank uses the buffer, and the buffer is on this rank.
    pub fn uses(&self, program: &Program, buffer: Buffer) -> bool {
        let place = program.arena(program.buffer(buffer).arena).place;
        self.has(place) && self.buffers.contains(&buffer)
    }

    /// Returns all messages of the program.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the messages that bring operands of a launch, each with its operand.
    pub fn arrivals(&self, launch: Launch) -> impl Iterator<Item = (usize, usize)> + '_ {
        let of = self.arrivals.range((launch, 0)..=(launch, usize::MAX));
        of.map(|((_, operand), message)| (*operand, *message))
    }

    /// Returns the message that brings a named output to rank 0.
    pub fn output(&self, output: usize) -> Option<usize> {
        self.outputs.get(&output).copied()
    }

    /// Returns the blocks of a collective with participants on this and another rank.
    pub fn blocks(&self, launch: Launch) -> Option<&Blocks> {
        self.collectives.get(&launch)
    }

    /// Returns the tag of a collective's messages.
    pub fn tag(launch: Launch) -> Tag {
        Tag(Tag::FIRST + launch.index() as u32)
    }
}
