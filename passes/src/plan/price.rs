//! The price of an assignment in a layer group: the busiest device's work and memory, and the collectives.

use tpc_ir::factor::Var;
use tpc_ir::op::{Collective, Slot, Work};
use tpc_ir::{
    Bindings, Class, Graph, Group, Inst, InstData, Op, Place, TensorType, Unreduced, Value,
};

use super::PlanRequest;
use super::layer_group::LayerGroup;
use super::options::SplitOption;
use super::timeline::positions;
use crate::factors::{GraphFacts, Selection, Summand, propagate};
use crate::machine::{
    Crossing, DeviceProfile, ExpertLoad, Kernel, Participants, Parts, Topology, Workload, kernel,
    roofline_us, work,
};

/// An assignment to price; an option's position is its class.
struct Trial<'a>(&'a [&'a SplitOption]);

impl Selection for Trial<'_> {
    fn class_of(&self, _: Group, leaf: Var) -> Option<Class> {
        self.0
            .iter()
            .position(|o| o.leaves.contains(&leaf))
            .map(Class::new)
    }
}

/// Prices assignments for the layer groups of one stage.
pub struct Pricer<'a> {
    /// The placed graph and its analyses.
    pub facts: GraphFacts<'a>,
    /// The machine.
    pub topology: &'a Topology,
    /// The batches.
    pub workload: &'a Workload,
    /// The devices of the stage, by position.
    pub devices: &'a [usize],
    /// The devices' weights.
    pub device_weights: &'a [f64],
    /// Price of a stored byte, in reads of a byte.
    memory_price: f64,
    /// The maximum price of a collective for splits within layers, in µs. Without this maximum, tensor splits that the
    /// user requests would be rejected on small models.
    collective_cap: f64,
    expert_load: ExpertLoad,
}

/// The price of an assignment for one layer group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// The objective in µs per decoded token, with capped collectives.
    pub objective: f64,
    /// The price in µs per decoded token, with uncapped collectives.
    pub uncapped: f64,
}

