//! The choice of splits: an exact search over the compatible sets of options of each distinct region.

use std::collections::BTreeMap;

use tpc_ir::factor::Var;
use tpc_ir::{Class, Group, Inst};

use super::options::{SplitOption, clash, options_for};
use super::price::{Price, Pricer};
use super::region::Region;
use super::search::{independent_sets, search};
use crate::factors::Selection;

/// The chosen options.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The options; a class is the position in this list.
    pub options: Vec<SplitOption>,
    by_leaf: BTreeMap<(Group, Var), Class>,
    /// Sets of options that were priced.
    pub priced: u64,
    /// Whether every compatible set was priced, so that the choice is the cheapest by the cost model.
    pub optimal: bool,
    /// Distinct regions.
    pub distinct: usize,
    /// What the choice costs, in µs per token, as splits within layers are compared.
    pub cost: f64,
    /// What every compatible set costs at least: [`Self::cost`] where all were priced.
    pub floor: f64,
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

    /// By how much of the cheapest compatible set's cost this choice may cost more, at most; 0 where it is the cheapest.
    pub fn excess(&self) -> f64 {
        if self.optimal || self.floor <= 0.0 {
            return 0.0;
        }
        (self.cost / self.floor - 1.0).max(0.0)
    }

    /// The choice of these options; of options that share a leaf the first counts.
    pub fn from_options(options: impl IntoIterator<Item = SplitOption>) -> Choice {
        let mut out = Choice::none();
        options.into_iter().for_each(|o| out.push(o));
        out
    }

    /// Adds the choice for another group.
    pub(super) fn join(&mut self, other: Choice) {
        other.options.into_iter().for_each(|o| self.push(o));
        self.priced += other.priced;
        self.optimal &= other.optimal;
        self.distinct += other.distinct;
        self.cost += other.cost;
        self.floor += other.floor;
    }

    fn push(&mut self, option: SplitOption) {
        let taken = |l: &Var| self.by_leaf.contains_key(&(option.group, *l));
        if option.leaves.iter().any(taken) {
            return;
        }
        let class = Class::new(self.options.len());
        for &l in &option.leaves {
            self.by_leaf.insert((option.group, l), class);
        }
        self.options.push(option);
    }
}

impl Selection for Choice {
    fn class_of(&self, group: Group, leaf: Var) -> Option<Class> {
        self.by_leaf.get(&(group, leaf)).copied()
    }
}

/// The options chosen for a problem, and what they cost.
type Pick = (Price, Vec<SplitOption>);

/// Sets of options for factors of many regions that are tried at most.
const GLOBAL_LIMIT: usize = 256;

/// Factors of more regions than this are decided before all others.
const GLOBAL_SPAN: usize = 4;

/// Whether a factor that runs through `span` of `everywhere` regions is decided before all others.
pub(super) const fn is_global(span: usize, everywhere: usize) -> bool {
    span > GLOBAL_SPAN || (span == everywhere && everywhere > 2)
}

/// Chooses the options for the regions of one group.
pub fn choose(pricer: &Pricer<'_>, group: Group, regions: &[Region]) -> Choice {
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
    let is_global = |span: &[usize]| is_global(span.len(), everywhere);
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
            // What is in no other region is alike in alike regions.
            let like = rep.leaves.get(k).filter(|l| {
                let local = span.len() == 1 && spans[l].len() == 1;
                local && rep_of[i] != i && rep.leaves.len() == r.leaves.len()
            });
            let options = match like.and_then(|l| made.get(l)) {
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
                None => options_for(graph, factors, analysis, users, leaf, (group, shares)),
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
    // What other regions do with a value may forbid a split here that an alike region allows.
    let same_options = |a: &Region, b: &Region| {
        let alike = |x: &SplitOption, y: &SplitOption| {
            x.leaves.len() == y.leaves.len() && x.ranges == y.ranges
        };
        a.leaves.len() == b.leaves.len()
            && a.leaves.iter().zip(&b.leaves).all(|(x, y)| {
                let (xs, ys) = (&made[x], &made[y]);
                xs.len() == ys.len()
                    && xs.iter().zip(ys).all(|(x, y)| alike(x, y))
                    && is_global(&spans[x]) == is_global(&spans[y])
            })
    };
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
        if let Some(p) = problems
            .iter_mut()
            .find(|p| p.region.signature == region.signature && same_options(&p.region, &region))
        {
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
    let all: Vec<usize> = (0..global.len()).collect();
    let (global_sets, complete) = independent_sets(&all, GLOBAL_LIMIT, &|a, b| {
        clash(analysis, &global[a], &global[b])
    });
    choice.optimal &= complete;
    // Whether to split what runs through everything, such as the residual width, is decided by what collectives really
    // take: it needs several times as many as any other split.
    let mut best: Option<(f64, Vec<SplitOption>, Vec<Pick>)> = None;
    for chosen_global in global_sets {
        let globals: Vec<&SplitOption> = chosen_global.iter().map(|&i| &global[i]).collect();
        let mut total = 0.0;
        let mut picks = Vec::new();
        for p in &problems {
            let fits: Vec<&SplitOption> = p
                .options
                .iter()
                .filter(|o| globals.iter().all(|g| !clash(analysis, o, g)))
                .collect();
            match search(pricer, &p.region, &globals, &fits) {
                Some(found) => {
                    choice.priced += found.priced;
                    choice.optimal &= found.optimal;
                    total += found.price.uncapped * (1 + p.alike.len()) as f64;
                    picks.push((found.price, found.set.into_iter().cloned().collect()));
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
        for (p, (price, _)) in problems.iter().zip(&picks) {
            let alike = (1 + p.alike.len()) as f64;
            choice.cost += alike * price.objective;
            choice.floor += alike
                * if choice.optimal {
                    price.objective
                } else {
                    let all: Vec<&SplitOption> = global.iter().chain(&p.options).collect();
                    pricer.floor(&p.region, &all).min(price.objective)
                };
        }
        globals.into_iter().for_each(|g| choice.push(g));
        // In program order, so that classes are numbered as people read.
        let mut by_region: Vec<(Inst, SplitOption)> = Vec::new();
        for (p, (_, set)) in problems.iter().zip(picks) {
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
