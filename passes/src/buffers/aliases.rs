//! Aliases: results that share an operand's memory, and stores of states computed in another buffer.

use rustc_hash::FxHashMap;
use tpc_ir::program::{LaunchData, Layout, Work};
use tpc_ir::{Graph, Inst, Output, Value};

use super::accesses::last_reads;
use crate::layout::{Layouts, Storage};
use crate::schedule::Order;

/// The value that owns each value's buffer: another value for views and in-place updates.
#[derive(Clone, Debug, Default)]
pub(super) struct Aliases {
    pub(super) owners: Vec<Value>,
    /// Layouts other than the op's own: results that overwrite part of another value, and views of these results.
    moved: FxHashMap<Value, Layout>,
}

impl Aliases {
    pub(super) fn layout(&self, graph: &Graph, layouts: &Layouts, value: Value) -> Option<Layout> {
        match self.moved.get(&value) {
            Some(layout) => Some(layout.clone()),
            None => layouts.layout(graph, value).map(|(_, layout)| layout),
        }
    }

    fn alias_operand(&mut self, graph: &Graph, layouts: &Layouts, over: Value) -> Option<()> {
        let result = Value::new(self.owners.len());
        let alike =
            layouts.storage[over.index()] == Storage::Owned && !self.moved.contains_key(&over);
        if !alike || graph.value(over).ty != graph.value(result).ty {
            let layout = self.layout(graph, layouts, over)?;
            self.moved.insert(result, layout);
        }
        self.owners.push(self.owners[over.index()]);
        Some(())
    }

    fn alias_view(&mut self, graph: &Graph, value: Value) -> Option<()> {
        let inst = graph.inst(graph.value(value).def.0);
        let operand = inst.operands[0];
        if let Some(layout) = self.moved.get(&operand) {
            let (from, to) = (&graph.value(operand).ty, &graph.value(value).ty);
            let layout = layout.view(&inst.op, from, to)?;
            self.moved.insert(value, layout);
        }
        self.owners.push(self.owners[operand.index()]);
        Some(())
    }
}

pub(super) fn find_aliases(
    graph: &Graph,
    layouts: &Layouts,
    launches: &[LaunchData],
    order: &Order,
) -> Option<Aliases> {
    let readers = last_reads(graph, layouts, launches, order);
    // The launch of each update and of each instruction launched alone.
    let mut may: Vec<Option<LaunchSite<'_>>> = vec![None; graph.insts().len()];
    let all = order.phases.iter().flat_map(|(_, launches)| launches);
    for (position, launch) in all.enumerate() {
        if let Work::Compute(insts) = &launches[launch.index()].work {
            let alone = insts.len() == 1;
            for inst in insts
                .iter()
                .filter(|i| alone || graph.inst(**i).op.is_update())
            {
                may[inst.index()] = Some(LaunchSite { position, insts });
            }
        }
    }
    let mut out = Aliases::default();
    out.owners.reserve(graph.values().len());
    for (value, data) in graph.values() {
        match &layouts.storage[value.index()] {
            Storage::View(..) => out.alias_view(graph, value)?,
            Storage::Owned => {
                let over = may[data.def.0.index()].and_then(|at| {
                    find_overwritten_operand(graph, layouts, &out, &readers, value, at)
                });
                match over {
                    Some(operand) => out.alias_operand(graph, layouts, operand)?,
                    None => out.owners.push(value),
                }
            }
        }
    }
    Some(out)
}

#[derive(Clone, Copy)]
struct LaunchSite<'a> {
    position: usize,
    insts: &'a [Inst],
}

/// Returns the operand to overwrite, if the launch is the operand's last reader.
fn find_overwritten_operand(
    graph: &Graph,
    layouts: &Layouts,
    shared: &Aliases,
    readers: &[Option<usize>],
    result: Value,
    at: LaunchSite<'_>,
) -> Option<Value> {
    let inst = graph.value(result).def.0;
    let data = graph.inst(inst);
    let types: Vec<_> = data.operands.iter().map(|v| &graph.value(*v).ty).collect();
    let to = &graph.value(result).ty;
    let may = |(i, &operand): (usize, &Value)| -> Option<Value> {
        let of = layouts.base(operand);
        if readers[of.index()] != Some(at.position) || !data.op.in_place(i, &types, to) {
            return None;
        }
        let owner = shared.owners[operand.index()];
        let lasting = |v: Value| graph.def_op(v).is_stored();
        let own = layouts.storage[operand.index()] == Storage::Owned;
        let update = data.op.is_update() && i == 0;
        if !update && (!own || lasting(of) || lasting(owner) || at.insts.len() > 1) {
            return None;
        }
        // The launch must not read another operand from this buffer. Values computed inside the launch have no buffer.
        let there = |v: &Value| shared.owners.get(v.index()) == Some(&owner);
        let others = data.operands.iter().enumerate().filter(|(j, _)| *j != i);
        let meets = |(j, v): (usize, &Value)| {
            there(v) && !(*v == operand && data.op.in_place(j, &types, to))
        };
        let beside = at.insts.iter().filter(|other| **other != inst);
        let mut read_beside = beside.flat_map(|other| &graph.inst(*other).operands);
        (!others.into_iter().any(meets) && !read_beside.any(there)).then_some(operand)
    };
    data.operands.iter().enumerate().find_map(may)
}

/// Adds a `store` launch for each state whose new content is outside the state's memory.
pub(super) fn add_stores(
    graph: &Graph,
    layouts: &Layouts,
    shared: &Aliases,
    launches: &mut Vec<LaunchData>,
) -> Option<()> {
    for (n, output) in graph.outputs.iter().enumerate() {
        let Output::State { state, value } = output else {
            continue;
        };
        let layout = |v: &Value| shared.layout(graph, layouts, *v);
        let together = shared.owners[value.index()] == shared.owners[state.index()];
        if !together || layout(value)? != layout(state)? {
            launches.push(LaunchData {
                kernel: "store".to_owned(),
                places: vec![graph.value(*state).place],
                work: Work::Store(n),
            });
        }
    }
    Some(())
}
