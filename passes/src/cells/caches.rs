//! Finds the caches that can be divided by cells, and the attention that reads them.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::{CELL_BLOCK, Dim, Graph, Inst, Op, Output, Place, Value};

use crate::users::Users;

/// A view of the visible cells of a cache.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// The slice of the visible cells, `[d, heads, cells]`.
    pub(super) base: Value,
    /// The views of the base, in order.
    pub(super) ops: Vec<Op>,
}

/// The divided caches of a placed graph.
pub(super) struct Caches {
    /// The keys and values of each attention over divided caches.
    attention: BTreeMap<Inst, [View; 2]>,
    /// The divided states and their updates.
    divided: BTreeSet<Value>,
}

/// A cache: a state, its update, and the slices of its visible cells.
struct Cache {
    state: Value,
    update: Value,
    slices: Vec<Value>,
}

impl Caches {
    pub(super) fn of(graph: &Graph, users: &Users) -> Caches {
        let caches: Vec<Cache> = graph
            .outputs
            .iter()
            .filter_map(|output| match output {
                Output::State { state, value } => cache(graph, users, *state, *value),
                Output::Named(..) => None,
            })
            .collect();
        let mut found: BTreeMap<Inst, [View; 2]> = BTreeMap::new();
        for (inst, data) in graph.insts() {
            let Op::FlashAttn(op) = &data.op else {
                continue;
            };
            let views = [1, 2].map(|i| view(graph, data.operands[i]));
            let plain = |v: Value| graph.value(v).ty.dims[2..].iter().all(Dim::is_one);
            if let [Some(k), Some(v)] = views
                && !op.lse
                && plain(data.operands[3])
                && graph.value(data.operands[0]).ty.dims[3].is_one()
            {
                found.insert(inst, [k, v]);
            }
        }
        // An attention needs both caches, and a cache needs that all its readers are such attention.
        let mut out = Caches {
            attention: found,
            divided: BTreeSet::new(),
        };
        let mut left: Vec<&Cache> = caches.iter().collect();
        loop {
            let before = (left.len(), out.attention.len());
            left.retain(|c| (c.slices.iter()).all(|&s| out.is_read_by_attention(graph, users, s)));
            let bases: BTreeSet<Value> = left.iter().flat_map(|c| c.slices.clone()).collect();
            (out.attention).retain(|_, views| views.iter().all(|v| bases.contains(&v.base)));
            if before == (left.len(), out.attention.len()) {
                break;
            }
        }
        out.divided = left.iter().flat_map(|c| [c.state, c.update]).collect();
        out
    }

    /// Returns the keys and values of an attention over divided caches.
    pub(super) fn attention(&self, inst: Inst) -> Option<&[View; 2]> {
        self.attention.get(&inst)
    }

    /// True for a divided state and for its update.
    pub(super) fn is_divided(&self, value: Value) -> bool {
        self.divided.contains(&value)
    }

    /// True if only attention of the list reads a value, directly or through views.
    fn is_read_by_attention(&self, graph: &Graph, users: &Users, value: Value) -> bool {
        !users.is_output(value)
            && users.of(value).iter().all(|&user| {
                let data = graph.inst(user);
                match &data.op {
                    Op::FlashAttn(_) => {
                        let elsewhere = |i: usize| data.operands.get(i) == Some(&value);
                        self.attention.contains_key(&user) && ![0, 3, 4].into_iter().any(elsewhere)
                    }
                    Op::Permute(_) | Op::Slice(_) => {
                        self.is_read_by_attention(graph, users, data.results[0])
                    }
                    _ => false,
                }
            })
    }

    /// True per instruction that the graph with divided caches needs: attention reads the slices instead of their views.
    pub(super) fn live(&self, graph: &Graph) -> Vec<bool> {
        let mut needed = vec![false; graph.values().len()];
        for output in &graph.outputs {
            needed[output.value().index()] = true;
        }
        let mut live = vec![false; graph.insts().len()];
        for (inst, data) in graph.insts().rev() {
            let leaf = data.op.is_leaf();
            if !leaf && !data.results.iter().any(|v| needed[v.index()]) {
                continue;
            }
            live[inst.index()] = true;
            let views = self.attention.get(&inst);
            for (i, v) in data.operands.iter().enumerate() {
                let v = match (views, i) {
                    (Some(views), 1 | 2) => views[i - 1].base,
                    _ => *v,
                };
                needed[v.index()] = true;
            }
        }
        live
    }
}

/// Returns the cache of a state on a group: rows of a batch replace its cells, and the visible cells are its first ones.
fn cache(graph: &Graph, users: &Users, state: Value, update: Value) -> Option<Cache> {
    let Place::Group(group) = graph.value(state).place else {
        return None;
    };
    let parts = graph.group(group).devices.len() as u64;
    let set = graph.inst(graph.value(update).def.0);
    let Op::SetRows(op) = &set.op else {
        return None;
    };
    let index = &graph.value(*set.operands.get(2)?).ty;
    let whole = op.axis == 2 && op.cells.is_none() && set.operands[0] == state;
    let rows = index.dims[1..].iter().all(Dim::is_one);
    let ty = &graph.value(state).ty;
    let counts = ty.counts_cells() && in_rounds(&ty.dims[2], parts);
    if parts < 2 || !whole || !rows || !counts || users.of(state).len() != 1 {
        return None;
    }
    let slices: Option<Vec<Value>> = (users.of(update).iter())
        .map(|&user| {
            let data = graph.inst(user);
            match &data.op {
                Op::Slice(s)
                    if s.axis == 2
                        && s.start.is_zero()
                        && s.len.as_const().is_none()
                        && in_rounds(&s.len, parts) =>
                {
                    Some(data.results[0])
                }
                _ => None,
            }
        })
        .collect();
    Some(Cache {
        state,
        update,
        slices: slices.filter(|s| !s.is_empty())?,
    })
}

fn in_rounds(cells: &Dim, parts: u64) -> bool {
    let unit = parts.checked_mul(CELL_BLOCK as u64);
    unit.is_some_and(|unit| cells.checked_div(&unit.into()).is_some())
}

/// Returns the view of a slice of cells, through permutations that keep axis 3 and slices of the first axis.
fn view(graph: &Graph, mut value: Value) -> Option<View> {
    let mut ops = Vec::new();
    loop {
        let data = graph.inst(graph.value(value).def.0);
        match &data.op {
            Op::Slice(s) if s.axis == 2 => break,
            Op::Slice(s) if s.axis == 0 => ops.push(data.op.clone()),
            Op::Permute(p) if p.axes[3] == 3 => ops.push(data.op.clone()),
            _ => return None,
        }
        value = data.operands[0];
    }
    ops.reverse();
    Some(View { base: value, ops })
}
