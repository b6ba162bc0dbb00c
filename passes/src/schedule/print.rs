use std::fmt::Write;

use tpc_ir::program::{Phase, Program, Queue, Step};

use crate::cover::work;

/// Prints the queues of each phase, one line per step. A wait names the awaited launch of the other queue.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    for phase in &program.phases {
        let _ = match phase.lookahead {
            0 => writeln!(out, "phase of known tokens"),
            n => writeln!(out, "phase of {n} tokens ahead"),
        };
        for queue in &phase.queues {
            let _ = writeln!(out, "  @{}", queue.place);
            for step in &queue.steps {
                let _ = writeln!(out, "    {}", line(program, phase, queue, step));
            }
        }
    }
    out
}

fn line(program: &Program, phase: &Phase, queue: &Queue, step: &Step) -> String {
    match *step {
        Step::Wait { queue, steps } => {
            let other = phase.queues.get(queue);
            let place = other.map_or_else(String::new, |q| q.place.to_string());
            match other.and_then(|q| q.steps.get(steps.checked_sub(1)?)) {
                Some(Step::Launch(launch)) => format!("wait for {launch} of @{place}"),
                _ => format!("wait for {steps} steps of @{place}"),
            }
        }
        Step::Launch(name) => {
            let launch = program.launch(name);
            let (kernel, work) = (&launch.kernel, work(&program.graph, launch));
            let others = launch.places.iter().filter(|p| **p != queue.place);
            let others: Vec<String> = others.map(|p| format!("@{p}")).collect();
            let with = match others.is_empty() {
                true => String::new(),
                false => format!(" with {}", others.join(", ")),
            };
            format!("{name} {kernel} {work}{with}")
        }
    }
}
