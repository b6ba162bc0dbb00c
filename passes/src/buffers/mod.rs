//! Buffers: an address for every value.
//!
//! Weights and states lie one after another. The work of a batch shares memory: a buffer lives from the launch that writes
//! it to the last that reads it or a view of it, and results take the memory of an operand that ends there where the op
//! allows it. What a later phase reads lives to the end, so that a phase may run again. Addresses are those of a linear
//! order of all launches; where places run side by side, the [schedule](crate::schedule) adds waits.

mod free;
mod lifetimes;
mod print;
mod share;
mod work;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tpc_ir::program::{
    ArenaData, ArenaKind, BatchShape, BufferData, Extent, Home, LaunchData, Layout, Stored,
    StoredFormat, Target,
};
use tpc_ir::{Arena, Buffer, Graph, Op, Place, Value, Verified, stage};

use crate::layout::Layouts;
use crate::schedule::Order;
use crate::users::Users;
use lifetimes::Lifetimes;
pub use print::print;
use share::{Shared, share, stores};
use work::work;

/// The memory of a program.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The arenas.
    pub arenas: Vec<ArenaData>,
    /// The buffers.
    pub buffers: Vec<BufferData>,
    /// Per value, the buffer in which it lies.
    pub of: Vec<Option<Buffer>>,
    /// Per place, the most bytes of its work that results of copies and collectives take at one time.
    pub staging: BTreeMap<Place, u64>,
    shared: Shared,
}

impl Memory {
    /// The arena of a place for a kind.
    fn arena(&mut self, place: Place, kind: ArenaKind) -> Arena {
        let found = self
            .arenas
            .iter()
            .position(|a| a.place == place && a.kind == kind);
        Arena::new(found.unwrap_or_else(|| {
            let bytes = 0;
            self.arenas.push(ArenaData { place, kind, bytes });
            self.arenas.len() - 1
        }))
    }

    /// A buffer that lasts, behind those that the arena has.
    fn lasting(
        &mut self,
        place: Place,
        kind: ArenaKind,
        format: StoredFormat,
        bytes: u64,
        alignment: u64,
    ) -> Option<Buffer> {
        let arena = self.arena(place, kind);
        let data = &mut self.arenas[arena.index()];
        let offset = data.bytes.checked_next_multiple_of(alignment)?;
        data.bytes = offset.checked_add(bytes)?;
        Some(self.push(BufferData {
            arena,
            format,
            extents: vec![Extent { offset, bytes }],
        }))
    }

    fn push(&mut self, data: BufferData) -> Buffer {
        self.buffers.push(data);
        Buffer::new(self.buffers.len() - 1)
    }

    /// The home of each value; `None` when a size overflows.
    pub fn homes(&self, graph: &Graph, layouts: &Layouts) -> Option<Vec<Option<Home>>> {
        let home = |(value, _)| {
            let layout = self.shared.layout(graph, layouts, value)?;
            Some(self.of[Value::index(value)].map(|buffer| Home { buffer, layout }))
        };
        graph.values().map(home).collect()
    }
}

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
