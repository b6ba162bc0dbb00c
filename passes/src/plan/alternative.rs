//! What a plan would cost with another option taken as given.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::factor::Var;
use tpc_ir::{Bindings, Class, Dim, Group, Op, Value};

use super::options::{SplitOption, clash, options_for};
use super::price::Pricer;
use super::region::Region;
use super::search::search;
use super::{Choice, PlanRequest, Planned, collective_cap};
use crate::factors::propagate;
use crate::machine::{ExpertLoad, all_reduce_us};

/// Times and bytes of a set of options for the regions concerned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// One token, in µs.
    pub decode_us: f64,
    /// One largest batch of a prompt, in µs.
    pub prefill_us: f64,
    /// What the planner compares, in µs per token: both batches weighed, and memory.
    pub price_us: f64,
    /// Bytes of weights and states per device.
    pub bytes: Vec<f64>,
}

impl Cost {
    fn add(&mut self, other: &Cost) {
        self.decode_us += other.decode_us;
        self.prefill_us += other.prefill_us;
        self.price_us += other.price_us;
        self.bytes.resize(other.bytes.len(), 0.0);
        for (sum, n) in self.bytes.iter_mut().zip(&other.bytes) {
            *sum += n;
        }
    }
}

/// Prices alternatives to the plan of one group.
pub(super) struct Alternatives<'a> {
    planned: &'a Planned,
    group: Group,
    regions: Vec<&'a Region>,
    /// The regions of each leaf.
    spans: BTreeMap<Var, Vec<usize>>,
    pricer: Pricer<'a>,
}

/// What it means to take an option as given.
pub(super) struct Instead {
    /// The chosen classes that it excludes.
    pub(super) of: Vec<Class>,
    /// The layers where something changes; `None` before the first and after the last.
    pub(super) layers: Vec<Option<u32>>,
    /// What the choice costs there.
    pub(super) chosen: Cost,
    /// What they cost with the option; `None` where no set with it can be carried out.
    pub(super) cost: Option<Cost>,
}

/// Costs of a region, by what is fixed and chosen in it.
struct Known<'a> {
    signature: &'a str,
    places: Vec<Option<usize>>,
    chosen: Cost,
    cost: Option<Cost>,
}

