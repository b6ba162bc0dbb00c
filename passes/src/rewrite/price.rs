//! Prices terms by the planner's cost model, in µs per generated token, including weighted prompts.

use tpc_ir::op::{OpCategory, Slot};
use tpc_ir::{Bindings, Op, Place, TensorType};

use super::analysis::{ShardedType, Table};
use crate::machine::{
    ExpertLoad, Participants, Parts, Topology, Workload, copy_us, roofline_us, work,
};

/// The machine and the batches for prices.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// The batches.
    pub workload: &'a Workload,
}

pub(crate) struct Prices<'a> {
    machine: Machine<'a>,
    table: &'a Table,
    expert_load: ExpertLoad,
}

pub(crate) struct AppliedOp<'a> {
    pub(crate) op: &'a Op,
    pub(crate) operands: Vec<&'a ShardedType>,
    pub(crate) results: &'a [ShardedType],
    /// True if an operand is an input of the batch.
    pub(crate) of_input: bool,
}

impl<'a> Prices<'a> {
    pub(crate) fn new(machine: Machine<'a>, table: &'a Table) -> Prices<'a> {
        Prices {
            machine,
            table,
            expert_load: ExpertLoad::default(),
        }
    }

    pub(crate) fn us(&self, applied: &AppliedOp<'_>) -> f64 {
        let Workload { decode, prefill } = self.machine.workload;
        let prompt = Workload::PROMPT_WEIGHT / self.machine.workload.ubatch();
        self.batch_us(applied, decode) + prompt * self.batch_us(applied, prefill)
    }

    fn batch_us(&self, applied: &AppliedOp<'_>, batch: &Bindings) -> f64 {
        let topology = self.machine.topology;
        let place = applied.results[0].place;
        let devices = |place| match place {
            Place::Host => Vec::new(),
            Place::Device(d) => vec![d.index()],
            Place::Group(g) => {
                let group = &self.table.groups[g.index()];
                group.devices.iter().map(|d| d.index()).collect()
            }
        };
        match applied.op.category() {
            OpCategory::Collective(collective) => {
                let participants = Participants::of(topology, &devices(place));
                let bytes = applied.operands[0].ty.bytes(batch).unwrap_or(0);
                participants.roofline_us(collective, bytes as f64)
            }
            OpCategory::Copy => {
                let largest = |o: &ShardedType| {
                    (0..self.table.ranks(o.place))
                        .filter_map(|rank| {
                            let local = o.sharding.local_type(&o.ty, &self.table.classes, rank)?;
                            local.bytes(batch)
                        })
                        .max()
                };
                let (from, to) = (applied.operands[0], &applied.results[0]);
                let parts = [largest(from), largest(to)];
                let ends = [devices(from.place), devices(to.place)];
                copy_us(topology, [&ends[0], &ends[1]], parts, applied.of_input)
            }
            OpCategory::Stored
            | OpCategory::Input
            | OpCategory::Constant
            | OpCategory::Layout
            | OpCategory::Selection
            | OpCategory::Repetition
            | OpCategory::Assembly
            | OpCategory::Update
            | OpCategory::Product
            | OpCategory::Heavy
            | OpCategory::Light => (0..self.table.ranks(place))
                .map(|rank| {
                    let profile = match place {
                        Place::Host => &topology.host,
                        Place::Device(_) | Place::Group(_) => topology.device(devices(place)[rank]),
                    };
                    let parts = NodeParts {
                        table: self.table,
                        applied,
                        rank,
                        batch,
                    };
                    roofline_us(work(applied.op, &parts, batch, &self.expert_load), profile)
                })
                .fold(0.0, f64::max),
        }
    }
}

struct NodeParts<'p> {
    table: &'p Table,
    applied: &'p AppliedOp<'p>,
    rank: usize,
    batch: &'p Bindings,
}

impl NodeParts<'_> {
    fn out(&self, slot: Slot) -> &ShardedType {
        match slot {
            Slot::Operand(i) => self.applied.operands[i],
            Slot::Result(i) => &self.applied.results[i],
        }
    }

    fn count(&self, ty: &TensorType) -> f64 {
        let elements = ty.elements().and_then(|d| d.eval(self.batch));
        elements.unwrap_or(0) as f64
    }
}

impl Parts for NodeParts<'_> {
    fn ty(&self, slot: Slot) -> &TensorType {
        &self.out(slot).ty
    }

    fn elements(&self, slot: Slot) -> f64 {
        let out = self.out(slot);
        let classes = &self.table.classes;
        let local = out.sharding.local_type(&out.ty, classes, self.rank);
        local.map_or(0.0, |t| self.count(&t))
    }

    fn whole(&self, slot: Slot) -> f64 {
        self.count(self.ty(slot))
    }

    fn stored_bytes(&self, operand: usize) -> f64 {
        let slot = Slot::Operand(operand);
        self.elements(slot) * self.ty(slot).dtype.element_bytes()
    }

    fn experts(&self) -> Option<(Vec<u64>, u64)> {
        let weight = self.out(Slot::Operand(0));
        let tree = weight.sharding.axes[2].as_ref()?;
        let lens: Vec<u64> = (0..self.table.ranks(weight.place))
            .map(|rank| {
                let n = tree.local_size(&self.table.classes, rank);
                n.and_then(|n| n.as_const()).unwrap_or(0)
            })
            .collect();
        let own = lens.get(self.rank).copied().unwrap_or(0);
        Some((lens, own))
    }
}
