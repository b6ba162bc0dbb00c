//! The price of a set of options for a region: the busiest device's work and memory, and the collectives.

use tpc_ir::factor::Var;
use tpc_ir::op::Slot;
use tpc_ir::{
    Bindings, Class, Graph, Group, Inst, InstData, Op, Place, TensorType, Unreduced, Value,
};

use super::options::SplitOption;
use super::region::Region;
use crate::factors::{Analysis, Factors, Term};
use crate::factors::{Selection, propagate};
use crate::machine::{DeviceProfile, Topology};
use crate::machine::{ExpertLoad, Work, Workload, all_reduce_us, element_bytes};
use crate::machine::{Parts, work};
use crate::users::Users;

/// A set of options under trial.
struct Trial<'a>(&'a [&'a SplitOption]);

impl Selection for Trial<'_> {
    fn class_of(&self, _: Group, leaf: Var) -> Option<Class> {
        self.0
            .iter()
            .position(|o| o.leaves.contains(&leaf))
            .map(Class::new)
    }
}

/// Everything that pricing needs.
pub struct Pricer<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its factors.
    pub factors: &'a Factors,
    /// Tables of them.
    pub analysis: &'a Analysis,
    /// Users of values.
    pub users: &'a Users,
    /// The machine.
    pub topology: &'a Topology,
    /// The batches.
    pub workload: &'a Workload,
    /// The devices of the group that is planned, by position.
    pub devices: &'a [usize],
    /// Their shares of the work.
    pub shares: &'a [f64],
    /// Price of a resident byte, in reads of a byte.
    pub memory_price: f64,
    /// Cap on the price of a collective, in µs: who asks for a tensor split gets one, however small the model.
    pub collective_cap: f64,
    /// How unevenly experts are drawn.
    pub expert_load: ExpertLoad,
}

/// The price of a set of options for one region.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Objective, in µs per decoded token, with the price of collectives capped.
    pub objective: f64,
    /// The same with collectives at what they take.
    pub uncapped: f64,
}

