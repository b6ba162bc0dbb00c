//! Leaves: weights, inputs and states. The ops that use a leaf determine its kind.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::op::{Input, InputKind, State, Weight};
use tpc_ir::{Op, RANK, TensorType, Value};

use super::Leaf;
use super::memory::{Memory, dims, type_of};
use super::record::{Record, Role};
use super::trace::{RecordResult, Trace};
use crate::op::OpKind;

pub(super) struct Leaves {
    /// The role and name of each leaf. Names are unique per role.
    roles: BTreeMap<usize, (Role, String)>,
    defined: BTreeMap<usize, Value>,
}

/// Returns the tensor's name, with the line number if the name is empty or already used.
pub(super) fn unique(taken: &mut BTreeSet<String>, t: &Record) -> String {
    let mut name = t.name.clone();
    while name.is_empty() || !taken.insert(name.clone()) {
        name = format!("{name}#{}", t.line);
    }
    name
}

impl Leaves {
    pub(super) fn from_records(tensors: &[Record]) -> Leaves {
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
            // Infer an unknown role: a leaf that an op writes is a state. Masks and integers are inputs, except a
            // table of `GET_ROWS`.
            let role = if let Some(known) = t.role {
                known
            } else if t.is_input {
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
            Role::State => State::named(name).into(),
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
        m.set_line(t.line);
        if let Some(ne) = columns(m.tensors, tensor) {
            m.set_shape(tensor, ne);
        }
        let ty = TensorType {
            dims: dims(m.shape(tensor)),
            ..type_of(t)
        };
        let v = m.declare(op, Vec::new(), vec![ty], &t.name)[0];
        m.define(tensor, v);
        m.traces.push(Trace {
            record: tensor,
            reads: Vec::new(),
            made: RecordResult::Value(v),
        });
        self.defined.insert(tensor, v);
    }

    pub(super) fn list(&self, m: &Memory<'_>) -> Vec<Leaf> {
        let defined = self
            .defined
            .keys()
            .filter_map(|i| Some((i, self.roles.get(i)?)));
        let leaf = |(&record, (role, name)): (&usize, &(Role, String))| Leaf {
            name: name.clone(),
            role: *role,
            record,
            ne: m.shape(record),
        };
        defined.map(leaf).collect()
    }

    pub(super) fn states(&self, m: &Memory<'_>) -> Vec<(usize, Value)> {
        let states = self
            .defined
            .iter()
            .filter(|(_, v)| matches!(m.graph.def_op(**v), Op::State(_)));
        states.map(|(&i, &v)| (i, v)).collect()
    }
}

/// Returns the sizes `[cells, channels]` of a transposed cache, which stores a channel's cells contiguously. All
/// writes have rows of one element, and a multiple of `channels` rows.
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

/// Returns the graph's results: marked outputs, and tensors not read after the last write. A value written to a leaf
/// is the leaf's content, not a result.
pub(super) fn results(tensors: &[Record]) -> Vec<usize> {
    // The last op that wrote to each owner's memory, unless a later op reads the memory.
    let mut unread: BTreeMap<usize, usize> = BTreeMap::new();
    for (i, t) in tensors.iter().enumerate() {
        if t.is_pure_view() {
            continue;
        }
        for &source in t.src.iter().flatten() {
            unread.remove(&tensors[source].root);
        }
        if !t.is_leaf() && !t.is_empty() && !tensors[t.root].is_leaf() {
            unread.insert(t.root, i);
        }
    }
    let is_result = |i: usize| {
        let t = &tensors[i];
        let computed = !t.is_leaf() && !t.is_empty();
        let of_leaf = t.writes() && tensors[t.root].is_leaf();
        computed && !of_leaf && (t.is_output || unread.get(&t.root) == Some(&i))
    };
    (0..tensors.len()).filter(|&i| is_result(i)).collect()
}
