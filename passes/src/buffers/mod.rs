//! Assigns an address to every value.
//!
//! Weights and states are stored consecutively; the other values of a batch share memory. A buffer lives from the
//! launch that writes it to the last launch that reads it or a view of it. A result reuses the memory of an operand if
//! the launch is the operand's last reader and the op allows it. Values that a later phase reads live to the end, so
//! that a phase can run again. Lifetimes follow a linear order of all launches; for parallel places, the
//! [schedule](crate::schedule) adds waits.

mod accesses;
mod addresses;
mod aliases;
mod free_list;
mod lifetimes;
mod memory;
mod print;

pub use memory::Memory;
pub use print::print;

use rustc_hash::FxHashMap;
use tpc_ir::program::{
    ArenaKind, BatchShape, LaunchData, Layout, StorageFormat, Target, WeightStorage,
};
use tpc_ir::{Buffer, Graph, Op, Place, Verified, stage};

use crate::layout::Layouts;
use crate::schedule::Order;
use crate::users::Users;
use addresses::assign_addresses;
use aliases::{add_stores, find_aliases};
use lifetimes::Lifetimes;

fn find_internal_values(graph: &Graph, launches: &[LaunchData]) -> Vec<bool> {
    let users = Users::of_graph(graph);
    let mut out = vec![false; graph.values().len()];
    for launch in launches.iter().filter(|l| l.covered_insts().len() > 1) {
        let covered = launch.covered_insts();
        let results = covered.iter().flat_map(|i| &graph.inst(*i).results);
        for v in results.filter(|v| !users.is_output(**v)) {
            let readers = users.of(*v);
            let stays = !readers.is_empty() && readers.iter().all(|u| covered.contains(u));
            out[v.index()] = stays;
        }
    }
    out
}

/// Assigns addresses to all values, and adds `store` launches for new state contents. Returns `None` on overflow.
pub fn buffers(
    graph: &Verified<stage::Programs>,
    layouts: &Layouts,
    launches: &mut Vec<LaunchData>,
    order: impl Fn(&[LaunchData]) -> Order,
    shapes: &[BatchShape],
    target: &dyn Target,
) -> Option<(Memory, Order)> {
    let mut memory = Memory {
        of: vec![None; graph.values().len()],
        ..Memory::default()
    };
    let fixed = shapes.first()?;
    let mut weights: FxHashMap<(Place, &Op), Buffer> = FxHashMap::default();
    for (value, data) in graph.values() {
        let op = graph.def_op(value);
        let buffer = match op {
            Op::Weight(_) => {
                let stored = layouts.weight_storage[value.index()]?;
                match weights.get(&(data.place, op)) {
                    Some(&known) if memory.buffers[known.index()].format == stored.format => known,
                    _ => {
                        let WeightStorage { format, bytes } = stored;
                        let kind = ArenaKind::Weights;
                        let buffer = memory.push_persistent(
                            data.place,
                            kind,
                            format,
                            bytes,
                            target.alignment(),
                        )?;
                        weights.insert((data.place, op), buffer);
                        buffer
                    }
                }
            }
            Op::State(_) => {
                let bytes = Layout::dense(&data.ty)?.span_bytes(&data.ty, &fixed.most)?;
                let (kind, format) = (ArenaKind::States, StorageFormat::FILE);
                memory.push_persistent(data.place, kind, format, bytes, target.alignment())?
            }
            _ => continue,
        };
        Layout::dense(&data.ty)?;
        memory.of[value.index()] = Some(buffer);
    }
    let mut of_launches = order(launches);
    let shared = find_aliases(graph, layouts, launches, &of_launches)?;
    let computing = launches.len();
    add_stores(graph, layouts, &shared, launches)?;
    if launches.len() > computing {
        of_launches = order(launches);
    }
    let order = of_launches;
    let lifetimes = Lifetimes::of(graph, &shared, launches, &order);
    let inside = find_internal_values(graph, launches);
    assign_addresses(
        (graph, &inside),
        &shared,
        &lifetimes,
        shapes,
        target,
        &mut memory,
    )?;
    for (value, _) in graph.values() {
        let owner = shared.owners[value.index()];
        memory.of[value.index()] = memory.of[owner.index()];
    }
    memory.shared = shared;
    Some((memory, order))
}