impl Pricer<'_> {
    fn size(&self, leaf: Var, b: &Bindings) -> f64 {
        self.factors.space.size(leaf).eval(b).unwrap_or(0) as f64
    }

    /// Elements of a term on the device at `rank`; with `cover`, of what it stores of a tensor with such blocks.
    fn local(
        &self,
        term: &Term,
        set: &[&SplitOption],
        rank: usize,
        b: &Bindings,
        cover: u64,
    ) -> f64 {
        let mut n = 1.0;
        for (axis, leaves) in term.axes.iter().enumerate() {
            let mut on_axis = 1.0;
            let mut split = false;
            for &l in leaves {
                let Some(o) = set.iter().find(|o| o.leaves.contains(&l)) else {
                    on_axis *= self.size(l, b);
                    continue;
                };
                split = true;
                let r = o.ranges[rank];
                if o.leaves[0] == l {
                    let whole_chain = o.leaves.iter().all(|x| leaves.contains(x));
                    let minor: u64 = o.leaves[1..]
                        .iter()
                        .map(|&x| self.factors.space.size(x).as_const().unwrap_or(1))
                        .product();
                    on_axis *= if whole_chain {
                        r.len
                    } else {
                        r.project(minor).len
                    } as f64;
                }
            }
            if split && axis == 0 && cover > 1 && on_axis > 0.0 {
                on_axis = ((on_axis / cover as f64).ceil() + 0.5) * cover as f64;
            }
            n *= on_axis;
        }
        n
    }

    fn elements(&self, v: Value, set: &[&SplitOption], rank: usize, b: &Bindings) -> f64 {
        self.analysis.terms[v.index()]
            .iter()
            .map(|t| self.local(t, set, rank, b, 1))
            .sum()
    }

    /// Bytes of a weight or state that the device at `rank` stores.
    pub(super) fn stored_bytes(
        &self,
        v: Value,
        set: &[&SplitOption],
        rank: usize,
        b: &Bindings,
    ) -> f64 {
        let dtype = self.graph.value(v).ty.dtype;
        let terms = &self.analysis.terms[v.index()];
        let covered = |t: &Term| {
            t.axes[0]
                .iter()
                .any(|l| set.iter().any(|o| o.shares_blocks && o.leaves.contains(l)))
        };
        let n: f64 = terms
            .iter()
            .map(|t| {
                self.local(
                    t,
                    set,
                    rank,
                    b,
                    if covered(t) { dtype.block_len() } else { 1 },
                )
            })
            .sum();
        n * element_bytes(dtype)
    }

    /// Work of an instruction on the device at `rank`.
    fn work(&self, inst: Inst, set: &[&SplitOption], rank: usize, b: &Bindings) -> Work {
        let data = self.graph.inst(inst);
        if data.results.is_empty() {
            return Work::default();
        }
        let parts = Priced {
            pricer: self,
            data,
            set,
            rank,
            batch: b,
        };
        work(&data.op, &parts, b, &self.expert_load)
    }

    fn graph_rows(&self, v: Value, b: &Bindings) -> f64 {
        (self.graph.value(v).ty.dims[0].eval(b).unwrap_or(1) as f64).max(1.0)
    }

    /// Time of a region's own work on the device at `rank`, in µs, for one batch.
    pub fn work_us(
        &self,
        region: &Region,
        set: &[&SplitOption],
        rank: usize,
        batch: &Bindings,
    ) -> f64 {
        region
            .insts
            .iter()
            .filter(|&&i| !matches!(self.graph.inst(i).op, Op::Copy(_)))
            .map(|&i| self.time_us(i, set, rank, batch))
            .sum()
    }

    fn profile(&self, rank: usize) -> &DeviceProfile {
        self.topology.device(self.devices[rank])
    }

    /// Time of an instruction on the device at `rank`, in µs.
    pub(super) fn time_us(
        &self,
        inst: Inst,
        set: &[&SplitOption],
        rank: usize,
        batch: &Bindings,
    ) -> f64 {
        if let Op::Copy(_) = self.graph.inst(inst).op {
            return self.copy_us(inst, set, rank, batch);
        }
        self.work(inst, set, rank, batch)
            .time_us(self.profile(rank))
    }

    /// Time of the device at `rank` for its part of a copy: what it fetches, or what it alone or first of all holds.
    fn copy_us(&self, inst: Inst, set: &[&SplitOption], rank: usize, batch: &Bindings) -> f64 {
        let data = self.graph.inst(inst);
        let (from, to) = (data.operands[0], data.results[0]);
        let arrives = matches!(self.graph.value(to).place, Place::Group(_));
        let here = if arrives { to } else { from };
        let part = self.elements(here, set, rank, batch);
        let whole = self.elements(here, &[], rank, batch);
        if !arrives && rank > 0 && part >= whole {
            return 0.0;
        }
        let other = if arrives { from } else { to };
        let link = match self.graph.value(other).place {
            Place::Host => self.topology.host_link,
            Place::Device(_) | Place::Group(_) => self.topology.link,
        };
        let bytes = part * element_bytes(self.graph.value(here).ty.dtype);
        link.latency_us + bytes / link.bandwidth * 1e6
    }

    /// Time of an instruction away from all groups, in µs.
    pub fn elsewhere_us(&self, inst: Inst, profile: &DeviceProfile, batch: &Bindings) -> f64 {
        self.work(inst, &[], 0, batch).time_us(profile)
    }

    /// What an instruction adds to the price of the device at `rank`: its time, both batches weighed, and the memory that
    /// it takes.
    pub(super) fn share_us(&self, inst: Inst, set: &[&SplitOption], rank: usize) -> f64 {
        let (dec, pre) = (&self.workload.decode, &self.workload.prefill);
        let prompt = Workload::PROMPT_WEIGHT / self.workload.ubatch();
        let mut us =
            self.time_us(inst, set, rank, dec) + prompt * self.time_us(inst, set, rank, pre);
        if let Op::Weight(_) | Op::State(_) = self.graph.inst(inst).op {
            let v = self.graph.inst(inst).results[0];
            let bytes = self.stored_bytes(v, set, rank, dec);
            us += self.memory_price * bytes / self.profile(rank).bandwidth * 1e6;
        }
        us
    }

    /// Prices a set of options for a region; `None` when the set cannot be carried out.
    pub fn price(&self, region: &Region, set: &[&SplitOption]) -> Option<Price> {
        let flow = propagate(
            self.graph,
            self.factors,
            self.analysis,
            self.users,
            &region.insts,
            &Trial(set),
        )
        .ok()?;
        let n = self.shares.len();
        let (dec, pre) = (&self.workload.decode, &self.workload.prefill);
        let mut busiest = 0.0_f64;
        let prompt = Workload::PROMPT_WEIGHT / self.workload.ubatch();
        for rank in 0..n {
            let each = region.insts.iter().map(|&i| self.share_us(i, set, rank));
            busiest = busiest.max(each.sum());
        }
        let link = self.topology.ring(self.devices);
        let mut collective = (0.0, 0.0);
        // A reduction carries the whole value; a norm's statistic has `stats` numbers per row of it.
        let mut add = |v: Value, stats: Option<u64>| {
            let mut us = 0.0;
            for (b, weight) in [(dec, 1.0), (pre, prompt)] {
                let part = stats.map_or(1.0, |s| s as f64 / self.graph_rows(v, b));
                let bytes = 4.0 * self.elements(v, &[], 0, b) * part;
                us += weight * all_reduce_us(link, n, bytes);
            }
            collective.0 += us.min(self.collective_cap);
            collective.1 += us;
        };
        flow.reduced.iter().for_each(|&v| add(v, None));
        for data in flow.norms.iter().map(|&i| self.graph.inst(i)) {
            let Op::Norm(norm) = &data.op else { continue };
            add(data.results[0], Some(norm.kind.stats()));
        }
        debug_assert!(flow.defined.iter().all(|(_, p)| *p != Unreduced::None));
        Some(Price {
            objective: busiest + collective.0,
            uncapped: busiest + collective.1,
        })
    }
}