impl<'a> Pricer<'a> {
    /// Returns the pricer for a stage with these devices, by position, and device weights.
    pub fn new(
        facts: GraphFacts<'a>,
        request: &'a PlanRequest,
        devices: &'a [usize],
        device_weights: &'a [f64],
    ) -> Pricer<'a> {
        let first = request.topology.device(devices[0]);
        Pricer {
            facts,
            topology: &request.topology,
            workload: &request.workload,
            devices,
            device_weights,
            memory_price: request.memory_price,
            collective_cap: collective_cap(facts.graph, first),
            expert_load: ExpertLoad::default(),
        }
    }

    fn size(&self, leaf: Var, b: &Bindings) -> f64 {
        self.facts.factors.space.size(leaf).eval(b).unwrap_or(0) as f64
    }

    /// Returns the number of a summand's elements on device `rank`, rounded to whole blocks of `granule` elements.
    fn local(
        &self,
        summand: &Summand,
        assignment: &[&SplitOption],
        rank: usize,
        b: &Bindings,
        granule: u64,
    ) -> f64 {
        let mut n = 1.0;
        for (axis, leaves) in summand.axes.iter().enumerate() {
            let mut on_axis = 1.0;
            let mut split = false;
            for &l in leaves {
                let Some(o) = assignment.iter().find(|o| o.leaves.contains(&l)) else {
                    on_axis *= self.size(l, b);
                    continue;
                };
                split = true;
                let r = o.ranges[rank];
                if o.leaves[0] == l {
                    let whole_chain = o.leaves.iter().all(|x| leaves.contains(x));
                    on_axis *= if whole_chain {
                        r.len
                    } else {
                        r.project(self.minor(o)).len
                    } as f64;
                }
            }
            if split && axis == 0 && granule > 1 && on_axis > 0.0 {
                on_axis = ((on_axis / granule as f64).ceil() + 0.5) * granule as f64;
            }
            n *= on_axis;
        }
        n
    }

    fn elements(&self, v: Value, assignment: &[&SplitOption], rank: usize, b: &Bindings) -> f64 {
        self.facts.analysis.summands[v.index()]
            .iter()
            .map(|t| self.local(t, assignment, rank, b, 1))
            .sum()
    }

    fn is_split(&self, v: Value, assignment: &[&SplitOption]) -> bool {
        let split = |l: Var| assignment.iter().any(|o| o.leaves.contains(&l));
        let summands = &self.facts.analysis.summands[v.index()];
        summands.iter().any(|t| t.leaves().any(split))
    }

    pub(super) fn stored_bytes(
        &self,
        v: Value,
        assignment: &[&SplitOption],
        rank: usize,
        b: &Bindings,
    ) -> f64 {
        let dtype = self.facts.graph.value(v).ty.dtype;
        let summands = &self.facts.analysis.summands[v.index()];
        let shared = |t: &Summand| {
            t.axes[0].iter().any(|l| {
                assignment
                    .iter()
                    .any(|o| o.shares_blocks && o.leaves.contains(l))
            })
        };
        let n: f64 = summands
            .iter()
            .map(|t| {
                self.local(
                    t,
                    assignment,
                    rank,
                    b,
                    if shared(t) {
                        self.facts.analysis.granules[v.index()]
                    } else {
                        1
                    },
                )
            })
            .sum();
        n * dtype.element_bytes()
    }

    fn work(&self, inst: Inst, assignment: &[&SplitOption], rank: usize, b: &Bindings) -> Work {
        let data = self.facts.graph.inst(inst);
        if data.results.is_empty() {
            return Work::default();
        }
        let parts = PricedInst {
            pricer: self,
            data,
            assignment,
            rank,
            batch: b,
        };
        work(&data.op, &parts, b, &self.expert_load)
    }

    pub(super) fn kernel(
        &self,
        inst: Inst,
        assignment: &[&SplitOption],
        rank: usize,
        batch: &Bindings,
    ) -> Option<Kernel> {
        let data = self.facts.graph.inst(inst);
        if data.results.is_empty() {
            return None;
        }
        let parts = PricedInst {
            pricer: self,
            data,
            assignment,
            rank,
            batch,
        };
        kernel(&data.op, &parts, batch, &self.expert_load)
    }

    fn graph_rows(&self, v: Value, b: &Bindings) -> f64 {
        (self.facts.graph.value(v).ty.dims[0].eval(b).unwrap_or(1) as f64).max(1.0)
    }

    fn profile(&self, rank: usize) -> &DeviceProfile {
        self.topology.device(self.devices[rank])
    }

    pub(super) fn time_us(
        &self,
        inst: Inst,
        assignment: &[&SplitOption],
        rank: usize,
        batch: &Bindings,
    ) -> f64 {
        if is_boundary(self.facts.graph, inst) {
            return 0.0;
        }
        if let Op::Copy(_) = self.facts.graph.inst(inst).op {
            return self.copy_us(inst, assignment, rank, batch);
        }
        roofline_us(self.work(inst, assignment, rank, batch), self.profile(rank))
    }

    /// Returns the time of device `rank` to fetch or send its part of a copy, in µs. Only the first device sends a
    /// whole value.
    fn copy_us(
        &self,
        inst: Inst,
        assignment: &[&SplitOption],
        rank: usize,
        batch: &Bindings,
    ) -> f64 {
        let data = self.facts.graph.inst(inst);
        let (from, to) = (data.operands[0], data.results[0]);
        let arrives = matches!(self.facts.graph.value(to).place, Place::Group(_));
        let here = if arrives { to } else { from };
        let part = self.elements(here, assignment, rank, batch);
        let whole = self.elements(here, &[], rank, batch);
        if !arrives && rank > 0 && part >= whole {
            return 0.0;
        }
        let graph = self.facts.graph;
        let other = graph.value(if arrives { from } else { to }).place;
        let local = match other {
            Place::Host => self.topology.host_link,
            Place::Device(_) | Place::Group(_) => self.topology.link,
        };
        let bytes = part * graph.value(here).ty.dtype.element_bytes();
        let others = positions(graph, other);
        let ends: [&[usize]; 2] = match arrives {
            true => [&others, self.devices],
            false => [self.devices, &others],
        };
        let (link, bytes) = match Crossing::of(self.topology, ends) {
            Some(crossing) => (crossing.link, bytes * crossing.sharers() as f64),
            None => (local, bytes),
        };
        link.latency_us + bytes / link.bandwidth * 1e6
    }

    /// Returns the weighted µs of both batches on device `rank`, plus the price of memory.
    pub(super) fn inst_us(&self, inst: Inst, assignment: &[&SplitOption], rank: usize) -> f64 {
        let (dec, pre) = (&self.workload.decode, &self.workload.prefill);
        let prompt = Workload::PROMPT_WEIGHT / self.workload.ubatch();
        let mut us = self.time_us(inst, assignment, rank, dec)
            + prompt * self.time_us(inst, assignment, rank, pre);
        if self.facts.graph.inst(inst).op.is_stored() {
            let v = self.facts.graph.inst(inst).results[0];
            let bytes = self.stored_bytes(v, assignment, rank, dec);
            us += self.memory_price * bytes / self.profile(rank).bandwidth * 1e6;
        }
        us
    }

    /// Returns, per rank, the first rank with an equally fast device and the same work.
    pub(super) fn first_alike(&self, options: &[&SplitOption]) -> Vec<usize> {
        let minors: Vec<u64> = options.iter().map(|o| self.minor(o)).collect();
        let alike = |a: usize, b: usize| {
            let speed = |rank| (self.profile(rank).bandwidth, self.profile(rank).flops);
            let part = |o: &SplitOption, minor: u64, rank: usize| {
                (o.ranges[rank].len, o.ranges[rank].start % minor)
            };
            // Rank 0 is never alike: only rank 0 sends values that all devices hold.
            a > 0
                && speed(a) == speed(b)
                && (options.iter().zip(&minors)).all(|(o, &m)| part(o, m, a) == part(o, m, b))
        };
        let ranks = 0..self.device_weights.len();
        let first = |rank: usize| (0..rank).find(|&r| alike(r, rank));
        ranks.map(|rank| first(rank).unwrap_or(rank)).collect()
    }

    /// Returns the number of minor indices per major index of a chain; 1 for a single leaf.
    fn minor(&self, option: &SplitOption) -> u64 {
        let sizes = option.leaves[1..].iter();
        let sizes = sizes.map(|&x| self.facts.factors.space.size(x).as_const().unwrap_or(1));
        sizes.product::<u64>().max(1)
    }

    /// Returns the price of an assignment in a layer group; `None` if the assignment is not possible.
    pub fn price(&self, group: &LayerGroup, assignment: &[&SplitOption]) -> Option<Price> {
        let flow = propagate(self.facts, &group.insts, &Trial(assignment)).ok()?;
        let (dec, pre) = (&self.workload.decode, &self.workload.prefill);
        let mut busiest = 0.0_f64;
        let prompt = Workload::PROMPT_WEIGHT / self.workload.ubatch();
        for (rank, first) in self.first_alike(assignment).into_iter().enumerate() {
            if first == rank {
                let each = group.insts.iter();
                let each = each.map(|&i| self.inst_us(i, assignment, rank));
                busiest = busiest.max(each.sum());
            }
        }
        let participants = Participants::of(self.topology, self.devices);
        let mut collective = (0.0, 0.0);
        // A reduction carries the whole value; statistics of a norm have `stats` numbers per row.
        let mut add = |kind: Collective, v: Value, stats: Option<u64>| {
            let mut us = 0.0;
            for (b, weight) in [(dec, 1.0), (pre, prompt)] {
                let part = stats.map_or(1.0, |s| s as f64 / self.graph_rows(v, b));
                let bytes = 4.0 * self.elements(v, &[], 0, b) * part;
                us += weight * participants.roofline_us(kind, bytes);
            }
            collective.0 += us.min(self.collective_cap);
            collective.1 += us;
        };
        let reduced = flow.reduced.iter();
        reduced.for_each(|&v| add(Collective::AllReduce, v, None));
        for &inst in &group.insts {
            if is_boundary(self.facts.graph, inst) {
                let v = self.facts.graph.inst(inst).operands[0];
                if self.is_split(v, assignment) {
                    add(Collective::AllGather, v, None);
                }
            }
        }
        for data in flow.norms.iter().map(|&i| self.facts.graph.inst(i)) {
            let Op::Norm(norm) = &data.op else { continue };
            let stats = Some(norm.kind.stats());
            add(Collective::AllReduce, data.results[0], stats);
        }
        debug_assert!(flow.defined.iter().all(|(_, p)| *p != Unreduced::None));
        Some(Price {
            objective: busiest + collective.0,
            uncapped: busiest + collective.1,
        })
    }
}

