use tpc_ir::{Graph, Inst, Value};

/// The instructions that read each value.
#[derive(Clone, Debug)]
pub struct Users {
    users: Vec<Vec<Inst>>,
    output: Vec<bool>,
}

impl Users {
    /// Returns the readers of every value of a graph.
    pub fn of_graph(graph: &Graph) -> Users {
        let n = graph.values().len();
        let mut out = Users {
            users: vec![Vec::new(); n],
            output: vec![false; n],
        };
        for (inst, data) in graph.insts() {
            for v in &data.operands {
                if out.users[v.index()].last() != Some(&inst) {
                    out.users[v.index()].push(inst);
                }
            }
        }
        for o in &graph.outputs {
            out.output[o.value().index()] = true;
        }
        out
    }

    /// Returns the instructions that read `v`.
    pub fn of(&self, v: Value) -> &[Inst] {
        &self.users[v.index()]
    }

    /// True if `v` is a named output or the new content of a state.
    pub fn is_output(&self, v: Value) -> bool {
        self.output[v.index()]
    }
}
