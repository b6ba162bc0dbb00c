//! The ways in which a factor may be split.

use std::collections::BTreeSet;

use tpc_ir::factor::Var;
use tpc_ir::op::Role;
use tpc_ir::{DType, Graph, Group, Inst, Interval, Op, Value};

use super::ranges::{self, ChainCuts};
use crate::factors::{Analysis, Factors};
use crate::gcd::gcd;
use crate::users::Users;

/// One way to split one factor, or a chain of two.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitOption {
    /// The group whose devices share it.
    pub group: Group,
    /// The leaf; or the major and the minor leaf of a chain, split as one by flat ranges.
    pub leaves: Vec<Var>,
    /// What each device holds.
    pub ranges: Vec<Interval>,
    /// Ranges are multiples of this.
    pub granule: u64,
    /// Ranges may end inside quantisation blocks: each device stores the whole blocks that its range touches.
    pub shares_blocks: bool,
    /// What the factor is, for people.
    pub kind: &'static str,
}

/// Whether two options cannot both be chosen: they would split one value twice.
pub(super) fn clash(analysis: &Analysis, a: &SplitOption, b: &SplitOption) -> bool {
    let together = |x, y| x == y || analysis.leaves[x].with.contains(y);
    a.group == b.group
        && a.leaves
            .iter()
            .any(|x| b.leaves.iter().any(|y| together(x, y)))
}

/// Why a factor cannot be split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An op needs it whole.
    Whole(Inst),
    /// It occurs twice in one value.
    Twice(Value),
    /// An index counts along more than this factor alone.
    Indexed(Inst),
    /// Its size is known only at run time.
    Symbolic,
    /// No weight or state has it.
    NotStored,
    /// The user wants this value whole on every device.
    Kept(Value),
    /// Quantisation blocks leave fewer than two units.
    Granule(u64),
}

/// Why `leaf` cannot be split by itself, if it cannot.
pub fn refusal(factors: &Factors, analysis: &Analysis, leaf: Var) -> Option<Refusal> {
    let facts = analysis.leaves.get(&leaf)?;
    let size = factors.space.size(leaf);
    if size.as_const().is_none() {
        return Some(Refusal::Symbolic);
    }
    if let Some(&i) = facts.whole.first() {
        return Some(Refusal::Whole(i));
    }
    if let Some(v) = facts.kept {
        return Some(Refusal::Kept(v));
    }
    if let Some(v) = facts.twice {
        return Some(Refusal::Twice(v));
    }
    if let Some(i) = facts.indexed_part {
        return Some(Refusal::Indexed(i));
    }
    facts.stored.is_empty().then_some(Refusal::NotStored)
}

/// Granules of a chain of leaves (one or two), in units of its flat index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granules {
    /// Ranges at multiples of this end at blocks everywhere; `None` where no such ranges are proper parts.
    pub hard: Option<u64>,
    /// Ranges may end inside blocks, because every quantised tensor concerned can store shared edge blocks.
    pub soft: bool,
}

pub(super) fn granules(
    graph: &Graph,
    factors: &Factors,
    analysis: &Analysis,
    users: &Users,
    chain: &[Var],
) -> Granules {
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
    for v in stored {
        let block = graph.value(v).ty.dtype.block_len();
        if block == 1 {
            continue;
        }
        let terms = &analysis.terms[v.index()];
        let mut starts_at = 0;
        for term in terms {
            let axis = &term.axes[0];
            let len: u64 = axis.iter().map(|&l| size(l)).product();
            let place = chain
                .iter()
                .rev()
                .find_map(|c| axis.iter().position(|l| l == c).map(|i| (*c, i)));
            if let Some((leaf, i)) = place {
                let minor: u64 = axis[i + 1..].iter().map(|&l| size(l)).product();
                let first = axis.iter().position(|l| chain.contains(l)).unwrap_or(i);
                let need = block / gcd(block, minor);
                // A range of the major leaf covers the minor one whole.
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
                        matches!(data.op, Op::MulMat(_) | Op::MulMatId(_)) && data.operands[0] == v
                    };
                    let alone = terms.len() == 1 && first == 0;
                    out.soft &=
                        alone && Some(&leaf) == chain.last() && users.of(v).iter().all(contracted);
                }
            }
            starts_at += len;
        }
    }
    out.hard = out.hard.filter(|&h| h < total || h == 1);
    out
}

/// Whether an op of a kind has `leaf` along `axis` of one of these operands.
fn along(
    graph: &Graph,
    analysis: &Analysis,
    leaf: Var,
    operands: impl Fn(&Op) -> &'static [usize],
    axis: usize,
) -> bool {
    let has = |v: Value| {
        let terms = &analysis.terms[v.index()];
        terms.iter().any(|t| t.axes[axis].contains(&leaf))
    };
    let mut insts = graph.insts();
    insts.any(|(_, i)| operands(&i.op).iter().any(|&o| has(i.operands[o])))
}