/// An instruction under a set of options, on one device.
struct Priced<'a> {
    pricer: &'a Pricer<'a>,
    data: &'a InstData,
    set: &'a [&'a SplitOption],
    rank: usize,
    batch: &'a Bindings,
}

impl Priced<'_> {
    fn value(&self, slot: Slot) -> Value {
        match slot {
            Slot::Operand(i) => self.data.operands[i],
            Slot::Result(i) => self.data.results[i],
        }
    }
}

impl Parts for Priced<'_> {
    fn ty(&self, slot: Slot) -> &TensorType {
        &self.pricer.graph.value(self.value(slot)).ty
    }

    fn elements(&self, slot: Slot) -> f64 {
        let v = self.value(slot);
        self.pricer.elements(v, self.set, self.rank, self.batch)
    }

    fn whole(&self, slot: Slot) -> f64 {
        let v = self.value(slot);
        self.pricer.elements(v, &[], self.rank, self.batch)
    }

    fn stored_bytes(&self, operand: usize) -> f64 {
        let v = self.data.operands[operand];
        self.pricer.stored_bytes(v, self.set, self.rank, self.batch)
    }

    fn experts(&self) -> Option<(Vec<u64>, u64)> {
        let terms = &self.pricer.analysis.terms[self.data.operands[0].index()];
        let leaf = terms[0].axes[2].first()?;
        let option = self.set.iter().find(|o| o.leaves.contains(leaf))?;
        let lens = option.ranges.iter().map(|r| r.len).collect();
        Some((lens, option.ranges[self.rank].len))
    }
}
