//! Handles, shapes, the cover, and launches.

use super::{ProgramError, codes};
use crate::dims::Symbol;
use crate::entity::{Inst, Launch, Value};
use crate::graph::Output;
use crate::op::{Op, OpCategory};
use crate::program::{Program, Step, Work};

/// Whether the category's instructions are never covered.
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
    queued(program, errors);
    for i in 0..program.launches.len() {
        if let Err(what) = fits(program, Launch::new(i)) {
            let what = format!("{}: {what}", Launch::new(i));
            errors.push(ProgramError::new(&codes::LAUNCH, what));
        }
    }
}

fn handles(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut dangling = |what: String| errors.push(ProgramError::new(&codes::DANGLING, what));
    let (values, insts) = (program.graph.values().len(), program.graph.insts().len());
    if program.homes.len() != values {
        dangling(format!("{} homes for {values} values", program.homes.len()));
    }
    for (i, home) in program.homes.iter().enumerate() {
        if let Some(home) = home
            && home.buffer.index() >= program.buffers.len()
        {
            dangling(format!("{} lies in {}", Value::new(i), home.buffer));
        }
    }
    for (i, buffer) in program.buffers.iter().enumerate() {
        if buffer.arena.index() >= program.arenas.len() {
            dangling(format!("buffer {i} lies in {}", buffer.arena));
        }
    }
    for (i, launch) in program.launches.iter().enumerate() {
        let launch_name = Launch::new(i);
        if let Some(inst) = launch.covers().iter().find(|i| i.index() >= insts) {
            dangling(format!("{launch_name} covers {inst}"));
        }
        if let Work::Store(output) = launch.work
            && !matches!(
                program.graph.outputs.get(output),
                Some(Output::State { .. })
            )
        {
            dangling(format!("{launch_name} stores output {output}"));
        }
    }
    for (n, phase) in program.phases.iter().enumerate() {
        for queue in &phase.queues {
            for step in &queue.steps {
                let found = match *step {
                    Step::Launch(launch) => launch.index() < program.launches.len(),
                    Step::Wait { queue, .. } => queue < phase.queues.len(),
                };
                if !found {
                    dangling(format!("phase {n}, queue of {}: {step:?}", queue.place));
                }
            }
        }
    }
}

fn shapes(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut wrong = |what: String| errors.push(ProgramError::new(&codes::SHAPES, what));
    let Some(first) = program.shapes.first() else {
        return wrong("there is no shape".into());
    };
    for (a, b) in program.shapes.iter().zip(&program.shapes[1..]) {
        if !Symbol::ALL
            .into_iter()
            .all(|s| a.most.get(s) <= b.most.get(s))
        {
            wrong("a shape is smaller than the one before it".into());
        }
    }
    for symbol in [Symbol::NCtx, Symbol::NCtxSwa, Symbol::NSeqMax] {
        let differs = |s: &super::super::BatchShape| s.most.get(symbol) != first.most.get(symbol);
        if program.shapes.iter().any(differs) {
            wrong(format!("shapes differ in {}", symbol.name()));
        }
    }
}

/// Per instruction, the launches that cover it.
fn cover(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut covered = vec![0_u32; program.graph.insts().len()];
    for launch in &program.launches {
        for inst in launch.covers() {
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
            errors.push(ProgramError::new(&codes::COVER, what));
        }
    }
}

/// Every launch is in the queue of each of its places, all in one phase.
fn queued(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut found: Vec<Vec<(usize, crate::Place)>> = vec![Vec::new(); program.launches.len()];
    for (n, phase) in program.phases.iter().enumerate() {
        for queue in &phase.queues {
            for step in &queue.steps {
                if let Step::Launch(launch) = step {
                    found[launch.index()].push((n, queue.place));
                }
            }
        }
        for (i, queue) in phase.queues.iter().enumerate() {
            if phase.queues[..i].iter().any(|q| q.place == queue.place) {
                let what = format!("phase {n} has two queues of {}", queue.place);
                errors.push(ProgramError::new(&codes::COVER, what));
            }
        }
    }
    for (i, (launch, found)) in program.launches.iter().zip(&found).enumerate() {
        let once = found.len() == launch.places.len()
            && found.iter().all(|(phase, place)| {
                *phase == found[0].0 && launch.places.iter().filter(|p| *p == place).count() == 1
            });
        if !once {
            let what = format!(
                "{} stands in {} queues, it has {} places",
                Launch::new(i),
                found.len(),
                launch.places.len()
            );
            errors.push(ProgramError::new(&codes::COVER, what));
        }
    }
}

fn fits(program: &Program, name: Launch) -> Result<(), String> {
    let launch = program.launch(name);
    let graph = &program.graph;
    match &launch.work {
        Work::Compute(insts) => {
            let [place] = launch.places.as_slice() else {
                return Err("a computation has one place".into());
            };
            if insts.is_empty() || insts.windows(2).any(|w| w[0] >= w[1]) {
                return Err("the instructions are not in program order".into());
            }
            for &inst in insts {
                let data = graph.inst(inst);
                if data.op.is_transfer() || is_leaf(&data.op) {
                    return Err(format!("{inst} {} is no computation", data.op.name()));
                }
                if let Some(v) = data
                    .results
                    .iter()
                    .find(|v| graph.value(**v).place != *place)
                {
                    return Err(format!("{v} is not at {place}"));
                }
            }
            Ok(())
        }
        Work::Transfer(inst) => {
            let data = graph.inst(*inst);
            if !data.op.is_transfer() {
                return Err(format!("{} is no transfer", data.op.name()));
            }
            let places: Vec<_> = data.results.iter().map(|v| graph.value(*v).place).collect();
            if places == launch.places {
                return Ok(());
            }
            Err(format!(
                "it runs at {:?}, its results are at {places:?}",
                launch.places
            ))
        }
        Work::Store(output) => {
            let Some(Output::State { state, .. }) = graph.outputs.get(*output) else {
                return Err("the output is no state".into());
            };
            if launch.places == [graph.value(*state).place] {
                return Ok(());
            }
            Err("it does not run where the state is".into())
        }
    }
}

/// The launch that covers each instruction.
pub(super) fn covering(program: &Program) -> Vec<Option<Launch>> {
    let mut out = vec![None; program.graph.insts().len()];
    for (i, launch) in program.launches.iter().enumerate() {
        for &inst in launch.covers() {
            out[inst.index()] = Some(Launch::new(i));
        }
    }
    out
}

/// The instructions by which a launch is entered: operands that come from outside of it.
pub(super) fn reads(program: &Program, launch: Launch) -> Vec<Value> {
    let data = program.launch(launch);
    let graph = &program.graph;
    if let Work::Store(output) = data.work {
        return graph
            .outputs
            .get(output)
            .map(crate::graph::Output::value)
            .into_iter()
            .collect();
    }
    let inside = |v: &Value| data.covers().contains(&graph.value(*v).def.0);
    let mut out: Vec<Value> = data
        .covers()
        .iter()
        .flat_map(|&i| graph.inst(i).operands.iter().copied())
        .filter(|v| !inside(v))
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// The values that a launch writes to memory.
pub(super) fn writes(program: &Program, launch: Launch) -> Vec<Value> {
    let data = program.launch(launch);
    let of = |&i: &Inst| program.graph.inst(i).results.iter().copied();
    let all = data.covers().iter().flat_map(of);
    all.filter(|v| program.home(*v).is_some()).collect()
}
