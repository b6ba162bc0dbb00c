//! The choice for one device group, as independent problems.
//!
//! Layer groups that share a factor are one problem. Factors of many layer groups would join all groups, so these
//! *global* factors are chosen first. Problems that differ only in names are solved once.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;
use tpc_ir::Group;
use tpc_ir::factor::Var;

use super::components::components;
use super::layer_group::{LayerGroup, Signature};
use super::options::{SplitOption, options_for};
use super::price::Pricer;

const GLOBAL_SPAN: usize = 4;

/// True if a factor in `span` of `all` layer groups is global, that is, chosen before all others.
pub(super) const fn is_global(span: usize, all: usize) -> bool {
    span > GLOBAL_SPAN || (span == all && all > 2)
}

pub(super) struct Problem {
    pub(super) whole: LayerGroup,
    pub(super) options: Vec<SplitOption>,
    pub(super) alike: Vec<LayerGroup>,
}

impl Problem {
    pub(super) fn count(&self) -> usize {
        1 + self.alike.len()
    }

    pub(super) fn rename(&self, option: &SplitOption, alike: &LayerGroup) -> SplitOption {
        rename(option, &self.whole, alike)
    }
}

fn rename(option: &SplitOption, from: &LayerGroup, to: &LayerGroup) -> SplitOption {
    let rename = |l: &Var| {
        let at = from.leaves.iter().position(|x| x == l);
        at.map_or(*l, |i| to.leaves[i])
    };
    SplitOption {
        leaves: option.leaves.iter().map(rename).collect(),
        ..option.clone()
    }
}

pub(super) struct OptionTable<'a> {
    layer_groups: &'a [LayerGroup],
    spans: BTreeMap<Var, Vec<usize>>,
    by_leaf: BTreeMap<Var, Vec<SplitOption>>,
    pub(super) global: Vec<SplitOption>,
}

impl<'a> OptionTable<'a> {
    pub(super) fn new(
        pricer: &Pricer<'_>,
        group: Group,
        layer_groups: &'a [LayerGroup],
    ) -> OptionTable<'a> {
        let mut spans: BTreeMap<Var, Vec<usize>> = BTreeMap::new();
        for (i, g) in layer_groups.iter().enumerate() {
            for &l in &g.leaves {
                spans.entry(l).or_default().push(i);
            }
        }
        let mut out = OptionTable {
            layer_groups,
            spans,
            by_leaf: BTreeMap::new(),
            global: Vec::new(),
        };
        let mut first_alike: FxHashMap<&Signature, usize> = FxHashMap::default();
        for (i, g) in layer_groups.iter().enumerate() {
            let first = *first_alike.entry(&g.signature).or_insert(i);
            for (k, &leaf) in g.leaves.iter().enumerate() {
                if out.by_leaf.contains_key(&leaf) {
                    continue;
                }
                let options = out.shared_options(k, i, first).unwrap_or_else(|| {
                    options_for(pricer.facts, leaf, (group, pricer.device_weights))
                });
                if out.is_global(&leaf) {
                    out.global.extend(options.iter().cloned());
                }
                out.by_leaf.insert(leaf, options);
            }
        }
        out
    }

    /// Returns the options of leaf `k`, copied from the first alike group. `None` unless only one layer group has the
    /// leaf, because other groups may use it differently.
    fn shared_options(&self, k: usize, group: usize, first: usize) -> Option<Vec<SplitOption>> {
        let (to, from) = (&self.layer_groups[group], &self.layer_groups[first]);
        let like = from.leaves.get(k)?;
        let local = |l: &Var| self.spans[l].len() == 1;
        if first == group
            || from.leaves.len() != to.leaves.len()
            || !local(&to.leaves[k])
            || !local(like)
        {
            return None;
        }
        let options = self.by_leaf.get(like)?;
        Some(options.iter().map(|o| rename(o, from, to)).collect())
    }

    fn is_global(&self, leaf: &Var) -> bool {
        is_global(self.spans[leaf].len(), self.layer_groups.len())
    }

    fn group_members(&self) -> Vec<Vec<usize>> {
        let mut ties = UnionFind::new(self.layer_groups.len());
        for (leaf, span) in &self.spans {
            if !self.by_leaf[leaf].is_empty() && !self.is_global(leaf) {
                for &other in &span[1..] {
                    ties.union(span[0], other);
                }
            }
        }
        components(ties)
    }

    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut out: Vec<Problem> = Vec::new();
        for members in self.group_members() {
            let whole = self.merge_layer_groups(&members);
            let alike = |p: &&mut Problem| {
                p.whole.signature == whole.signature && self.has_same_options(&p.whole, &whole)
            };
            if let Some(p) = out.iter_mut().find(alike) {
                p.alike.push(whole);
                continue;
            }
            let leaves = whole.leaves.iter().filter(|l| !self.is_global(l));
            let options = leaves.flat_map(|l| self.by_leaf[l].iter().cloned());
            out.push(Problem {
                options: options.collect(),
                whole,
                alike: Vec::new(),
            });
        }
        out
    }

    fn merge_layer_groups(&self, members: &[usize]) -> LayerGroup {
        let mut out = self.layer_groups[members[0]].clone();
        let mut known: BTreeSet<Var> = out.leaves.iter().copied().collect();
        for &m in &members[1..] {
            let other = &self.layer_groups[m];
            out.insts.extend(&other.insts);
            out.signature.append(&other.signature);
            for &l in &other.leaves {
                if known.insert(l) {
                    out.leaves.push(l);
                }
            }
        }
        out.insts.sort_unstable();
        out
    }

    /// True if corresponding leaves have the same options. Alike groups may differ in this, because other layer groups
    /// may forbid a split.
    fn has_same_options(&self, a: &LayerGroup, b: &LayerGroup) -> bool {
        let same = |x: &SplitOption, y: &SplitOption| {
            x.leaves.len() == y.leaves.len() && x.ranges == y.ranges
        };
        a.leaves.len() == b.leaves.len()
            && a.leaves.iter().zip(&b.leaves).all(|(x, y)| {
                let (xs, ys) = (&self.by_leaf[x], &self.by_leaf[y]);
                xs.len() == ys.len()
                    && xs.iter().zip(ys).all(|(x, y)| same(x, y))
                    && self.is_global(x) == self.is_global(y)
            })
    }
}
