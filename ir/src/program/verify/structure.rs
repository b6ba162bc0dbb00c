use super::{ProgramError, codes, queues};
use crate::dims::Symbol;
use crate::entity::{Buffer, Inst, Launch, Value};
use crate::graph::Output;
use crate::op::{Op, OpCategory};
use crate::place::Place;
use crate::program::text::Part;
use crate::program::{Program, Step, Work};
use crate::text::Entity;

/// True if launches never cover the op.
pub(super) fn is_leaf(op: &Op) -> bool {
    matches!(op.category(), OpCategory::Stored | OpCategory::Input)
}

pub(super) fn check(program: &Program, errors: &mut Vec<ProgramError>) {
    handles(program, errors);
    if !errors.is_empty() {
        return;
    }
    shapes(program, errors);
    cover(program, errors);
    queues::check(program, errors);
    for i in 0..program.launches.len() {
        let launch = Launch::new(i);
        if let Err(what) = fits(program, launch) {
            let what = format!("{launch}: {what}");
            errors.push(ProgramError::new(
                &codes::LAUNCH,
                Part::Launch(launch),
                what,
            ));
        }
    }
}

fn handles(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut dangling =
        |part: Part, what: String| errors.push(ProgramError::new(&codes::DANGLING, part, what));
    let (values, insts) = (program.graph.values().len(), program.graph.insts().len());
    if program.homes.len() != values {
        let what = format!("{} homes for {values} values", program.homes.len());
        dangling(Part::Graph(Entity::Graph), what);
    }
    for (i, home) in program.homes.iter().enumerate() {
        if let Some(home) = home
            && home.buffer.index() >= program.buffers.len()
        {
            let value = Value::new(i);
            dangling(
                Part::Home(value),
                format!("{value} is in {}, which does not exist", home.buffer),
            );
        }
    }
    for (i, buffer) in program.buffers.iter().enumerate() {
        if buffer.arena.index() >= program.arenas.len() {
            let name = Buffer::new(i);
            dangling(
                Part::Buffer(name),
                format!("{name} is in {}, which does not exist", buffer.arena),
            );
        }
    }
    for (i, launch) in program.launches.iter().enumerate() {
        let name = Launch::new(i);
        if let Some(inst) = launch.covered_insts().iter().find(|i| i.index() >= insts) {
            dangling(
                Part::Launch(name),
                format!("{name} covers {inst}, which does not exist"),
            );
        }
        if let Work::Store(output) = launch.work
            && !matches!(
                program.graph.outputs.get(output),
                Some(Output::State { .. })
            )
        {
            dangling(
                Part::Launch(name),
                format!(
                    "{name} stores output {output}, which is not the output of a \
            state"
                ),
            );
        }
    }
    for (n, phase) in program.phases.iter().enumerate() {
        for (q, queue) in phase.queues.iter().enumerate() {
            for step in &queue.steps {
                let found = match *step {
                    Step::Launch(launch) => launch.index() < program.launches.len(),
                    Step::Wait { queue, .. } => queue < phase.queues.len(),
                };
                if !found {
                    let what = format!(
                        "phase {n}, queue of {}: {step:?} does not exist",
                        queue.place
                    );
                    dangling(Part::Queue(n, q), what);
                }
            }
        }
    }
}

fn shapes(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut wrong =
        |part: Part, what: String| errors.push(ProgramError::new(&codes::SHAPES, part, what));
    let Some(first) = program.shapes.first() else {
        return wrong(
            Part::Graph(Entity::Graph),
            "the program does not have a shape".into(),
        );
    };
    for (n, pair) in program.shapes.windows(2).enumerate() {
        let (before, shape) = (&pair[0].most, &pair[1].most);
        let part = Part::Shape(n + 1);
        if Symbol::ALL
            .into_iter()
            .any(|s| before.get(s) > shape.get(s))
        {
            wrong(part, "a shape is smaller than the one before it".into());
        }
        for symbol in [Symbol::NCtx, Symbol::NCtxSwa, Symbol::NSeqMax] {
            if shape.get(symbol) != first.most.get(symbol) {
                wrong(part, format!("shapes differ in {}", symbol.name()));
            }
        }
    }
}

fn cover(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut covered = vec![0_u32; program.graph.insts().len()];
    for launch in &program.launches {
        for inst in launch.covered_insts() {
            covered[inst.index()] += 1;
        }
    }
    for (inst, data) in program.graph.insts() {
        let n = covered[inst.index()];
        let right = match &data.op {
            op if is_leaf(op) => n == 0,
            op if op.is_view() => n <= 1,
            _ => n == 1,
        };
        if !right {
            let what = format!("{inst} {} is covered {n} times", data.op.name());
            let part = Part::Graph(Entity::Inst(inst));
            errors.push(ProgramError::new(&codes::COVER, part, what));
        }
    }
}

/// Checks that a computation has one place, or its first collective's places.
fn computes(program: &Program, insts: &[Inst], places: &[Place]) -> Result<(), String> {
    let graph = &program.graph;
    if insts.is_empty() || insts.windows(2).any(|w| w[0] >= w[1]) {
        return Err("the instructions are not in program order".into());
    }
    let data = |inst: &Inst| graph.inst(*inst);
    let at = |v: &Value| graph.value(*v).place;
    let collective = data(&insts[0]).op.is_collective();
    let meeting: Vec<Place> = data(&insts[0]).results.iter().map(at).collect();
    if collective && meeting != places {
        return Err(format!("its collective is at {meeting:?}"));
    }
    if !collective && places.len() != 1 {
        return Err("a computation without a collective does not have exactly one place".into());
    }
    for inst in &insts[usize::from(collective)..] {
        let data = data(inst);
        if data.op.is_transfer() || is_leaf(&data.op) {
            return Err(format!("{inst} {} is not a computation", data.op.name()));
        }
        let of_first = |v: &&Value| !places.contains(&at(v)) || at(v) != at(&data.results[0]);
        if let Some(v) = data.results.iter().find(of_first) {
            return Err(format!("{v} is not at {}", at(&data.results[0])));
        }
    }
    Ok(())
}

fn fits(program: &Program, name: Launch) -> Result<(), String> {
    let launch = program.launch(name);
    let graph = &program.graph;
    match &launch.work {
        Work::Compute(insts) => computes(program, insts, &launch.places),
        Work::Transfer(inst) => {
            let data = graph.inst(*inst);
            if !data.op.is_transfer() {
                return Err(format!("{} is not a transfer", data.op.name()));
            }
            let places: Vec<_> = data.results.iter().map(|v| graph.value(*v).place).collect();
            if places == launch.places {
                return Ok(());
            }
            Err(format!(
                "it runs at {:?}, but its results are at {places:?}",
                launch.places
            ))
        }
        Work::Store(output) => {
            let Some(Output::State { state, .. }) = graph.outputs.get(*output) else {
                return Err("the output is not a state".into());
            };
            if launch.places == [graph.value(*state).place] {
                return Ok(());
            }
            Err("it does not run at the place of the state".into())
        }
    }
}

pub(super) fn covering_launches(program: &Program) -> Vec<Option<Launch>> {
    let mut out = vec![None; program.graph.insts().len()];
    for (i, launch) in program.launches.iter().enumerate() {
        for &inst in launch.covered_insts() {
            out[inst.index()] = Some(Launch::new(i));
        }
    }
    out
}
