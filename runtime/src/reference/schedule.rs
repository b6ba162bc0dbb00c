//! The execution order of a graph.
//!
//! The first *phase* computes all values that need only the batch's tokens, the second also needs the tokens one
//! position further ([`InputKind::NextTokens`]), and so on. Each phase is a separate program that reads earlier phases'
//! values.

use tpc_ir::op::{InputKind, Op};
use tpc_ir::{Graph, Inst, Output, Place, Value};

use super::stale;
use crate::error::ExecError;

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) inst: Inst,
    /// Values that no later step reads.
    pub(super) dead: Vec<Value>,
}

#[derive(Clone, Debug)]
struct Phase {
    ahead: u32,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(super) struct Schedule {
    phases: Vec<Phase>,
    ahead: Vec<u32>,
}

impl Schedule {
    /// Returns the schedule of a graph, after checks for single places, definition before use, and reads of replaced
    /// states.
    pub(super) fn new(graph: &Graph) -> Result<Schedule, ExecError> {
        check(graph)?;
        let ahead = tokens_ahead(graph);
        let mut order: Vec<Inst> = graph.insts().map(|(inst, _)| inst).collect();
        order.sort_by_key(|inst| (ahead[inst.index()], *inst));
        stale::check(graph, &order)?;
        // Position of each value's last read. Outputs are kept.
        let mut last = vec![None; graph.values().len()];
        for (at, &inst) in order.iter().enumerate() {
            let data = graph.inst(inst);
            for v in data.operands.iter().chain(&data.results) {
                last[v.index()] = Some(at);
            }
        }
        for output in &graph.outputs {
            last[output.value().index()] = None;
        }
        let mut dead = vec![Vec::new(); order.len()];
        for (v, at) in last.iter().enumerate() {
            if let Some(at) = at {
                dead[*at].push(Value::new(v));
            }
        }
        let first = Phase {
            ahead: 0,
            steps: Vec::new(),
        };
        let mut phases = vec![first];
        for (inst, dead) in order.into_iter().zip(dead) {
            let (ahead, step) = (ahead[inst.index()], Step { inst, dead });
            match phases.last_mut().filter(|p| p.ahead == ahead) {
                Some(phase) => phase.steps.push(step),
                None => phases.push(Phase {
                    ahead,
                    steps: vec![step],
                }),
            }
        }
        Ok(Schedule { phases, ahead })
    }

    /// Returns the number of tokens after the batch that a phase needs; `None` after the last phase.
    pub(super) fn lookahead(&self, phase: usize) -> Option<u32> {
        self.phases.get(phase).map(|p| p.ahead)
    }

    pub(super) fn steps(&self, phase: usize) -> &[Step] {
        self.phases.get(phase).map_or(&[], |p| &p.steps)
    }

