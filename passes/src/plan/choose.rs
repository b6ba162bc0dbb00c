//! The choice of splits: an exact search over the compatible sets of options of each distinct region.

use std::collections::BTreeMap;

use tpc_ir::factor::Var;
use tpc_ir::{Bindings, Class, Graph, Inst, Op, Pending, Value};

use super::cost::{Work, Workload, all_reduce_us, element_bytes, expected_max};
use super::options::{SplitOption, options_for};
use super::region::Region;
use super::topology::Topology;
use crate::factors::{Analysis, Factors, Term};
use crate::shard::{Selection, Users, propagate};

/// The chosen options.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The options; a class is the position in this list.
    pub options: Vec<SplitOption>,
    by_leaf: BTreeMap<Var, Class>,
    /// Sets of options that were priced.
    pub priced: u64,
    /// Whether every compatible set was priced, so that the choice is the cheapest by the cost model.
    pub optimal: bool,
    /// Distinct regions.
    pub distinct: usize,
}

impl Choice {
    /// The choice to split nothing.
    pub fn none() -> Choice {
        Choice {
            optimal: true,
            distinct: 1,
            ..Choice::default()
        }
    }

    /// The choice of these options; of options that share a leaf the first counts.
    pub fn from_options(options: impl IntoIterator<Item = SplitOption>) -> Choice {
        let mut out = Choice::none();
        options.into_iter().for_each(|o| out.push(o));
        out
    }

    fn push(&mut self, option: SplitOption) {
        if option.leaves.iter().any(|l| self.by_leaf.contains_key(l)) {
            return;
        }
        let class = Class::new(self.options.len());
        for &l in &option.leaves {
            self.by_leaf.insert(l, class);
        }
        self.options.push(option);
    }
}

impl Selection for Choice {
    fn class_of(&self, leaf: Var) -> Option<Class> {
        self.by_leaf.get(&leaf).copied()
    }
}

/// A set of options under trial.
struct Trial<'a>(&'a [&'a SplitOption]);

impl Selection for Trial<'_> {
    fn class_of(&self, leaf: Var) -> Option<Class> {
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
    /// The devices' shares of the work.
    pub shares: &'a [f64],
    /// Price of a resident byte, in reads of a byte.
    pub memory_price: f64,
    /// Cap on the price of a collective, in µs: who asks for a tensor split gets one, however small the model.
    pub collective_cap: f64,
}

/// The price of a set of options for one region.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Objective, in µs per decoded token, with the price of collectives capped.
    pub objective: f64,
    /// The same with collectives at what they take.
    pub uncapped: f64,
}