/// What a chain of leaves is, for people.
pub(super) fn kind_of(graph: &Graph, analysis: &Analysis, chain: &[Var]) -> &'static str {
    if chain.len() > 1 {
        return "heads";
    }
    let leaf = chain[0];
    let facts = &analysis.leaves[&leaf];
    let has = |role: Role| {
        analysis.insts.iter().any(|i| {
            i.roles
                .iter()
                .any(|r| r.role == role && r.terms.iter().flatten().any(|&l| l == leaf))
        })
    };
    if facts
        .stored
        .iter()
        .any(|&v| matches!(graph.def_op(v), Op::State(_)))
    {
        let along = |operands: fn(&Op) -> &'static [usize], axis| {
            along(graph, analysis, leaf, operands, axis)
        };
        // Keys and values; the states of recurrences.
        let cached = |op: &Op| -> &'static [usize] {
            if matches!(op, Op::FlashAttn(_)) {
                &[1, 2]
            } else {
                &[]
            }
        };
        let carried = |op: &Op| -> &'static [usize] {
            match op {
                Op::SsmScan(_) => &[0],
                Op::GatedDeltaNet(_) => &[5],
                _ => &[],
            }
        };
        return match () {
            () if along(cached, 2) => "kv heads",
            () if along(cached, 0) => "head width",
            () if along(cached, 1) => "cells",
            () if along(carried, 2) => "state heads",
            () => "state",
        };
    }
    if facts
        .stored
        .iter()
        .all(|&v| graph.value(v).ty.dtype == DType::F32 && graph.value(v).ty.dims[1].is_one())
    {
        return "vector";
    }
    let layers: BTreeSet<Option<u32>> = facts
        .stored
        .iter()
        .map(|&v| graph.inst(graph.value(v).def.0).layer)
        .collect();
    let queries = |op: &Op| -> &'static [usize] {
        if matches!(op, Op::FlashAttn(_)) {
            &[0]
        } else {
            &[]
        }
    };
    // Rows of a weight that are looked up by index.
    let looked_up = graph.insts().any(|(_, i)| {
        matches!(i.op, Op::GetRows(_))
            && facts.stored.contains(&i.operands[0])
            && analysis.terms[i.operands[0].index()]
                .iter()
                .any(|t| t.axes[1].contains(&leaf))
    });
    match () {
        () if has(Role::Expert) => "experts",
        () if looked_up => "vocabulary",
        () if has(Role::Norm) && layers.len() > 1 => "model width",
        () if has(Role::Norm) => "normed width",
        () if along(graph, analysis, leaf, queries, 2) => "heads per kv head",
        () if has(Role::Reduce) => "width",
        () => "rows",
    }
}

/// Every way to split `leaf` among the devices of a group with these shares, by itself or as the major part of a chain.
pub fn options_for(
    graph: &Graph,
    factors: &Factors,
    analysis: &Analysis,
    users: &Users,
    leaf: Var,
    (group, shares): (Group, &[f64]),
) -> Vec<SplitOption> {
    let mut out = Vec::new();
    if refusal(factors, analysis, leaf).is_some() {
        return out;
    }
    let n = factors.space.size(leaf).as_const().unwrap_or(1);
    if n < 2 {
        return out;
    }
    let add = |out: &mut Vec<SplitOption>,
               leaves: Vec<Var>,
               size: u64,
               cut: &dyn Fn(u64) -> Option<Vec<Interval>>| {
        let g = granules(graph, factors, analysis, users, &leaves);
        let kind = kind_of(graph, analysis, &leaves);
        let mut push = |granule: u64, shares_blocks: bool| {
            if let Some(ranges) = cut(granule)
                && ranges.iter().filter(|r| r.len > 0).count() > 1
                && !out.iter().any(|o| o.leaves == leaves && o.ranges == ranges)
            {
                out.push(SplitOption {
                    group,
                    leaves: leaves.clone(),
                    ranges,
                    granule,
                    shares_blocks,
                    kind,
                });
            }
        };
        if let Some(hard) = g.hard {
            push(hard, false);
        }
        if g.hard != Some(1) && g.soft {
            // An eighth of a block, so that no device is much busier than another, in steps that kernels like.
            let eighth = g.hard.map_or(32, |h| h / 8);
            push(if size >= 1024 { eighth.clamp(1, 32) } else { 1 }, true);
        }
    };
    add(&mut out, vec![leaf], n, &|granule| {
        Some(ranges::proportional(n, granule, shares))
    });
    // Chains: only where the devices cannot share the major factor evenly.
    let active = shares.iter().filter(|&&s| s > 0.0).count() as u64;
    let even = shares
        .iter()
        .all(|&s| s <= 0.0 || (s - shares[0]).abs() < 1e-12);
    if even && n.is_multiple_of(active.max(1)) {
        return out;
    }
    let facts = &analysis.leaves[&leaf];
    for &minor in &facts.with {
        let Some(m) = factors.space.size(minor).as_const().filter(|&m| m > 1) else {
            continue;
        };
        let follows = analysis.leaves[&minor].before == BTreeSet::from([Some(leaf)]);
        if !follows || n.saturating_mul(m) > 1024 || !analysis.leaves[&minor].whole.is_empty() {
            continue;
        }
        let facts = &analysis.leaves[&minor];
        if facts.twice.is_some() || facts.indexed_part.is_some() || facts.kept.is_some() {
            continue;
        }
        for cuts in [ChainCuts::Uniform, ChainCuts::Free] {
            add(&mut out, vec![leaf, minor], n * m, &|granule| {
                ranges::chain(n, m, granule, cuts, shares)
            });
        }
    }
    out
}
