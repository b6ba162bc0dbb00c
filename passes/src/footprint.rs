//! Memory bytes per place, and transferred bytes.

use std::collections::BTreeMap;

use tpc_ir::op::{Collective, OpCategory};
use tpc_ir::program::{ArenaKind, BatchShape, Target};
use tpc_ir::{Bindings, Inst, InstData, Op, Place, Verified, stage};

use crate::assemble::{in_units, memory};
use crate::buffers::Memory;

/// Bytes of memory at one place. [`Self::total`] is the size of the place's arenas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Weights, packed as in the file.
    pub weights: u64,
    /// KV caches: states with an axis of cells.
    pub kv: u64,
    /// Other states.
    pub state: u64,
    /// Extra bytes of the target's formats and of gaps between buffers. Negative if the formats save memory.
    pub layout: i64,
    /// The work arena: inputs, intermediate values and outputs.
    pub compute: u64,
    /// Peak bytes of copied and reduced values.
    pub staging: u64,
}

impl Footprint {
    /// Returns the sum.
    pub const fn total(&self) -> u64 {
        self.weights
            .saturating_add(self.kv)
            .saturating_add(self.state)
            .saturating_add(self.compute)
            .saturating_add_signed(self.layout)
    }
}

/// Returns the footprint of every place for the batch shapes, as in [`assemble`](crate::assemble())'s program. On
/// overflow, every place has 2^64 - 1 bytes.
pub fn footprints(
    programs: &Verified<stage::Programs>,
    shapes: &[BatchShape],
    target: &dyn Target,
) -> BTreeMap<Place, Footprint> {
    let shapes = &in_units(programs, shapes);
    let memory = memory(programs, shapes, target).ok();
    memory
        .and_then(|memory| arenas(programs, shapes, &memory))
        .unwrap_or_else(|| {
            let all = Footprint {
                compute: u64::MAX,
                ..Footprint::default()
            };
            programs.values().map(|(_, v)| (v.place, all)).collect()
        })
}

fn arenas(
    programs: &Verified<stage::Programs>,
    shapes: &[BatchShape],
    memory: &Memory,
) -> Option<BTreeMap<Place, Footprint>> {
    let mut out: BTreeMap<Place, Footprint> = BTreeMap::new();
    for arena in &memory.arenas {
        let place = out.entry(arena.place).or_default();
        match arena.kind {
            ArenaKind::Weights | ArenaKind::States => {
                place.layout = place.layout.checked_add_unsigned(arena.bytes)?;
            }
            ArenaKind::Work => place.compute = arena.bytes,
        }
        place.staging = memory.staging.get(&arena.place).copied().unwrap_or(0);
    }
    let batch = shapes.first()?.most;
    // A weight that is read under several names has one buffer.
    let mut seen = vec![false; memory.buffers.len()];
    for (value, data) in programs.values() {
        let op = programs.def_op(value);
        let Some(buffer) = memory.of[value.index()].filter(|_| op.is_stored()) else {
            continue;
        };
        if std::mem::replace(&mut seen[buffer.index()], true) {
            continue;
        }
        let place = out.entry(data.place).or_default();
        let bytes = data.ty.bytes(&batch)?;
        let sum = match op {
            Op::Weight(_) => &mut place.weights,
            _ if data.ty.counts_cells() => &mut place.kv,
            _ => &mut place.state,
        };
        *sum = sum.checked_add(bytes)?;
        place.layout = place.layout.checked_sub_unsigned(bytes)?;
    }
    Some(out)
}

/// The transfers of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// All-reduces.
    pub all_reduce: u64,
    /// All-gathers.
    pub all_gather: u64,
    /// Reduce-scatters.
    pub reduce_scatter: u64,
    /// All-to-alls.
    pub all_to_all: u64,
    /// Copies between the host and devices, one per value and device.
    pub copies: u64,
    /// Bytes transferred: one participant's operand per collective, and each copied operand.
    pub bytes: u64,
}

/// Returns the transfers of one batch.
pub fn traffic(programs: &Verified<stage::Programs>, batch: &Bindings) -> Traffic {
    traffic_of(programs, batch, |_, _| true)
}

/// Returns the transfers of one batch among the given instructions.
pub fn traffic_of(
    programs: &Verified<stage::Programs>,
    batch: &Bindings,
    is_counted: impl Fn(Inst, &InstData) -> bool,
) -> Traffic {
    let batch = batch.in_units(programs.cell_unit.0);
    let mut out = Traffic::default();
    for (_, inst) in programs.insts().filter(|(i, d)| is_counted(*i, d)) {
        let counter = match inst.op.category() {
            OpCategory::Collective(collective) => match collective {
                Collective::AllReduce => &mut out.all_reduce,
                Collective::AllGather => &mut out.all_gather,
                Collective::ReduceScatter => &mut out.reduce_scatter,
                Collective::AllToAll => &mut out.all_to_all,
            },
            OpCategory::Copy => &mut out.copies,
            _ => continue,
        };
        *counter += 1;
        let moved = &programs.value(inst.operands[0]).ty;
        let bytes = moved.bytes(&batch).unwrap_or(u64::MAX);
        out.bytes = out.bytes.saturating_add(bytes);
    }
    out
}
