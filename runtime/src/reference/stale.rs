//! Reads of a state's old content after an update. A state has one memory, so such a read would need a copy. Models
//! read the update's result instead.

use tpc_ir::op::Op;
use tpc_ir::{Dim, Graph, Inst, Output, Value};

use crate::error::ExecError;

/// Finds the first instruction that reads a state, or a view of it, after an update of the same content. The error
/// names the state and the instructions.
pub(super) fn check(graph: &Graph, order: &[Inst]) -> Result<(), ExecError> {
    let content = contents(graph);
    let updates = updates(graph, &content);
    let mut updated: Vec<Option<Inst>> = vec![None; graph.values().len()];
    for &inst in order {
        let data = graph.inst(inst);
        // A view itself does not read memory.
        let reads = data.operands.iter().filter(|_| !data.op.is_view());
        for operand in reads {
            let of = content[operand.index()];
            if graph.value(of).ty.dims.iter().any(Dim::is_zero) {
                continue;
            }
            if let Some(update) = updated[of.index()] {
                return Err(stale(graph, (of, *operand), update, inst));
            }
        }
        if updates[inst.index()] {
            updated[content[data.operands[0].index()].index()] = Some(inst);
        }
    }
    Ok(())
}

/// Returns the value that each value views, through chains of views.
fn contents(graph: &Graph) -> Vec<Value> {
    let mut out: Vec<Value> = graph.values().map(|(value, _)| value).collect();
    for (_, data) in graph.insts().filter(|(_, data)| data.op.is_view()) {
        out[data.results[0].index()] = out[data.operands[0].index()];
    }
    out
}

/// True for each instruction that updates a state's memory, through updates and views.
fn updates(graph: &Graph, content: &[Value]) -> Vec<bool> {
    let mut out = vec![false; graph.insts().len()];
    for output in &graph.outputs {
        let Output::State { state, value } = output else {
            continue;
        };
        let (mut way, mut at) = (Vec::new(), content[value.index()]);
        while at != *state && graph.def_op(at).is_update() {
            let inst = graph.value(at).def.0;
            way.push(inst);
            at = content[graph.inst(inst).operands[0].index()];
        }
        if at == *state {
            for inst in way {
                out[inst.index()] = true;
            }
        }
    }
    out
}

fn stale(graph: &Graph, (of, read): (Value, Value), update: Inst, reader: Inst) -> ExecError {
    let name = match graph.def_op(of) {
        Op::State(state) => state.name.clone(),
        _ => graph.value(of).name.clone(),
    };
    ExecError::StaleRead {
        name,
        read,
        reader: format!("{reader} {}", graph.inst(reader).op.name()),
        update: format!("{update} {}", graph.inst(update).op.name()),
        updated: graph.inst(update).results[0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(lines: &[&str]) -> Result<(), ExecError> {
        let text = format!(
            r#"tpir 1
graph "g"
v0 "cache": f32[4, n_ctx] @host = state {{name = "kept"}}
v1: f32[4, n_tokens] @host = weight {{tensor = "w"}}
v2: i64[n_tokens] @host = input {{kind = cache_rows}}
{}
output state v0 = v4
"#,
            lines.join("\n")
        );
        let parsed = tpc_ir::text::parse(&text).unwrap_or_else(|e| panic!("{}", e[0]));
        let graph = parsed.graph;
        let order: Vec<Inst> = graph.insts().map(|(inst, _)| inst).collect();
        check(&graph, &order)
    }

    const READ: &str = "v3: f32[4, n_ctx] @host = relu v0";
    const OTHER: &str = "v3: f32[4, n_tokens] @host = relu v1";
    const UPDATE: &str = "v4: f32[4, n_ctx] @host = set_rows v0, v1, v2 {axis = 1}";

    #[test]
    fn a_read_of_old_content_behind_its_update_is_found() {
        assert_eq!(checked(&[READ, UPDATE]), Ok(()));
        let new = "v5: f32[4, n_ctx] @host = relu v4";
        assert_eq!(checked(&[OTHER, UPDATE, new]), Ok(()));
        let old = "v5: f32[4, n_ctx] @host = relu v0";
        let error = checked(&[READ, UPDATE, old]).expect_err("the old content is gone");
        assert_eq!(error.code(), "TPC0523");
        let said = error.to_string();
        let names = ["\"kept\"", "v0", "v4"];
        assert!(names.iter().all(|n| said.contains(n)), "{said}");
    }

    #[test]
    fn a_view_from_before_the_update_is_of_the_same_memory() {
        let view = "v3: f32[4] @host = slice v0 {axis = 1, start = 0, len = 1}";
        let old = "v5: f32[4] @host = relu v3";
        let error = checked(&[view, UPDATE, old]).expect_err("the old content is gone");
        assert!(error.to_string().contains("v3"), "{error}");
    }

    #[test]
    fn what_is_no_update_of_the_state_leaves_it_as_it_is() {
        let beside = "v3: f32[4, n_ctx] @host = set_rows v0, v1, v2 {axis = 1}";
        let read = "v4: f32[4, n_ctx] @host = relu v0";
        assert_eq!(checked(&[beside, read]), Ok(()));
    }
}
