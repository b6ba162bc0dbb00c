use std::collections::BTreeSet;

use tpc_ir::factor::Var;
use tpc_ir::{Group, Inst, Interval, Value};

use super::kind::kind_of;
use super::ranges::{self, ChainCuts};
use crate::factors::{Analysis, Factors, GraphFacts};
use crate::gcd::gcd;

/// A split of one factor or of a chain of two factors.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitOption {
    /// The group of devices.
    pub group: Group,
    /// The leaf, or the major and the minor leaf of a chain. A chain is split by flat indices.
    pub leaves: Vec<Var>,
    /// The range of each device.
    pub ranges: Vec<Interval>,
    /// The granule: all ranges are multiples of this number of indices.
    pub granule: u64,
    /// True if ranges may end inside quantisation blocks: each device stores all blocks that its range touches.
    pub shares_blocks: bool,
    /// The kind of the factor, as a phrase for messages.
    pub kind: &'static str,
    /// True if every assignment has this option, because the plan divides caches by cells.
    pub required: bool,
}

/// True if both options would split one value twice.
pub(super) fn clash(analysis: &Analysis, a: &SplitOption, b: &SplitOption) -> bool {
    let together = |x, y| x == y || analysis.leaves[x].co_occurring.contains(y);
    a.group == b.group
        && a.leaves
            .iter()
            .any(|x| b.leaves.iter().any(|y| together(x, y)))
}

/// The reason why a factor cannot be split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An op needs the factor whole.
    Whole(Inst),
    /// A value has the factor twice.
    Repeated(Value),
    /// An index counts along more than this factor.
    Indexed(Inst),
    /// The size is known only at run time.
    Symbolic,
    /// No weight or state has the factor.
    NotStored,
    /// An override keeps this value whole on every device.
    PinnedWhole(Value),
    /// Quantisation blocks of this many indices leave fewer than two units.
    Granule(u64),
}

/// Returns the reason, if any, why `leaf` cannot be split alone.
pub fn refusal(factors: &Factors, analysis: &Analysis, leaf: Var) -> Option<Refusal> {
    let facts = analysis.leaves.get(&leaf)?;
    let size = factors.space.size(leaf);
    if size.as_const().is_none() {
        return Some(Refusal::Symbolic);
    }
    if let Some(&i) = facts.whole.first() {
        return Some(Refusal::Whole(i));
    }
    if let Some(v) = facts.pinned_whole {
        return Some(Refusal::PinnedWhole(v));
    }
    if let Some(v) = facts.repeated {
        return Some(Refusal::Repeated(v));
    }
    if let Some(i) = facts.indexed_part {
        return Some(Refusal::Indexed(i));
    }
    facts.stored.is_empty().then_some(Refusal::NotStored)
}

/// Granules of a chain of one or two leaves, in flat indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granules {
    /// The granule at which every tensor can be cut: file blocks, or parts of blocks that devices can repack. `None` if
    /// only the whole range is a multiple.
    pub hard: Option<u64>,
    /// True if ranges may end inside blocks: every quantised tensor can store shared edge blocks.
    pub soft: bool,
}

pub(super) fn granules(facts: GraphFacts<'_>, chain: &[Var]) -> Granules {
    let GraphFacts {
        graph,
        factors,
        analysis,
        users,
    } = facts;
    let size = |v: Var| factors.space.size(v).as_const().unwrap_or(1);
    let total: u64 = chain.iter().map(|&v| size(v)).product();
    let mut out = Granules {
        hard: Some(1),
        soft: true,
    };
    let stored: BTreeSet<Value> = chain
        .iter()
        .filter_map(|v| analysis.leaves.get(v))
        .flat_map(|f| f.stored.iter().copied())
        .collect();
    // True if sharing edge blocks saves more than a few elements.
    let mut spares = false;
    for v in stored {
        let ty = &graph.value(v).ty;
        if ty.dtype.block_len() == 1 {
            continue;
        }
        let summands = &analysis.summands[v.index()];
        let mut starts_at = 0;
        for summand in summands.iter() {
            let axis = &summand.axes[0];
            let len: u64 = axis.iter().map(|&l| size(l)).product();
            let place = chain
                .iter()
                .rev()
                .find_map(|c| axis.iter().position(|l| l == c).map(|i| (*c, i)));
            if let Some((leaf, i)) = place {
                let minor: u64 = axis[i + 1..].iter().map(|&l| size(l)).product();
                let first = axis.iter().position(|l| chain.contains(l)).unwrap_or(i);
                // A device's part of a row is one contiguous run.
                let alone = summands.len() == 1 && first == 0 && Some(&leaf) == chain.last();
                let block = match alone {
                    true => analysis.granules[v.index()],
                    false => ty.dtype.block_len(),
                };
                let need = block / gcd(block, minor);
                // A range of the major leaf contains the minor leaf whole.
                let flat = if Some(&leaf) == chain.last() || need == 1 {
                    need
                } else {
                    need * total / size(leaf)
                };
                out.hard = out.hard.map(|h| h / gcd(h, flat) * flat);
                let inner: u64 = axis[first..].iter().map(|&l| size(l)).product();
                if (first > 0 && !inner.is_multiple_of(block)) || starts_at % block != 0 {
                    out.hard = None;
                }
                if need > 1 {
                    let contracted = |&inst: &Inst| {
                        let data = graph.inst(inst);
                        data.op.is_product() && data.operands[0] == v
                    };
                    spares |= minor > 1 || block == ty.dtype.block_len();
                    out.soft &= alone && users.of(v).iter().all(contracted);
                }
            }
            starts_at += len;
        }
    }
    out.soft &= spares || out.hard == Some(1);
    out.hard = out.hard.filter(|&h| h < total || h == 1);
    out
}

