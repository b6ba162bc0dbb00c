//! Exact bytes of the programs: stored and live per place, and moved between places.

use std::collections::BTreeMap;

use tpc_ir::op::{Collective, OpCategory};
use tpc_ir::{Bindings, Inst, InstData, Op, Place, Value, Verified, stage};

/// Bytes at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Weights, packed as in the file.
    pub weights: u64,
    /// KV caches: states of which an axis counts cells.
    pub kv: u64,
    /// Other states.
    pub state: u64,
    /// The peak of intermediate values, each freed after its last use.
    pub compute: u64,
    /// The peak of those intermediate values that copies and collectives bring.
    pub staging: u64,
}

impl Footprint {
    /// Bytes of all kinds.
    pub const fn total(&self) -> u64 {
        self.weights
            .saturating_add(self.kv)
            .saturating_add(self.state)
            .saturating_add(self.compute)
    }
}

/// The lifetimes of the memory of values. A view or an update in place shares the memory of its operand, which lives as
/// long as any of them.
struct Lifetimes {
    /// Per value, the value whose memory it lies in.
    base: Vec<Value>,
    /// Per value that others lie in, the position of the last instruction that uses one of them; beyond all for
    /// outputs.
    last_use: Vec<usize>,
}

impl Lifetimes {
    fn of_programs(programs: &Verified<stage::Programs>) -> Lifetimes {
        let mut base: Vec<Value> = programs.values().map(|(v, _)| v).collect();
        let mut last_use = vec![0_usize; base.len()];
        for (i, (_, inst)) in programs.insts().enumerate() {
            if let Some(operand) = inst.op.aliases() {
                base[inst.results[0].index()] = base[inst.operands[operand].index()];
            }
            for v in inst.operands.iter().chain(&inst.results) {
                last_use[base[v.index()].index()] = i;
            }
        }
        for o in &programs.outputs {
            last_use[base[o.value().index()].index()] = usize::MAX;
        }
        Lifetimes { base, last_use }
    }
}

/// The footprint of every place of the programs, for the largest batch.
pub fn footprints(
    programs: &Verified<stage::Programs>,
    batch: &Bindings,
) -> BTreeMap<Place, Footprint> {
    let mut out: BTreeMap<Place, Footprint> = BTreeMap::new();
    let Lifetimes { base, last_use } = Lifetimes::of_programs(programs);
    // A size beyond 64 bits counts as 2^64 - 1 bytes, alone or in sum.
    let bytes = |v: Value| programs.value(v).ty.bytes(batch).unwrap_or(u64::MAX);
    let grow = |sum: &mut u64, v: Value| *sum = sum.saturating_add(bytes(v));
    let mut live: BTreeMap<Place, u64> = BTreeMap::new();
    let mut staged: BTreeMap<Place, u64> = BTreeMap::new();
    for (i, (_, inst)) in programs.insts().enumerate() {
        for &v in &inst.results {
            let value = programs.value(v);
            let place = out.entry(value.place).or_default();
            match &inst.op {
                Op::Weight(_) => grow(&mut place.weights, v),
                Op::State(_) if value.ty.counts_cells() => {
                    grow(&mut place.kv, v);
                }
                Op::State(_) => grow(&mut place.state, v),
                _ if base[v.index()] == v => {
                    let live = live.entry(value.place).or_default();
                    grow(live, v);
                    place.compute = place.compute.max(*live);
                    if inst.op.is_transfer() {
                        let staged = staged.entry(value.place).or_default();
                        grow(staged, v);
                        place.staging = place.staging.max(*staged);
                    }
                }
                _ => {}
            }
        }
        let mut done: Vec<Value> = inst
            .operands
            .iter()
            .chain(&inst.results)
            .map(|v| base[v.index()])
            .collect();
        done.sort_unstable();
        done.dedup();
        for v in done.into_iter().filter(|v| last_use[v.index()] == i) {
            let place = programs.value(v).place;
            let op = programs.def_op(v);
            if op.is_stored() {
                continue;
            }
            if let Some(l) = live.get_mut(&place) {
                *l = l.saturating_sub(bytes(v));
            }
            if let Some(s) = staged.get_mut(&place).filter(|_| op.is_transfer()) {
                *s = s.saturating_sub(bytes(v));
            }
        }
    }
    out
}

/// The number and the bytes of the transfers of one batch.
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
    /// Bytes that enter transfers: each collective counts one participant's operand, each copy its operand.
    pub bytes: u64,
}

/// The transfers of one batch of the programs.
pub fn traffic(programs: &Verified<stage::Programs>, batch: &Bindings) -> Traffic {
    traffic_of(programs, batch, |_, _| true)
}

/// The transfers of one batch among some instructions of the programs.
pub fn traffic_of(
    programs: &Verified<stage::Programs>,
    batch: &Bindings,
    is_counted: impl Fn(Inst, &InstData) -> bool,
) -> Traffic {
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
        let bytes = moved.bytes(batch).unwrap_or(u64::MAX);
        out.bytes = out.bytes.saturating_add(bytes);
    }
    out
}
