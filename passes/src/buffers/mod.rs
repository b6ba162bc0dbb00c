//! Buffers: an address for every value.
//!
//! Weights and states lie one after another. The work of a batch shares memory: a buffer lives from the launch that writes
//! it to the last that reads it or a view of it, and results take the memory of an operand that ends there where the op
//! allows it. What a later phase reads lives to the end, so that a phase may run again. Addresses are those of a linear
//! order of all launches; where places run side by side, the [schedule](crate::schedule) adds waits.

mod free;
mod lifetimes;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tpc_ir::program::{
    ArenaData, ArenaKind, BatchShape, BufferData, Extent, Home, LaunchData, Layout, Stored,
    StoredFormat, Target, Work,
};
use tpc_ir::{Arena, Buffer, Graph, Op, Output, Place, Value, Verified, stage};

use crate::layout::{Layouts, Lie};
use crate::schedule::Order;
use free::Free;
use lifetimes::Lifetimes;

/// The memory of a program.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The arenas.
    pub arenas: Vec<ArenaData>,
    /// The buffers.
    pub buffers: Vec<BufferData>,
    /// Per value, its home.
    pub homes: Vec<Option<Home>>,
    /// Per place, the most bytes of its work that results of copies and collectives take at one time.
    pub staging: BTreeMap<Place, u64>,
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

    fn settle(&mut self, value: Value, buffer: Buffer, layout: Layout) {
        self.homes[value.index()] = Some(Home { buffer, layout });
    }
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
        homes: vec![None; graph.values().len()],
        ..Memory::default()
    };
    let fixed = shapes.first()?;
    let mut weights: HashMap<(Place, &Op), Buffer> = HashMap::new();
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
        memory.settle(value, buffer, Layout::dense(&data.ty)?);
    }
    let first = order(launches);
    let shared = share(graph, layouts, launches, &first)?;
    stores(graph, &shared, launches);
    let order = order(launches);
    let lifetimes = Lifetimes::of(graph, &shared, launches, &order);
    work(graph, &shared, &lifetimes, shapes, target, &mut memory)?;
    for (value, _) in graph.values() {
        if memory.homes[value.index()].is_some() {
            continue;
        }
        let (owner, layout) = &shared.of[value.index()];
        let buffer = memory.homes[owner.index()].as_ref()?.buffer;
        memory.settle(value, buffer, layout.clone());
    }
    Some((memory, order))
}

/// Per value, the value in whose buffer it lies, and its layout there: through views and updates in place.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) of: Vec<(Value, Layout)>,
}

/// Decides which results take the memory of an operand.
fn share(
    graph: &Graph,
    layouts: &Layouts,
    launches: &[LaunchData],
    order: &Order,
) -> Option<Shared> {
    let readers = lifetimes::last_reads(graph, layouts, launches, order);
    // Per instruction that a launch covers alone, the position of the launch.
    let mut alone = vec![None; graph.insts().len()];
    let all = order.phases.iter().flat_map(|(_, launches)| launches);
    for (position, launch) in all.enumerate() {
        if let Work::Compute(insts) = &launches[launch.index()].work
            && let [inst] = insts.as_slice()
        {
            alone[inst.index()] = Some(position);
        }
    }
    let mut out = Shared { of: Vec::new() };
    for (value, data) in graph.values() {
        let (inst, _) = data.def;
        let of = match &layouts.lies[value.index()] {
            Lie::View(..) => {
                let inst = graph.inst(inst);
                let operand = inst.operands[0];
                let (owner, layout) = &out.of[operand.index()];
                let layout = layout.view(&inst.op, &graph.value(operand).ty, &data.ty)?;
                (*owner, layout)
            }
            Lie::Own => {
                let over = alone[inst.index()]
                    .and_then(|at| overwritten(graph, layouts, &out, &readers, value, at));
                match over {
                    Some(operand) => out.of[operand.index()].clone(),
                    None => (value, Layout::dense(&data.ty)?),
                }
            }
        };
        out.of.push(of);
    }
    Some(out)
}