/// Returns the options to split `leaf` in a group with these device weights, alone or as the major leaf of a chain.
pub fn options_for(
    facts: GraphFacts<'_>,
    leaf: Var,
    (group, device_weights): (Group, &[f64]),
) -> Vec<SplitOption> {
    let size = |v: Var| facts.factors.space.size(v).as_const();
    let n = size(leaf).unwrap_or(1);
    if refusal(facts.factors, facts.analysis, leaf).is_some() || n < 2 {
        return Vec::new();
    }
    if facts.analysis.leaves[&leaf].owned {
        return one_part_each(facts, leaf, group, n);
    }
    let mut out = Options {
        facts,
        group,
        found: Vec::new(),
    };
    out.add(&[leaf], n, &|granule| {
        Some(ranges::proportional(n, granule, device_weights))
    });
    if is_even(n, device_weights) {
        return out.found;
    }
    // Chains are options only if the devices cannot share the major leaf evenly.
    for &minor in &facts.analysis.leaves[&leaf].co_occurring {
        let Some(m) = size(minor).filter(|&m| m > 1) else {
            continue;
        };
        if n.saturating_mul(m) > LONGEST_CHAIN || !may_follow(facts.analysis, leaf, minor) {
            continue;
        }
        for cuts in [ChainCuts::Uniform, ChainCuts::Free] {
            out.add(&[leaf, minor], n * m, &|granule| {
                ranges::chain(n, m, granule, cuts, device_weights)
            });
        }
    }
    out.found
}

/// Returns the option that gives each device one part of a cache. Returns an empty list unless parts and devices are
/// equally many.
fn one_part_each(facts: GraphFacts<'_>, leaf: Var, group: Group, parts: u64) -> Vec<SplitOption> {
    let devices = facts.graph.group(group).devices.len() as u64;
    let part = |start: u64| Interval { start, len: 1 };
    let option = SplitOption {
        group,
        leaves: vec![leaf],
        ranges: (0..parts).map(part).collect(),
        granule: 1,
        shares_blocks: false,
        kind: "cells",
        required: true,
    };
    (devices == parts).then_some(option).into_iter().collect()
}

/// The maximum number of flat indices of a chain; the search tries every cut.
const LONGEST_CHAIN: u64 = 1024;

/// True if all nonzero device weights are equal and the devices share `n` indices evenly.
fn is_even(n: u64, device_weights: &[f64]) -> bool {
    let active = device_weights.iter().filter(|&&w| w > 0.0).count() as u64;
    let equal = |w: &f64| *w <= 0.0 || (w - device_weights[0]).abs() < 1e-12;
    device_weights.iter().all(equal) && n.is_multiple_of(active.max(1))
}

/// True if `minor` can follow `major` in a chain: `minor` can be split and is always right after `major`.
fn may_follow(analysis: &Analysis, major: Var, minor: Var) -> bool {
    let facts = &analysis.leaves[&minor];
    facts.before == BTreeSet::from([Some(major)])
        && facts.whole.is_empty()
        && facts.repeated.is_none()
        && facts.indexed_part.is_none()
        && facts.pinned_whole.is_none()
}

struct Options<'a> {
    facts: GraphFacts<'a>,
    group: Group,
    found: Vec<SplitOption>,
}

impl Options<'_> {
    /// Adds the options of a chain of `size` flat indices. `cut` returns the ranges for a granule.
    fn add(&mut self, leaves: &[Var], size: u64, cut: &dyn Fn(u64) -> Option<Vec<Interval>>) {
        let granules = granules(self.facts, leaves);
        let kind = kind_of(self.facts.graph, self.facts.analysis, leaves);
        let mut push = |granule: u64, shares_blocks: bool| {
            if let Some(ranges) = cut(granule)
                && ranges.iter().filter(|r| r.len > 0).count() > 1
                && !(self.found.iter()).any(|o| o.leaves == leaves && o.ranges == ranges)
            {
                self.found.push(SplitOption {
                    group: self.group,
                    leaves: leaves.to_vec(),
                    ranges,
                    granule,
                    shares_blocks,
                    kind,
                    required: false,
                });
            }
        };
        if let Some(hard) = granules.hard {
            push(hard, false);
        }
        if granules.hard != Some(1) && granules.soft {
            // Eighths of a block balance the devices' loads, and suit kernels.
            let eighth = granules.hard.map_or(32, |h| h / 8);
            push(if size >= 1024 { eighth.clamp(1, 32) } else { 1 }, true);
        }
    }
}
