use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::factor::Var;
use tpc_ir::op::Collective;
use tpc_ir::{Bindings, Budget, Class, Dim, Group, Op, Value};

use super::layer_group::{LayerGroup, Signature};
use super::options::{SplitOption, clash, options_for};
use super::price::Pricer;
use super::search::search;
use super::{Choice, PlanRequest, PlannedGraph};
use crate::factors::propagate;
use crate::machine::Participants;

/// The cost of an assignment in the affected layer groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Time of one decoded token, in µs.
    pub decode_us: f64,
    /// Time of one prompt batch of the largest size, in µs.
    pub prefill_us: f64,
    /// The planner's objective in µs per token: the weighted times of both batches, plus the price of memory.
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

pub(super) struct Alternatives<'a> {
    planned: &'a PlannedGraph,
    group: Group,
    groups: Vec<&'a LayerGroup>,
    spans: BTreeMap<Var, Vec<usize>>,
    pricer: Pricer<'a>,
}

pub(super) struct Replacement {
    pub(super) of: Vec<Class>,
    pub(super) layers: Vec<Option<u32>>,
    pub(super) chosen: Cost,
    /// The cost with the option; `None` if no possible assignment has it.
    pub(super) cost: Option<Cost>,
}

/// Costs by the layer group's fixed and chosen options.
struct CostCache<'a> {
    signature: &'a Signature,
    places: Vec<Option<usize>>,
    chosen: Cost,
    cost: Option<Cost>,
}

impl<'a> Alternatives<'a> {
    /// Prepares alternatives to `planned`, the plan of `request`, for one group of devices.
    pub(super) fn new(
        planned: &'a PlannedGraph,
        request: &'a PlanRequest,
        group: Group,
        device_weights: &'a [f64],
    ) -> Alternatives<'a> {
        let devices = &request.layer_placement.stages[group.index()];
        let own = |r: &&LayerGroup| r.group == group;
        let groups: Vec<&LayerGroup> = planned.layer_groups.iter().filter(own).collect();
        let mut spans: BTreeMap<Var, Vec<usize>> = BTreeMap::new();
        for (i, r) in groups.iter().enumerate() {
            for &l in &r.leaves {
                spans.entry(l).or_default().push(i);
            }
        }
        Alternatives {
            planned,
            group,
            groups,
            spans,
            pricer: Pricer::new(planned.graph_facts(), request, devices, device_weights),
        }
    }

    fn span(&self, leaf: &Var) -> &[usize] {
        self.spans.get(leaf).map_or(&[], Vec::as_slice)
    }

    pub(super) fn options(&self, leaf: Var) -> Vec<SplitOption> {
        options_for(
            self.pricer.facts,
            leaf,
            (self.group, self.pricer.device_weights),
        )
    }

    /// Returns the cost if `option` replaces the chosen options that conflict with it.
    pub(super) fn replace(&self, option: &SplitOption) -> Replacement {
        let PlannedGraph {
            analysis, choice, ..
        } = self.planned;
        let excluded = |i: usize| clash(analysis, &choice.options[i], option);
        self.cost_with(Some(option), &excluded, &[])
    }

    pub(super) fn without(&self, class: Class) -> Replacement {
        let whole = &self.planned.choice.options[class.index()].leaves;
        self.cost_with(None, &|i| i == class.index(), whole)
    }

    fn cost_with(
        &self,
        given: Option<&SplitOption>,
        excluded: &dyn Fn(usize) -> bool,
        whole: &[Var],
    ) -> Replacement {
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
        // Options of factors in several groups stay unless excluded. Each group's search covers its other options.
        let several = |o: &&SplitOption| o.leaves.iter().any(|l| self.span(l).len() > 1);
        let stay = kept.iter().map(|&i| &choice.options[i]).filter(several);
        let fixed: Vec<&SplitOption> = given.into_iter().chain(stay).collect();
        let in_full = self.is_global(given.map_or(whole, |o| &o.leaves));
        let (mut chosen, mut cost) = (Cost::default(), Some(Cost::default()));
        let mut known: Vec<CostCache<'_>> = Vec::new();
        for &r in &concerned {
            let group = self.groups[r];
            let here = |o: &&SplitOption| {
                o.group == self.group && o.leaves.iter().any(|l| self.span(l).contains(&r))
            };
            let now: Vec<&SplitOption> = choice.options.iter().filter(here).collect();
            let fixed: Vec<&SplitOption> = fixed.iter().copied().filter(here).collect();
            // Groups with equal signatures have equal costs if their fixed and chosen options split corresponding
            // factors.
            let place = |l: &Var| group.leaves.iter().position(|x| x == l);
            let places: Vec<Option<usize>> = fixed
                .iter()
                .chain(&now)
                .flat_map(|o| o.leaves.iter().map(place))
                .collect();
            let signature = &group.signature;
            let alike = |k: &CostCache<'_>| k.signature == signature && k.places == places;
            let at = known.iter().position(alike).unwrap_or_else(|| {
                known.push(CostCache {
                    signature,
                    places: places.clone(),
                    chosen: self.cost(group, &now, in_full).unwrap_or_default(),
                    cost: self.find_cheapest(group, &fixed, whole, in_full),
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
        Replacement {
            of: out.into_iter().map(Class::new).collect(),
            layers: concerned.iter().map(|&r| self.groups[r].layer).collect(),
            chosen,
            cost,
        }
    }

    fn is_global(&self, leaves: &[Var]) -> bool {
        let span = leaves.iter().map(|l| self.span(l).len()).max();
        super::problem::is_global(span.unwrap_or(0), self.groups.len())
    }

    fn find_cheapest(
        &self,
        group: &LayerGroup,
        fixed: &[&SplitOption],
        whole: &[Var],
        in_full: bool,
    ) -> Option<Cost> {
        let free: Vec<SplitOption> = group
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
        let found = search(&self.pricer, group, fixed, &free, &Budget::default())?;
        let set: Vec<&SplitOption> = fixed.iter().copied().chain(found.assignment).collect();
        self.cost(group, &set, in_full)
    }

    fn cost(&self, group: &LayerGroup, set: &[&SplitOption], in_full: bool) -> Option<Cost> {
        let p = &self.pricer;
        let graph = p.facts.graph;
        let selection = Choice::from_options(set.iter().map(|&o| o.clone()));
        let flow = propagate(p.facts, &group.insts, &selection).ok()?;
        let n = p.device_weights.len();
        let participants = Participants::of(p.topology, p.devices);
        let us = |batch: &Bindings| {
            let busiest = (0..n)
                .map(|rank| {
                    group
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
            let reduced = |bytes| participants.roofline_us(Collective::AllReduce, bytes);
            let collectives: f64 = sums.chain(norms).map(reduced).sum();
            busiest + collectives
        };
        let price = p.price(group, set)?;
        let held = |rank: usize| -> f64 {
            let stored = group
                .insts
                .iter()
                .map(|&i| graph.inst(i))
                .filter(|d| d.op.is_stored());
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