/// The operand over which a result is written: one that ends with the instruction, at that position.
fn overwritten(
    graph: &Graph,
    layouts: &Layouts,
    shared: &Shared,
    readers: &[Option<usize>],
    result: Value,
    position: usize,
) -> Option<Value> {
    let data = graph.inst(graph.value(result).def.0);
    let types: Vec<_> = data.operands.iter().map(|v| &graph.value(*v).ty).collect();
    let to = &graph.value(result).ty;
    let may = |(i, &operand): (usize, &Value)| -> Option<Value> {
        let of = layouts.base(operand);
        if readers[of.index()] != Some(position) || !data.op.in_place(i, &types, to) {
            return None;
        }
        let (owner, _) = &shared.of[operand.index()];
        let lasting = |v: Value| graph.def_op(v).is_stored();
        let own = layouts.lies[operand.index()] == Lie::Own;
        let update = data.op.is_update() && i == 0;
        if !update && (!own || lasting(of) || lasting(*owner)) {
            return None;
        }
        // Nothing else that it reads may lie there.
        let others = data.operands.iter().enumerate().filter(|(j, _)| *j != i);
        let meets = |(j, v): (usize, &Value)| {
            let there = shared.of[v.index()].0 == *owner;
            there && !(*v == operand && data.op.in_place(j, &types, to))
        };
        (!others.into_iter().any(meets)).then_some(operand)
    };
    data.operands.iter().enumerate().find_map(may)
}

/// Adds a launch for each state whose new content lies elsewhere.
fn stores(graph: &Graph, shared: &Shared, launches: &mut Vec<LaunchData>) {
    for (n, output) in graph.outputs.iter().enumerate() {
        let Output::State { state, value } = output else {
            continue;
        };
        if shared.of[value.index()] != shared.of[state.index()] {
            launches.push(LaunchData {
                kernel: "store".to_owned(),
                places: vec![graph.value(*state).place],
                work: Work::Store(n),
            });
        }
    }
}

/// Addresses for the work of a batch, for each shape.
fn work(
    graph: &Graph,
    shared: &Shared,
    lifetimes: &Lifetimes,
    shapes: &[BatchShape],
    target: &dyn Target,
    memory: &mut Memory,
) -> Option<()> {
    // What begins at each position, and what ends there.
    let mut begins: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    let mut ends: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    for (value, _) in graph.values() {
        let (owner, _) = &shared.of[value.index()];
        if *owner != value || graph.def_op(value).is_stored() {
            continue;
        }
        let (start, end) = lifetimes.of[value.index()];
        begins.entry(start).or_default().push(value);
        ends.entry(end).or_default().push(value);
        let arena = memory.arena(graph.value(value).place, ArenaKind::Work);
        let buffer = memory.push(BufferData {
            arena,
            format: StoredFormat::File,
            extents: Vec::with_capacity(shapes.len()),
        });
        memory.settle(value, buffer, Layout::dense(&graph.value(value).ty)?);
    }
    let positions: BTreeSet<usize> = begins.keys().chain(ends.keys()).copied().collect();
    for shape in shapes {
        let mut free: BTreeMap<Arena, Free> = BTreeMap::new();
        let mut staged: BTreeMap<Place, u64> = BTreeMap::new();
        for &position in &positions {
            for value in begins.get(&position).into_iter().flatten() {
                let ty = &graph.value(*value).ty;
                let bytes = Layout::dense(ty)?.reach(ty, &shape.most)?;
                let buffer = memory.homes[value.index()].as_ref()?.buffer;
                let data = &mut memory.buffers[buffer.index()];
                let free = free.entry(data.arena).or_default();
                let offset = free.take(bytes, target.alignment())?;
                data.extents.push(Extent { offset, bytes });
                if graph.def_op(*value).is_transfer() {
                    let place = graph.value(*value).place;
                    let now = staged.entry(place).or_default();
                    *now = now.saturating_add(bytes);
                    let most = memory.staging.entry(place).or_default();
                    *most = (*most).max(*now);
                }
            }
            for value in ends.get(&position).into_iter().flatten() {
                let buffer = memory.homes[value.index()].as_ref()?.buffer;
                let data = &memory.buffers[buffer.index()];
                if let (Some(free), Some(extent)) = (free.get_mut(&data.arena), data.extents.last())
                {
                    free.give(*extent, target.alignment());
                    let staged = staged.get_mut(&graph.value(*value).place);
                    if let Some(now) = staged.filter(|_| graph.def_op(*value).is_transfer()) {
                        *now = now.saturating_sub(extent.bytes);
                    }
                }
            }
        }
        for (arena, free) in free {
            let data = &mut memory.arenas[arena.index()];
            data.bytes = data.bytes.max(free.peak());
        }
    }
    Some(())
}
