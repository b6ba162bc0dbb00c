//! Divides KV caches by cells.
//!
//! A cache that all devices of a group would store is dealt to them in blocks of [`CELL_BLOCK`] cells. Attention then
//! runs once per part of the cells, and `merge_attn` joins the results by their log-sum-exp:
//!
//! ```text
//! o = flash_attn q, k, v, mask
//!
//! p = flash_attn repeat(q), parts(k), parts(v), parts(mask) {lse = 1}     axis 3 counts the parts
//! o = merge_attn p
//! ```
//!
//! Copies within the group end the factors of heads around this attention: it needs the queries of all heads, but
//! projections stay split by heads. The parts are an ordinary factor, which the planner splits with one part per device.

mod caches;
mod parts;

use std::collections::BTreeMap;

use tpc_ir::op::{FlashAttn, MergeAttn, Repeat};
use tpc_ir::{CELL_BLOCK, CellParts, Group, Inst, InstData, Op, Place, Value};

use crate::factors::ExactOps;
use crate::place::{LayerPlacement, PlacedGraph};
use crate::rebuild::Rebuild;
use crate::users::Users;
use caches::{Caches, View};

/// The axis of attention that counts parts.
const PARTS: usize = 3;

/// Returns the unit of cells of graphs whose caches are divided among the devices of these stages: a block for each
/// device of every stage. Returns 1 if no stage has several devices, or if the unit is not a sensible number of cells.
pub fn cell_unit(placement: &LayerPlacement) -> u64 {
    const MOST: u64 = 1 << 20;
    let devices = placement.stages.iter().map(|s| s.len() as u64);
    let shared: Vec<u64> = devices.filter(|&n| n > 1).collect();
    let blocks = shared.iter().fold(1_u64, |all, &n| {
        all.saturating_mul(n / crate::gcd::gcd(all, n))
    });
    match blocks.saturating_mul(CELL_BLOCK as u64) {
        unit if blocks > 1 && unit <= MOST => unit,
        _ => 1,
    }
}

/// A placed graph with caches divided by cells.
pub(crate) struct Divided {
    pub(crate) placed: PlacedGraph,
    /// The copies that end factors.
    pub(crate) exact: ExactOps,
}

/// Divides the caches of a placed graph, which counts cells in [units](cell_unit). Caches with other readers than
/// attention stay as they are.
pub(crate) fn divide(placed: &PlacedGraph) -> Divided {
    let from = &placed.graph;
    let users = Users::of_graph(from);
    let caches = Caches::of(from, &users);
    let live = caches.live(from);
    let mut builder = Builder {
        users: &users,
        caches: &caches,
        new: Rebuild::of(from),
        bases: BTreeMap::new(),
        masks: BTreeMap::new(),
    };
    for (inst, data) in from.insts() {
        if live[inst.index()] {
            builder.inst(inst, data);
        }
    }
    let (placed, exact) = builder.new.finish(&placed.mirrored);
    Divided { placed, exact }
}

struct Builder<'a> {
    users: &'a Users,
    caches: &'a Caches,
    new: Rebuild<'a>,
    /// The visible cells of each cache, divided into parts.
    bases: BTreeMap<Value, Value>,
    /// Each mask, divided into parts.
    masks: BTreeMap<Value, Value>,
}