/// Sets of options that are priced per region at most.
const SEARCH_LIMIT: u64 = 20_000;
/// Factors of more regions than this are decided before all others.
const GLOBAL_SPAN: usize = 4;

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

    fn stored_bytes(&self, v: Value, set: &[&SplitOption], rank: usize, b: &Bindings) -> f64 {
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
        let Some(&result) = data.results.first() else {
            return Work::default();
        };
        let out = self.elements(result, set, rank, b);
        let opd = |i: usize| self.elements(data.operands[i], set, rank, b);
        match &data.op {
            Op::Weight(_) | Op::Input(_) | Op::State(_) => Work::default(),
            Op::Reshape(_) | Op::Permute(_) | Op::Slice(_) | Op::SetRows(_) => Work::default(),
            Op::MulMat(_) => {
                let a = opd(0);
                let columns = self.elements(data.operands[1], &[], rank, b)
                    / self.graph_rows(data.operands[1], b);
                let bytes = self.stored_bytes(data.operands[0], set, rank, b);
                Work {
                    flops: 2.0 * a * columns,
                    bytes: bytes + 4.0 * (opd(1) + out),
                }
            }
            Op::MulMatId(_) => {
                let experts = self.graph.value(data.operands[0]).ty.dims[2]
                    .eval(b)
                    .unwrap_or(1) as f64;
                let draws = self.elements(data.operands[2], &[], rank, b);
                let expert_leaf = self.analysis.terms[data.operands[0].index()][0].axes[2]
                    .first()
                    .copied();
                let by_expert =
                    expert_leaf.and_then(|l| set.iter().find(|o| o.leaves.contains(&l)));
                // Distinct experts read, and products computed, on this device.
                let (touched, products) = match by_expert {
                    Some(o) => {
                        let lens: Vec<f64> = o.ranges.iter().map(|r| r.len as f64).collect();
                        let busiest = expected_max(draws as u64, &lens);
                        (busiest.min(o.ranges[rank].len as f64), busiest)
                    }
                    None => (draws.min(experts), draws),
                };
                let per_expert = if by_expert.is_some() {
                    1.0 / opd_experts(self, data.operands[0], set, rank)
                } else {
                    1.0 / experts
                };
                let bytes =
                    self.stored_bytes(data.operands[0], set, rank, b) * per_expert * touched;
                let flops = 2.0 * opd(0) * per_expert * products;
                Work {
                    flops,
                    bytes: bytes + 4.0 * out,
                }
            }
            Op::GetRows(_) => Work {
                flops: out,
                bytes: 8.0 * out,
            },
            Op::FlashAttn(_) => {
                let cells = self.graph.value(data.operands[1]).ty.dims[1]
                    .eval(b)
                    .unwrap_or(0) as f64;
                let kv =
                    |i: usize| opd(i) * element_bytes(self.graph.value(data.operands[i]).ty.dtype);
                Work {
                    flops: 4.0 * opd(0) * cells,
                    bytes: kv(1) + kv(2) + 4.0 * (opd(0) + out),
                }
            }
            _ => Work {
                flops: out,
                bytes: 8.0 * out,
            },
        }
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
            .map(|&i| self.work(i, set, rank, batch).time_us(self.topology, rank))
            .sum()
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
            let mut us = 0.0;
            for &inst in &region.insts {
                us += self.work(inst, set, rank, dec).time_us(self.topology, rank);
                us += prompt * self.work(inst, set, rank, pre).time_us(self.topology, rank);
                if let Op::Weight(_) | Op::State(_) = self.graph.inst(inst).op {
                    let v = self.graph.inst(inst).results[0];
                    let bytes = self.stored_bytes(v, set, rank, dec);
                    us += self.memory_price * bytes / self.topology.device(rank).bandwidth * 1e6;
                }
            }
            busiest = busiest.max(us);
        }
        let link = self.topology.ring(n);
        let mut collective = (0.0, 0.0);
        let mut add = |v: Value, row: bool| {
            let mut us = 0.0;
            for (b, weight) in [(dec, 1.0), (pre, prompt)] {
                let rows = if row { self.graph_rows(v, b) } else { 1.0 };
                let bytes = 4.0 * self.elements(v, &[], 0, b) / rows;
                us += weight * all_reduce_us(link, n, bytes);
            }
            collective.0 += us.min(self.collective_cap);
            collective.1 += us;
        };
        flow.reduced.iter().for_each(|&v| add(v, false));
        flow.norms
            .iter()
            .for_each(|&i| add(self.graph.inst(i).results[0], true));
        debug_assert!(flow.defined.iter().all(|(_, p)| *p != Pending::None));
        Some(Price {
            objective: busiest + collective.0,
            uncapped: busiest + collective.1,
        })
    }
}

fn opd_experts(p: &Pricer<'_>, w: Value, set: &[&SplitOption], rank: usize) -> f64 {
    let leaf = p.analysis.terms[w.index()][0].axes[2].first().copied();
    let n = leaf
        .and_then(|l| set.iter().find(|o| o.leaves.contains(&l)))
        .map_or(1, |o| o.ranges[rank].len);
    (n as f64).max(1.0)
}

/// Whether two options cannot both be chosen: they would split one value twice.
fn clash(analysis: &Analysis, a: &SplitOption, b: &SplitOption) -> bool {
    a.leaves.iter().any(|x| {
        b.leaves
            .iter()
            .any(|y| x == y || analysis.leaves[x].with.contains(y))
    })
}

