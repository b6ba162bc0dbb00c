//! Finds inputs whose elements a graph reads. Ops such as fill use only the size of an input.

use std::collections::BTreeSet;

use tpc_ir::op::InputKind;
use tpc_ir::{Graph, Op, Output, Value};

pub(super) fn read_inputs(graph: &Graph) -> BTreeSet<String> {
    let mut needed = vec![false; graph.values().len()];
    let mut open: Vec<Value> = Vec::new();
    for output in &graph.outputs {
        match output {
            Output::Named(_, value) | Output::State { value, .. } => open.push(*value),
        }
    }
    let mut out = BTreeSet::new();
    while let Some(value) = open.pop() {
        if std::mem::replace(&mut needed[value.index()], true) {
            continue;
        }
        let data = graph.inst(graph.value(value).def.0);
        match &data.op {
            Op::Fill(_) => {}
            Op::Input(input) => {
                if let InputKind::Other(name) = &input.kind {
                    out.insert(name.clone());
                }
            }
            _ => open.extend(&data.operands),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpc_ir::text::parse;

    #[test]
    fn a_fill_does_not_read_its_input() {
        let text = "tpir 1\ngraph \"g\"\n\n\
            v0 \"a\": f32[4] @host = input {name = \"a\"}\n\
            v1 \"b\": f32[4] @host = input {name = \"b\"}\n\
            v2: f32[4] @host = fill v0 {value = 1.0}\n\
            v3: f32[4] @host = add v2, v1\n\n\
            output \"out\" = v3\n";
        let graph = parse(text).expect("a graph").graph;
        assert_eq!(read_inputs(&graph), BTreeSet::from(["b".to_owned()]));
    }
}
