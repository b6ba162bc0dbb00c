//! Buffers: an address for every value.
//!
//! Weights and states lie one after another. The work of a batch shares memory: a buffer lives from the launch that writes
//! it to the last that reads it or a view of it, and results take the memory of an operand that ends there where the op
//! allows it. What a later phase reads lives to the end, so that a phase may run again. Addresses are those of a linear
//! order of all launches; where places run side by side, the [schedule](crate::schedule) adds waits.

mod accesses;
mod free;
mod lifetimes;
mod memory;
mod share;
mod work;

pub use memory::Memory;

use rustc_hash::FxHashMap;
use tpc_ir::program::{ArenaKind, BatchShape, LaunchData, Layout, Stored, StoredFormat, Target};
use tpc_ir::{Buffer, Graph, Op, Place, Verified, stage};

use crate::layout::Layouts;
use crate::schedule::Order;
use crate::users::Users;
use lifetimes::Lifetimes;
use share::{share, stores};
use work::work;

/// Per value, whether it stays inside a launch: its launch covers several instructions, among them all that read it.
fn inside(graph: &Graph, launches: &[LaunchData]) -> Vec<bool> {
    let users = Users::of_graph(graph);
    let mut out = vec![false; graph.values().len()];
    for launch in launches.iter().filter(|l| l.covers().len() > 1) {
        let covered = launch.covers();
        let results = covered.iter().flat_map(|i| &graph.inst(*i).results);
        for v in results.filter(|v| !users.is_output(**v)) {
            let readers = users.of(*v);
            let stays = !readers.is_empty() && readers.iter().all(|u| covered.contains(u));
            out[v.index()] = stays;
        }
    }
    out
}

/// Addresses for all values of programs, and the stores that put new contents of states where they belong. `None` when a
/// size overflows.
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
                let stored = layouts.stored[value.index()]?;
                match weights.get(&(data.place, op)) {
                    Some(&known) if memory.buffers[known.index()].format == stored.format => known,
                    _ => {
                        let Stored { format, bytes } = stored;
                        let kind = ArenaKind::Weights;
                        let buffer =
                            memory.lasting(data.place, kind, format, bytes, target.alignment())?;
                        weights.insert((data.place, op), buffer);
                        buffer
                    }
                }
            }
            Op::State(_) => {
                let bytes = Layout::dense(&data.ty)?.reach(&data.ty, &fixed.most)?;
                let (kind, format) = (ArenaKind::States, StoredFormat::File);
                memory.lasting(data.place, kind, format, bytes, target.alignment())?
            }
            _ => continue,
        };
        Layout::dense(&data.ty)?;
        memory.of[value.index()] = Some(buffer);
    }
    let mut of_launches = order(launches);
    let shared = share(graph, layouts, launches, &of_launches)?;
    let computing = launches.len();
    stores(graph, layouts, &shared, launches)?;
    if launches.len() > computing {
        of_launches = order(launches);
    }
    let order = of_launches;
    let lifetimes = Lifetimes::of(graph, &shared, launches, &order);
    let inside = inside(graph, launches);
    work(
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