struct PricedInst<'a> {
    pricer: &'a Pricer<'a>,
    data: &'a InstData,
    assignment: &'a [&'a SplitOption],
    rank: usize,
    batch: &'a Bindings,
}

impl PricedInst<'_> {
    fn value(&self, slot: Slot) -> Value {
        match slot {
            Slot::Operand(i) => self.data.operands[i],
            Slot::Result(i) => self.data.results[i],
        }
    }
}

impl Parts for PricedInst<'_> {
    fn ty(&self, slot: Slot) -> &TensorType {
        &self.pricer.facts.graph.value(self.value(slot)).ty
    }

    fn elements(&self, slot: Slot) -> f64 {
        let v = self.value(slot);
        self.pricer
            .elements(v, self.assignment, self.rank, self.batch)
    }

    fn whole(&self, slot: Slot) -> f64 {
        let v = self.value(slot);
        self.pricer.elements(v, &[], self.rank, self.batch)
    }

    fn stored_bytes(&self, operand: usize) -> f64 {
        let v = self.data.operands[operand];
        self.pricer
            .stored_bytes(v, self.assignment, self.rank, self.batch)
    }

    fn experts(&self) -> Option<(Vec<u64>, u64)> {
        let summands = &self.pricer.facts.analysis.summands[self.data.operands[0].index()];
        let leaf = summands[0].axes[2].first()?;
        let option = self.assignment.iter().find(|o| o.leaves.contains(leaf))?;
        let lens = option.ranges.iter().map(|r| r.len).collect();
        Some((lens, option.ranges[self.rank].len))
    }
}

/// True for a copy within a group, which only divides a value in another way.
fn is_boundary(graph: &Graph, inst: Inst) -> bool {
    let data = graph.inst(inst);
    let place = |v: Value| graph.value(v).place;
    matches!(data.op, Op::Copy(_)) && place(data.operands[0]) == place(data.results[0])
}

/// Returns a tenth of a device's time to read a matrix of mean size, in µs.
fn collective_cap(graph: &Graph, device: &DeviceProfile) -> f64 {
    let mut matrices = (0_u64, 0.0);
    for (_, data) in graph.insts() {
        let Op::Weight(_) = data.op else { continue };
        let ty = &graph.value(data.results[0]).ty;
        if !ty.dims[1].is_one() {
            let n = ty.elements().and_then(|d| d.as_const()).unwrap_or(0);
            let bytes = n as f64 * ty.dtype.element_bytes();
            matrices = (matrices.0 + 1, matrices.1 + bytes);
        }
    }
    matrices.1 / (matrices.0.max(1) as f64) / device.bandwidth * 1e6 / 10.0
}