impl<'a> Alternatives<'a> {
    /// Alternatives to what `planned`, the plan of `request`, has for a group with these shares.
    pub(super) fn new(
        planned: &'a Planned,
        request: &'a PlanRequest,
        group: Group,
        shares: &'a [f64],
    ) -> Alternatives<'a> {
        let devices = &request.homes.stages[group.index()];
        let own = |r: &&Region| r.group == group;
        let regions: Vec<&Region> = planned.regions.iter().filter(own).collect();
        let mut spans: BTreeMap<Var, Vec<usize>> = BTreeMap::new();
        for (i, r) in regions.iter().enumerate() {
            for &l in &r.leaves {
                spans.entry(l).or_default().push(i);
            }
        }
        Alternatives {
            planned,
            group,
            regions,
            spans,
            pricer: Pricer {
                graph: &planned.graph,
                factors: &planned.factors,
                analysis: &planned.analysis,
                users: &planned.users,
                topology: &request.topology,
                workload: &request.workload,
                devices,
                shares,
                memory_price: request.memory_price,
                collective_cap: collective_cap(&planned.graph, request.topology.device(devices[0])),
                expert_load: ExpertLoad::default(),
            },
        }
    }

    /// The regions that `leaf` runs through.
    fn span(&self, leaf: &Var) -> &[usize] {
        self.spans.get(leaf).map_or(&[], Vec::as_slice)
    }

    /// Every way to split `leaf`.
    pub(super) fn options(&self, leaf: Var) -> Vec<SplitOption> {
        let Planned {
            graph,
            factors,
            analysis,
            users,
            ..
        } = self.planned;
        let devices = (self.group, self.pricer.shares);
        options_for(graph, factors, analysis, users, leaf, devices)
    }

    /// What `option` costs instead of the chosen ones that it excludes.
    pub(super) fn instead(&self, option: &SplitOption) -> Instead {
        let Planned {
            analysis, choice, ..
        } = self.planned;
        let excluded = |i: usize| clash(analysis, &choice.options[i], option);
        self.changed(Some(option), &excluded, &[])
    }

    /// What it costs to leave the factors whole that a chosen class splits.
    pub(super) fn without(&self, class: Class) -> Instead {
        let whole = &self.planned.choice.options[class.index()].leaves;
        self.changed(None, &|i| i == class.index(), whole)
    }

    /// What it costs to take `given`, to give up the chosen options that `excluded` names, and to leave `whole` whole.
    fn changed(
        &self,
        given: Option<&SplitOption>,
        excluded: &dyn Fn(usize) -> bool,
        whole: &[Var],
    ) -> Instead {
        let choice = &self.planned.choice;
        let own = |&i: &usize| choice.options[i].group == self.group;
        let (out, kept): (Vec<usize>, Vec<usize>) = (0..choice.options.len())
            .filter(own)
            .partition(|&i| excluded(i));
        let given_up = out.iter().map(|&i| &choice.options[i]);
        let concerned: BTreeSet<usize> = (given.into_iter().chain(given_up))
            .flat_map(|o| o.leaves.iter().flat_map(|l| self.span(l)))
            .copied()
            .collect();
        // What runs through several regions and is not given up stays; the rest of each region is searched.
        let several = |o: &&SplitOption| o.leaves.iter().any(|l| self.span(l).len() > 1);
        let stay = kept.iter().map(|&i| &choice.options[i]).filter(several);
        let fixed: Vec<&SplitOption> = given.into_iter().chain(stay).collect();
        let in_full = self.is_global(given.map_or(whole, |o| &o.leaves));
        let (mut chosen, mut cost) = (Cost::default(), Some(Cost::default()));
        let mut known: Vec<Known<'_>> = Vec::new();
        for &r in &concerned {
            let region = self.regions[r];
            let here = |o: &&SplitOption| {
                o.group == self.group && o.leaves.iter().any(|l| self.span(l).contains(&r))
            };
            let now: Vec<&SplitOption> = choice.options.iter().filter(here).collect();
            let fixed: Vec<&SplitOption> = fixed.iter().copied().filter(here).collect();
            // Alike regions cost the same if the same of their factors are split by what is fixed and what is chosen.
            let place = |l: &Var| region.leaves.iter().position(|x| x == l);
            let places: Vec<Option<usize>> = fixed
                .iter()
                .chain(&now)
                .flat_map(|o| o.leaves.iter().map(place))
                .collect();
            let signature = region.signature.as_str();
            let alike = |k: &Known<'_>| k.signature == signature && k.places == places;
            let at = known.iter().position(alike).unwrap_or_else(|| {
                known.push(Known {
                    signature,
                    places: places.clone(),
                    chosen: self.cost(region, &now, in_full).unwrap_or_default(),
                    cost: self.cheapest(region, &fixed, whole, in_full),
                });
                known.len() - 1
            });
            chosen.add(&known[at].chosen);
            cost = match (cost, &known[at].cost) {
                (Some(mut sum), Some(more)) => {
                    sum.add(more);
                    Some(sum)
                }
                _ => None,
            };
        }
        Instead {
            of: out.into_iter().map(Class::new).collect(),
            layers: concerned.iter().map(|&r| self.regions[r].layer).collect(),
            chosen,
            cost,
        }
    }

    /// Whether the choice was made for all regions at once.
    fn is_global(&self, leaves: &[Var]) -> bool {
        let span = leaves.iter().map(|l| self.span(l).len()).max();
        super::choose::is_global(span.unwrap_or(0), self.regions.len())
    }

    /// The cost of the cheapest set beside `fixed` for a region that leaves `whole` whole.
    fn cheapest(
        &self,
        region: &Region,
        fixed: &[&SplitOption],
        whole: &[Var],
        in_full: bool,
    ) -> Option<Cost> {
        let free: Vec<SplitOption> = region
            .leaves
            .iter()
            .filter(|l| self.span(l).len() == 1)
            .flat_map(|&l| self.options(l))
            .filter(|o| !o.leaves.iter().any(|l| whole.contains(l)))
            .filter(|o| {
                !fixed
                    .iter()
                    .any(|f| f == &o || clash(&self.planned.analysis, f, o))
            })
            .collect();
        let free: Vec<&SplitOption> = free.iter().collect();
        let found = search(&self.pricer, region, fixed, &free)?;
        let set: Vec<&SplitOption> = fixed.iter().copied().chain(found.set).collect();
        self.cost(region, &set, in_full)
    }

    /// What a set of options costs in a region; `None` when it cannot be carried out.
    fn cost(&self, region: &Region, set: &[&SplitOption], in_full: bool) -> Option<Cost> {
        let p = &self.pricer;
        let graph = p.graph;
        let selection = Choice::from_options(set.iter().map(|&o| o.clone()));
        let flow = propagate(
            graph,
            p.factors,
            p.analysis,
            p.users,
            &region.insts,
            &selection,
        )
        .ok()?;
        let n = p.shares.len();
        let link = p.topology.ring(p.devices);
        let us = |batch: &Bindings| {
            let busiest = (0..n)
                .map(|rank| {
                    region
                        .insts
                        .iter()
                        .map(|&i| p.time_us(i, set, rank, batch))
                        .sum()
                })
                .fold(0.0, f64::max);
            let size = |v: Value, axis0: Option<u64>| {
                let ty = &graph.value(v).ty;
                let ty = axis0.map_or_else(|| ty.clone(), |n| ty.with_dim(0, Dim::constant(n)));
                4.0 * ty.elements().and_then(|d| d.eval(batch)).unwrap_or(0) as f64
            };
            let sums = flow.reduced.iter().map(|&v| size(v, None));
            let norms = flow.norms.iter().map(|&i| match &graph.inst(i).op {
                Op::Norm(norm) => size(graph.inst(i).results[0], Some(norm.kind.stats())),
                _ => 0.0,
            });
            let collectives: f64 = sums.chain(norms).map(|b| all_reduce_us(link, n, b)).sum();
            busiest + collectives
        };
        let price = p.price(region, set)?;
        let held = |rank: usize| -> f64 {
            let stored = region
                .insts
                .iter()
                .map(|&i| graph.inst(i))
                .filter(|d| matches!(d.op, Op::Weight(_) | Op::State(_)));
            stored
                .map(|d| p.stored_bytes(d.results[0], set, rank, &p.workload.decode))
                .sum()
        };
        Some(Cost {
            decode_us: us(&p.workload.decode),
            prefill_us: us(&p.workload.prefill),
            price_us: if in_full {
                price.uncapped
            } else {
                price.objective
            },
            bytes: (0..n).map(held).collect(),
        })
    }
}
