use super::accesses::reads;
use super::{ProgramError, codes};
use crate::entity::Launch;
use crate::op::{InputKind, Op};
use crate::place::Place;
use crate::program::text::Part;
use crate::program::{Program, Step};

pub(super) fn check(program: &Program, errors: &mut Vec<ProgramError>) {
    phases(program, errors);
    launches(program, errors);
}

fn phases(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut wrong =
        |part: Part, what: String| errors.push(ProgramError::new(&codes::COVER, part, what));
    for (n, pair) in program.phases.windows(2).enumerate() {
        if pair[0].lookahead >= pair[1].lookahead {
            let what = format!(
                "phase {} does not need more tokens than the phase before it",
                n + 1
            );
            wrong(Part::Phase(n + 1), what);
        }
    }
    for (n, phase) in program.phases.iter().enumerate() {
        for (i, queue) in phase.queues.iter().enumerate() {
            if phase.queues[..i].iter().any(|q| q.place == queue.place) {
                let what = format!("phase {n} has two queues of {}", queue.place);
                wrong(Part::Queue(n, i), what);
            }
        }
    }
}

fn launches(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut found: Vec<Vec<(usize, Place)>> = vec![Vec::new(); program.launches.len()];
    for (n, phase) in program.phases.iter().enumerate() {
        for queue in &phase.queues {
            for step in &queue.steps {
                if let Step::Launch(launch) = step {
                    found[launch.index()].push((n, queue.place));
                }
            }
        }
    }
    let ahead = lookahead_tokens(program);
    for (i, found) in found.iter_mut().enumerate() {
        let name = Launch::new(i);
        let mut wrong = |what: String| {
            errors.push(ProgramError::new(&codes::COVER, Part::Launch(name), what));
        };
        let mut places = program.launch(name).places.clone();
        places.sort_unstable();
        found.sort_unstable();
        let at: Vec<Place> = found.iter().map(|(_, place)| *place).collect();
        let phase = found.first().map(|(phase, _)| *phase);
        if at != places || found.iter().any(|(p, _)| Some(*p) != phase) {
            wrong(format!(
                "{name} is in the queues of {at:?}, but its places are {places:?}"
            ));
            continue;
        }
        let needed = required_lookahead(program, name, &ahead);
        let stands = phase.map(|p| program.phases[p].lookahead);
        if stands != Some(needed) {
            let stands = stands.unwrap_or_default();
            wrong(format!(
                "{name} is in the phase of {stands} tokens ahead, but needs {needed}"
            ));
        }
    }
}

fn required_lookahead(program: &Program, launch: Launch, ahead: &[u32]) -> u32 {
    let reads = reads(program, launch);
    let of = |v: &crate::entity::Value| ahead[program.graph.value(*v).def.0.index()];
    reads.iter().map(of).max().unwrap_or(0)
}

fn lookahead_tokens(program: &Program) -> Vec<u32> {
    let graph = &program.graph;
    let mut out = vec![0; graph.insts().len()];
    for (inst, data) in graph.insts() {
        let of = |v: &crate::entity::Value| out[graph.value(*v).def.0.index()];
        out[inst.index()] = match &data.op {
            Op::Input(input) => match input.kind {
                InputKind::NextTokens(ahead) => ahead,
                _ => 0,
            },
            _ => data.operands.iter().map(of).max().unwrap_or(0),
        };
    }
    out
}