    pub(super) fn computes(&self, phase: usize, graph: &Graph, value: Value) -> bool {
        self.lookahead(phase) == Some(self.ahead[graph.value(value).def.0.index()])
    }
}

fn tokens_ahead(graph: &Graph) -> Vec<u32> {
    let mut out = vec![0; graph.insts().len()];
    for (inst, data) in graph.insts() {
        let needed = data.operands.iter();
        let needed = needed.map(|v| out[graph.value(*v).def.0.index()]).max();
        out[inst.index()] = match &data.op {
            Op::Input(input) => match input.kind {
                InputKind::NextTokens(ahead) => ahead,
                _ => 0,
            },
            _ => needed.unwrap_or(0),
        };
    }
    // A state is read in the first phase that needs it: an earlier phase may change the state first.
    let mut read_in: Vec<Option<u32>> = vec![None; graph.insts().len()];
    for (inst, data) in graph.insts() {
        for v in &data.operands {
            let first = &mut read_in[graph.value(*v).def.0.index()];
            let then = out[inst.index()];
            *first = Some(first.map_or(then, |first| first.min(then)));
        }
    }
    for (inst, data) in graph.insts() {
        if let (Op::State(_), Some(first)) = (&data.op, read_in[inst.index()]) {
            out[inst.index()] = first;
        }
    }
    out
}

fn is(flags: &[bool], v: Value) -> bool {
    flags.get(v.index()).copied().unwrap_or(false)
}

fn check(graph: &Graph) -> Result<(), ExecError> {
    for (value, v) in graph.values() {
        if let Place::Group(_) = v.place {
            let place = v.place;
            return Err(ExecError::NotLowered { value, place });
        }
    }
    let mut defined = vec![false; graph.values().len()];
    for (inst, data) in graph.insts() {
        if let Some(v) = data.operands.iter().find(|v| !is(&defined, **v)) {
            return Err(ExecError::Malformed {
                what: format!("{inst} uses {v} before it is defined"),
            });
        }
        for &v in &data.results {
            defined[v.index()] = true;
        }
        let places = data.results.iter().map(|&v| graph.value(v).place);
        if !data.op.is_collective() && places.clone().zip(places.skip(1)).any(|(a, b)| a != b) {
            return Err(ExecError::Malformed {
                what: format!(
                    "the results of {inst} ({}) are on different places",
                    data.op.name()
                ),
            });
        }
    }
    for output in &graph.outputs {
        let state = match output {
            Output::Named(..) => None,
            Output::State { state, .. } => Some(*state),
        };
        for v in state.into_iter().chain([output.value()]) {
            if !is(&defined, v) {
                return Err(ExecError::Malformed {
                    what: format!("the output {v} is not defined"),
                });
            }
        }
        if let Some(s) = state
            && !matches!(graph.def_op(s), Op::State(_))
        {
            return Err(ExecError::Malformed {
                what: format!("{s} is updated as a state, but is not a state"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_later_tokens_waits_for_them() {
        let text = r#"tpir 1
graph "g"
v0: f32[4, n_ctx] @host = state {name = "kept"}
v1: i32[n_tokens] @host = input {kind = next_tokens, ahead = 2}
v2: f32[4, 9] @host = weight {tensor = "w"}
v3: f32[4, n_tokens] @host = get_rows v2, v1
v4: i32[n_tokens] @host = input {kind = tokens}
v5: f32[4, n_tokens] @host = get_rows v2, v4
v6: i64[n_tokens] @host = input {kind = cache_rows}
v7: f32[4, n_ctx] @host = set_rows v0, v3, v6 {axis = 1}
v8: f32[4, n_tokens] @host = add v3, v5
v9: f32[4, n_tokens] @host = relu v5
output "logits" = v9
output "draft_logits_2" = v8
output state v0 = v7
"#;
        let graph = tpc_ir::text::parse(text).map_err(|e| e[0].to_string());
        let graph = graph.expect("it parses").graph;
        let schedule = Schedule::new(&graph).expect("well-formed");
        assert_eq!(
            [0, 1, 2].map(|p| schedule.lookahead(p)),
            [Some(0), Some(2), None]
        );
        let steps = |phase| -> Vec<(usize, Vec<usize>)> {
            let index = |v: &Value| v.index();
            let step = |s: &Step| (s.inst.index(), s.dead.iter().map(index).collect());
            schedule.steps(phase).iter().map(step).collect()
        };
        // The state is read with the tokens that it keeps. Values read by both phases die in the second.
        let none = Vec::new;
        let first = [
            (2, none()),
            (4, none()),
            (5, vec![4]),
            (6, none()),
            (9, none()),
        ];
        assert_eq!(steps(0), first);
        let second = [
            (0, none()),
            (1, none()),
            (3, vec![1, 2]),
            (7, vec![0, 6]),
            (8, vec![3, 5]),
        ];
        assert_eq!(steps(1), second);
        let computed = [9, 8, 7].map(|v| schedule.computes(0, &graph, Value::new(v)));
        assert_eq!(computed, [true, false, false]);
    }
}
