//! Weights, inputs and states, told apart by what is done with them.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::op::{Input, InputKind, State, Weight};
use tpc_ir::{Op, RANK, TensorType, Value};

use super::memory::{Memory, dims, type_of};
use super::record::Record;
use crate::op::OpKind;

/// What a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Kept from batch to batch: something writes to it.
    State,
    /// Given with every batch: marked so, a mask, or integers that are no table to look up.
    Input,
    /// Everything else.
    Weight,
}

/// The leaves of a capture.
pub(super) struct Leaves {
    /// Per tensor its role and its name, which is unique among those of its role.
    roles: BTreeMap<usize, (Role, String)>,
    defined: BTreeMap<usize, Value>,
}

/// The tensor's name, or that name and its line where others have the name or it is empty.
pub(super) fn unique(taken: &mut BTreeSet<String>, t: &Record) -> String {
    let mut name = t.name.clone();
    while name.is_empty() || !taken.insert(name.clone()) {
        name = format!("{name}#{}", t.line);
    }
    name
}

impl Leaves {
    /// The leaves among `tensors`.
    pub(super) fn of(tensors: &[Record]) -> Leaves {
        let mut written = BTreeSet::new();
        let mut masks = BTreeSet::new();
        let mut tables = BTreeSet::new();
        let mut other_uses = BTreeSet::new();
        for t in tensors {
            if t.writes() && !t.is_empty() {
                written.insert(t.root);
            }
            if t.is_pure_view() || t.is_leaf() {
                continue;
            }
            for (i, source) in t.src.iter().enumerate() {
                let Some(source) = source else { continue };
                let root = tensors[*source].root;
                match (t.op.kind(), i) {
                    (Some(OpKind::SoftMax), 1) | (Some(OpKind::FlashAttnExt), 3) => {
                        masks.insert(root)
                    }
                    (Some(OpKind::GetRows), 0) => tables.insert(root),
                    _ => other_uses.insert(root),
                };
            }
        }
        let mut taken: [BTreeSet<String>; 3] = Default::default();
        let mut roles = BTreeMap::new();
        for (i, t) in tensors.iter().enumerate() {
            if !t.is_leaf() || t.is_view {
                continue;
            }
            let table = tables.contains(&i) && !other_uses.contains(&i);
            let role = if t.is_input {
                Role::Input
            } else if written.contains(&i) {
                Role::State
            } else if masks.contains(&i) || (t.dtype.is_integer() && !table) {
                Role::Input
            } else {
                Role::Weight
            };
            let name = unique(&mut taken[role as usize], t);
            roles.insert(i, (role, name));
        }
        Leaves {
            roles,
            defined: BTreeMap::new(),
        }
    }

    /// Makes the leaf a value, when it is one and has none yet.
    pub(super) fn define(&mut self, m: &mut Memory<'_>, tensor: usize) {
        let Some((role, name)) = self.roles.get(&tensor) else {
            return;
        };
        let t = &m.tensors[tensor];
        if m.is_defined(tensor) || t.is_empty() {
            return;
        }
        let name = name.clone();
        let op: Op = match role {
            Role::State => State { name, parts: None }.into(),
            Role::Input => Input {
                kind: InputKind::Other(name),
            }
            .into(),
            Role::Weight => Weight {
                tensor: name,
                parts: None,
            }
            .into(),
        };
        m.at(t.line);
        if let Some(ne) = columns(m.tensors, tensor) {
            m.hold(tensor, ne);
        }
        let ty = TensorType {
            dims: dims(m.held(tensor)),
            ..type_of(t)
        };
        let v = m.declare(op, Vec::new(), vec![ty], &t.name)[0];
        m.define(tensor, v);
        self.defined.insert(tensor, v);
    }

    /// The states that are values, in order.
    pub(super) fn states(&self, m: &Memory<'_>) -> Vec<(usize, Value)> {
        let states = self
            .defined
            .iter()
            .filter(|(_, v)| matches!(m.graph.def_op(**v), Op::State(_)));
        states.map(|(&i, &v)| (i, v)).collect()
    }
}

/// The sizes of a cache that has the cells of a channel side by side, [cells, channels], where `owner` is one: it is
/// written as rows of one element each, for as many channels as its own rows are long.
fn columns(tensors: &[Record], owner: usize) -> Option<[u64; RANK]> {
    let t = &tensors[owner];
    let [channels, cells, 1, 1] = t.ne() else {
        return None;
    };
    let by_element = |w: &Record| {
        let rows = w
            .src
            .first()
            .copied()
            .flatten()
            .map(|s| tensors[s].elements());
        w.is(OpKind::SetRows)
            && w.root == owner
            && w.ne() == [1, t.elements(), 1, 1]
            && rows.is_some_and(|n| n > 0 && n.is_multiple_of(channels))
    };
    let mut writes = tensors
        .iter()
        .filter(|w| w.root == owner && w.writes())
        .peekable();
    let any = writes.peek().is_some();
    (channels > 1 && any && writes.all(by_element)).then_some([cells, channels, 1, 1])
}

/// What the graph is computed for: tensors marked so, and those that nothing reads.
pub(super) fn results(tensors: &[Record]) -> Vec<usize> {
    let mut read = vec![false; tensors.len()];
    for t in tensors.iter().filter(|t| !t.is_pure_view()) {
        for &source in t.src.iter().flatten() {
            read[tensors[source].root] = true;
        }
    }
    let of = |i: usize| {
        let t = &tensors[i];
        let computed = !t.is_leaf() && !t.is_empty();
        let wanted = t.is_output || (!t.is_view && !read[i]);
        computed && wanted && !t.writes()
    };
    (0..tensors.len()).filter(|&i| of(i)).collect()
}