/// Chooses the options for the whole graph.
pub fn choose(pricer: &Pricer<'_>, regions: &[Region]) -> Choice {
    let Pricer {
        graph,
        factors,
        analysis,
        users,
        shares,
        ..
    } = *pricer;
    let mut choice = Choice::none();
    // Leaves by the regions they occur in: those of many regions are decided first, those of few tie them together.
    let mut spans: BTreeMap<Var, Vec<usize>> = BTreeMap::new();
    for (i, r) in regions.iter().enumerate() {
        for &l in &r.leaves {
            spans.entry(l).or_default().push(i);
        }
    }
    let everywhere = regions.len();
    let is_global =
        |span: &[usize]| span.len() > GLOBAL_SPAN || (span.len() == everywhere && everywhere > 2);
    let mut made: BTreeMap<Var, Vec<SplitOption>> = BTreeMap::new();
    let mut root: Vec<usize> = (0..regions.len()).collect();
    fn find(root: &[usize], mut i: usize) -> usize {
        while root[i] != i {
            i = root[i];
        }
        i
    }
    // Alike regions share their options: they are made once and renamed.
    let mut representative: BTreeMap<&str, usize> = BTreeMap::new();
    let rep_of: Vec<usize> = regions
        .iter()
        .enumerate()
        .map(|(i, r)| *representative.entry(r.signature.as_str()).or_insert(i))
        .collect();
    let mut global: Vec<SplitOption> = Vec::new();
    for (i, r) in regions.iter().enumerate() {
        for (k, &leaf) in r.leaves.iter().enumerate() {
            if made.contains_key(&leaf) {
                continue;
            }
            let span = &spans[&leaf];
            let rep = &regions[rep_of[i]];
            let local_span =
                span.len() == 1 && rep_of[i] != i && rep.leaves.len() == r.leaves.len();
            let options = match made
                .get(&rep.leaves[k.min(rep.leaves.len() - 1)])
                .filter(|_| local_span)
            {
                Some(known) => known
                    .iter()
                    .map(|o| {
                        let rename = |l: &Var| {
                            rep.leaves
                                .iter()
                                .position(|x| x == l)
                                .map_or(*l, |p| r.leaves[p])
                        };
                        SplitOption {
                            leaves: o.leaves.iter().map(rename).collect(),
                            ..o.clone()
                        }
                    })
                    .collect(),
                None => options_for(graph, factors, analysis, users, leaf, shares),
            };
            if !options.is_empty() {
                if is_global(span) {
                    global.extend(options.iter().cloned());
                } else {
                    for &other in &span[1..] {
                        let (a, b) = (find(&root, span[0]), find(&root, other));
                        root[a.max(b)] = a.min(b);
                    }
                }
            }
            made.insert(leaf, options);
        }
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for i in 0..regions.len() {
        groups.entry(find(&root, i)).or_default().push(i);
    }
    // One problem per group of tied regions; alike problems are solved once.
    struct Problem {
        region: Region,
        options: Vec<SplitOption>,
        alike: Vec<Region>,
    }
    let mut problems: Vec<Problem> = Vec::new();
    for members in groups.values() {
        let mut region = regions[members[0]].clone();
        for &m in &members[1..] {
            region.insts.extend(&regions[m].insts);
            region.signature.push_str("--\n");
            region.signature.push_str(&regions[m].signature);
            for &l in &regions[m].leaves {
                if !region.leaves.contains(&l) {
                    region.leaves.push(l);
                }
            }
        }
        region.insts.sort_unstable();
        if let Some(p) = problems.iter_mut().find(|p| {
            p.region.signature == region.signature && p.region.leaves.len() == region.leaves.len()
        }) {
            p.alike.push(region);
            continue;
        }
        let options = region
            .leaves
            .iter()
            .filter(|l| !is_global(&spans[l]))
            .flat_map(|l| made[l].iter().cloned())
            .collect();
        problems.push(Problem {
            region,
            options,
            alike: Vec::new(),
        });
    }
    choice.distinct = problems.len();
    // Whether to split what runs through everything, such as the residual width, is decided by what collectives really
    // take: it needs several times as many as any other split.
    let mut best: Option<(f64, Vec<SplitOption>, Vec<Vec<SplitOption>>)> = None;
    for chosen_global in independent_sets(analysis, &global, &mut choice.optimal) {
        let globals: Vec<&SplitOption> = chosen_global.iter().map(|&i| &global[i]).collect();
        let mut total = 0.0;
        let mut picks = Vec::new();
        for p in &problems {
            let fits: Vec<&SplitOption> = p
                .options
                .iter()
                .filter(|o| globals.iter().all(|g| !clash(analysis, o, g)))
                .collect();
            let mut found: Option<(Price, Vec<&SplitOption>)> = None;
            let mut search = Search {
                pricer,
                p: &p.region,
                fits: &fits,
                found: &mut found,
                priced: 0,
            };
            let mut set = globals.clone();
            search.descend(0, &mut set, globals.len());
            if search.priced >= SEARCH_LIMIT {
                choice.optimal = false;
            }
            choice.priced += search.priced;
            match found {
                Some((price, set)) => {
                    total += price.uncapped * (1 + p.alike.len()) as f64;
                    picks.push(set[globals.len()..].iter().map(|&o| o.clone()).collect());
                }
                None => {
                    total = f64::INFINITY;
                    break;
                }
            }
        }
        if total.is_finite() && best.as_ref().is_none_or(|(t, ..)| total < t * (1.0 - 1e-9)) {
            best = Some((total, globals.iter().map(|&g| g.clone()).collect(), picks));
        }
    }
    if let Some((_, globals, picks)) = best {
        globals.into_iter().for_each(|g| choice.push(g));
        // In program order, so that classes are numbered as people read.
        let mut by_region: Vec<(Inst, SplitOption)> = Vec::new();
        for (p, set) in problems.iter().zip(picks) {
            for r in std::iter::once(&p.region).chain(&p.alike) {
                for o in &set {
                    let rename = |l: &Var| {
                        p.region
                            .leaves
                            .iter()
                            .position(|x| x == l)
                            .map_or(*l, |i| r.leaves[i])
                    };
                    let leaves = o.leaves.iter().map(rename).collect();
                    by_region.push((
                        r.insts[0],
                        SplitOption {
                            leaves,
                            ..o.clone()
                        },
                    ));
                }
            }
        }
        by_region.sort_by_key(|(i, _)| *i);
        by_region.into_iter().for_each(|(_, o)| choice.push(o));
    }
    choice
}

/// Every set of pairwise compatible options, as positions; the empty set first.
fn independent_sets(
    analysis: &Analysis,
    options: &[SplitOption],
    complete: &mut bool,
) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new()];
    let mut i = 0;
    while i < out.len() {
        let from = out[i].last().map_or(0, |&l: &usize| l + 1);
        for next in from..options.len() {
            if out[i]
                .iter()
                .all(|&o| !clash(analysis, &options[o], &options[next]))
            {
                if out.len() >= 256 {
                    *complete = false;
                    return out;
                }
                let mut set = out[i].clone();
                set.push(next);
                out.push(set);
            }
        }
        i += 1;
    }
    out
}

struct Search<'a, 'b> {
    pricer: &'a Pricer<'a>,
    p: &'a Region,
    fits: &'a [&'b SplitOption],
    found: &'a mut Option<(Price, Vec<&'b SplitOption>)>,
    priced: u64,
}

impl<'b> Search<'_, 'b> {
    fn descend(&mut self, from: usize, set: &mut Vec<&'b SplitOption>, fixed: usize) {
        if self.priced >= SEARCH_LIMIT {
            return;
        }
        self.priced += 1;
        if let Some(price) = self.pricer.price(self.p, set)
            && self
                .found
                .as_ref()
                .is_none_or(|(best, _)| price.objective < best.objective * (1.0 - 1e-9))
        {
            *self.found = Some((price, set.clone()));
        }
        for i in from..self.fits.len() {
            let o = self.fits[i];
            if set[fixed..]
                .iter()
                .all(|s| !clash(self.pricer.analysis, s, o))
            {
                set.push(o);
                self.descend(i + 1, set, fixed);
                set.pop();
            }
        }
    }
}
