use std::collections::HashMap;

use tpc_ir::op::InputKind;
use tpc_ir::{Graph, Op, Value};

#[derive(Debug)]
pub(super) struct Leaves<'a> {
    by_name: HashMap<LeafName<'a>, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LeafName<'a> {
    Weight(&'a str),
    State(&'a str),
    Input(&'a InputKind),
}

/// Returns a leaf's name; `None` for constants and other ops.
fn leaf_name(op: &Op) -> Option<LeafName<'_>> {
    match op {
        Op::Weight(w) => Some(LeafName::Weight(&w.tensor)),
        Op::State(s) => Some(LeafName::State(&s.name)),
        Op::Input(i) => Some(LeafName::Input(&i.kind)),
        _ => None,
    }
}

pub(super) fn is_named_leaf(op: &Op) -> bool {
    leaf_name(op).is_some()
}

impl Leaves<'_> {
    pub(super) fn new(model: &Graph) -> Leaves<'_> {
        let mut by_name = HashMap::new();
        for (_, data) in model.insts() {
            if let (Some(name), Some(&v)) = (leaf_name(&data.op), data.results.first()) {
                by_name.entry(name).or_insert(v);
            }
        }
        Leaves { by_name }
    }

    /// Returns the model's leaf that an op reads; the first if several have the name.
    pub(super) fn get(&self, op: &Op) -> Option<Value> {
        self.by_name.get(&leaf_name(op)?).copied()
    }

    pub(super) fn has_weight(&self, name: &str) -> bool {
        self.by_name.contains_key(&LeafName::Weight(name))
    }
}
