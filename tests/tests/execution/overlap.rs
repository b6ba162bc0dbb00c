//! Device work that can overlap host work must not depend on it.

use std::collections::BTreeSet;

use tpc_ir::program::{FileTarget, Phase, Program, Step};
use tpc_ir::{Launch, Op, Place, Value};
use tpc_tests::goldens;

use crate::support::{Assembled, Written, golden, name, placed};

const SHARED: [&str; 2] = ["qwen2moe-tiny", "deepseek2-tiny"];

#[test]
fn shared_experts_run_while_the_host_computes_the_others() {
    let mut seen = 0;
    let written = SHARED.map(Written::new);
    let made = written.iter().map(|w| (w.0.clone(), vec![1, 2, 3, 4]));
    let stored = goldens().into_iter().map(|path| {
        let tokens = golden(&path).tokens;
        (path, tokens)
    });
    for (path, tokens) in made.chain(stored) {
        for (devices, way) in [(1, "-cmoe"), (2, "-cmoe"), (2, "-cmoe -sm layer")] {
            let placement = placed(devices, way);
            let Some(model) = Assembled::new(&path, &placement, &tokens[..4], &FileTarget) else {
                continue;
            };
            let program = &*model.program;
            let [others, shared] =
                ["_exps", "_shexp"].map(|part| products(program, &format!("{part}.weight")));
            for &(there, layer, host) in &others {
                let beside = shared.iter().filter(|(place, l, _)| {
                    there == Place::Host && *place != Place::Host && *l == layer
                });
                for &(_, _, device) in beside {
                    seen += 1;
                    let order = [(host, device), (device, host)];
                    assert!(
                        !order.iter().any(|&(a, b)| waits(program, b, a)),
                        "{} on {devices} {way}: {host} and {device} of layer {layer:?} have an order",
                        name(&path)
                    );
                }
            }
        }
    }
    assert!(seen > 0, "no model has a shared expert beside the host's");
}

fn products(program: &Program, ending: &str) -> Vec<(Place, Option<u32>, Launch)> {
    let graph = &program.graph;
    let ends = |v: &Value| matches!(graph.def_op(*v), Op::Weight(w) if w.tensor.ends_with(ending));
    let mut out = Vec::new();
    for (i, launch) in program.launches.iter().enumerate() {
        for inst in launch.covered_insts().iter().map(|i| graph.inst(*i)) {
            let is_product = matches!(inst.op, Op::MulMat(_) | Op::MulMatId(_));
            if is_product && inst.operands.iter().any(ends) {
                out.push((launch.places[0], inst.layer, Launch::new(i)));
            }
        }
    }
    out
}

/// True if a launch waits for another one, directly or indirectly.
fn waits(program: &Program, launch: Launch, on: Launch) -> bool {
    program.phases.iter().any(|phase| {
        let mut seen = BTreeSet::new();
        let mut ahead = steps_of(phase, launch);
        while let Some((queue, step)) = ahead.pop() {
            if !seen.insert((queue, step)) {
                continue;
            }
            match phase.queues[queue].steps[step] {
                Step::Launch(launch) if launch == on => return true,
                Step::Launch(launch) => ahead.extend(steps_of(phase, launch)),
                Step::Wait { queue, steps } => {
                    ahead.extend(steps.checked_sub(1).map(|last| (queue, last)));
                }
            }
            ahead.extend(step.checked_sub(1).map(|before| (queue, before)));
        }
        false
    })
}

fn steps_of(phase: &Phase, launch: Launch) -> Vec<(usize, usize)> {
    let queues = phase.queues.iter().enumerate();
    let at = |(q, queue): (usize, &tpc_ir::program::Queue)| {
        let steps = &queue.steps;
        let found = steps.iter().position(|s| *s == Step::Launch(launch));
        found.map(|step| (q, step))
    };
    queues.filter_map(at).collect()
}