impl Builder<'_> {
    fn devices(&self, v: Value) -> u64 {
        match self.new.from.value(v).place {
            Place::Group(g) => self.group_size(g),
            Place::Host | Place::Device(_) => 1,
        }
    }

    fn group_size(&self, group: Group) -> u64 {
        self.new.from.group(group).devices.len() as u64
    }

    fn inst(&mut self, inst: Inst, data: &InstData) {
        if let Some(attention) = self.caches.attention(inst) {
            let result = self.attend(data, attention);
            self.new.replace(data.results[0], result);
            return;
        }
        let mut operands = self.new.operands(data);
        let mut op = data.op.clone();
        let result = data.results[0];
        if self.caches.is_divided(result) {
            let cells = Some(CellParts::all(self.devices(result)));
            match &mut op {
                Op::State(state) => state.cells = cells,
                Op::SetRows(update) => {
                    update.cells = cells;
                    // Every device needs the rows of all heads.
                    operands[1] = self.boundary(operands[1], &[1], data.layer);
                }
                _ => {}
            }
        }
        self.new.push(data, op, operands);
    }

    /// Adds attention over parts of the cells. Returns the joined result.
    fn attend(&mut self, data: &InstData, [k, v]: &[View; 2]) -> Value {
        let (result, layer) = (data.results[0], data.layer);
        let parts = self.devices(result);
        let [k, v] = [k, v].map(|view| self.divided(view, parts, layer));
        let mask = self.mask(data.operands[3], parts, layer);
        let q = self.new.value(data.operands[0]);
        let q = self.boundary(q, &[2], layer);
        let mut dims = self.new.out.value(q).ty.dims.clone();
        dims[PARTS] = parts.into();
        let q = self.push(Repeat { dims }, vec![q], layer);
        let op = match &data.op {
            Op::FlashAttn(op) => op.clone(),
            _ => unreachable!("invariant: only attention is divided"),
        };
        let attention = self.push(FlashAttn { lse: true, ..op }, vec![q, k, v, mask], layer);
        // From parts of the cells with all heads to heads with all parts.
        let exchanged = self.boundary(attention, &[1, PARTS], layer);
        let sinks = data.operands.get(4).map(|&s| self.new.value(s));
        let operands = std::iter::once(exchanged).chain(sinks).collect();
        let name = &self.new.from.value(result).name;
        let merged = self.push(MergeAttn, operands, layer);
        self.new.out.value_mut(merged).name.clone_from(name);
        merged
    }

    /// Returns a view of a cache's visible cells, divided into parts.
    fn divided(&mut self, view: &View, parts: u64, layer: Option<u32>) -> Value {
        let mut value = match self.bases.get(&view.base) {
            Some(&known) => known,
            None => {
                let base = self.new.value(view.base);
                let made = parts::of_cache(self, base, parts, layer);
                self.bases.insert(view.base, made);
                made
            }
        };
        for op in &view.ops {
            value = self.push(op.clone(), vec![value], layer);
        }
        value
    }

    /// Returns a mask, divided into parts. A mask that the devices compute is whole on each of them until then.
    fn mask(&mut self, mask: Value, parts: u64, layer: Option<u32>) -> Value {
        if let Some(&known) = self.masks.get(&mask) {
            return known;
        }
        let arrives = matches!(self.new.from.def_op(mask), Op::Copy(_));
        let only_here = (self.users.of(mask).iter()).all(|&u| self.caches.attention(u).is_some());
        // Masks from outside the layers are shared by all layers.
        let layer = layer.filter(|_| {
            let of = self.new.from.value(mask).def.0;
            self.new.from.inst(of).layer.is_some()
        });
        let mut new = self.new.value(mask);
        if !(arrives && only_here) {
            new = self.boundary(new, &[0], layer);
        }
        let made = parts::of_mask(self, new, parts, layer);
        self.masks.insert(mask, made);
        made
    }

    fn push(&mut self, op: impl Into<Op>, operands: Vec<Value>, layer: Option<u32>) -> Value {
        let first = self.new.out.value(operands[0]);
        let (place, name) = (first.place, first.name.clone());
        let made = self.new.out.push_with_inference(op, operands, place, layer);
        let made = made.expect("invariant: parts of attention have the operands' types");
        self.new.out.value_mut(made).name = name;
        made
    }

    /// Copies `v` at its place. The factors of `axes` end at the copy; axes of one index are skipped.
    fn boundary(&mut self, v: Value, axes: &[usize], layer: Option<u32>) -> Value {
        let ty = &self.new.out.value(v).ty;
        let axes: Vec<usize> = (axes.iter().copied())
            .filter(|&a| !ty.dims[a].is_one())
            .collect();
        if axes.is_empty() {
            return v;
        }
        self.new.boundary(v, axes, layer)
    }
}
