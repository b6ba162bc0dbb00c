//! Sums over devices, of branches, and of biases. A sum is a bag of terms; the rules make it smaller.

use std::collections::BTreeMap;

use egg::Id;
use tpc_ir::op::{AddId, Binary, BinaryKind, Repeat, Scale};
use tpc_ir::{DType, Interval, Op};

use crate::prove::index_set::{IndexSet, NotExpressible, Pattern, common_unit};
use crate::prove::language::{Head, Mask};
use crate::prove::readings::{find_relation, is_whole, readings};
use crate::prove::term_graph::{ProofRule, TermGraph};

pub(super) fn replace_summands(
    terms: &mut TermGraph,
    args: &[Id],
    taken: &[usize],
    instead: Id,
) -> Id {
    let mut rest: Vec<Id> = (0..args.len())
        .filter(|i| !taken.contains(i))
        .map(|i| args[i])
        .collect();
    rest.push(instead);
    terms.sum(rest)
}

pub(super) const SUM_OF_TWO: ProofRule = ProofRule {
    name: "sum-of-two",
    equation: "add(x, y) = x + repeat(y); sub(x, y) = x + (−1 · repeat(y))",
    apply: |terms, term, id| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::Binary(Binary { kind }), &[x, y]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        let minus = match kind {
            BinaryKind::Add => false,
            BinaryKind::Sub => true,
            BinaryKind::Mul | BinaryKind::Div => return Vec::new(),
        };
        let Some(ty) = terms.ty(id).cloned() else {
            return Vec::new();
        };
        let (Some(x), Some(mut y)) = (as_f32(terms, x), as_f32(terms, y)) else {
            return Vec::new();
        };
        if terms.ty(y).is_some_and(|t| t.dims != ty.dims) {
            let repeat = Repeat { dims: ty.dims };
            y = terms.add_op(&repeat.into(), 0, vec![y]);
        }
        if minus {
            y = scale_term(terms, -1.0, y);
        }
        vec![terms.sum(vec![x, y])]
    },
};

/// Returns a value as f32. A sum has the type of its terms, but `1 · x` is f32 for every `x`.
fn as_f32(terms: &mut TermGraph, x: Id) -> Option<Id> {
    let dtype = terms.ty(x)?.dtype;
    if dtype == DType::F32 {
        return Some(x);
    }
    if dtype.is_integer() {
        return None;
    }
    Some(scale_term(terms, 1.0, x))
}

fn scale_term(terms: &mut TermGraph, factor: f32, x: Id) -> Id {
    let op = Scale {
        scale: factor,
        bias: 0.0,
    };
    terms.add_op(&op.into(), 0, vec![x])
}

pub(super) const BIAS_OF_EXPERTS: ProofRule = ProofRule {
    name: "bias-of-experts",
    equation: "add_id(x, b, ids) = x + add_id(0, b, ids)",
    apply: |terms, term, id| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (&Op::AddId(AddId { window }), &[x, bias, ids]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        let same = terms.ty(x).is_some() && terms.ty(x) == terms.ty(id);
        let Some(ty) = terms.ty(x).cloned().filter(|_| same) else {
            return Vec::new();
        };
        if terms.is_zero(x) {
            return Vec::new();
        }
        let zero = terms.zero(&ty);
        let added = terms.add_op(&AddId { window }.into(), result, vec![zero, bias, ids]);
        vec![terms.sum(vec![x, added])]
    },
};

pub(super) const FLATTEN: ProofRule = ProofRule {
    name: "flatten",
    equation: "(x + y) + z = x + y + z; x + 0 = x; 0 + 0 = 0; ax + bx = (a + b)x",
    apply: |terms, term, id| {
        if term.head != Head::Sum {
            return Vec::new();
        }
        let own = terms.graph.find(id);
        let mut flat = Vec::new();
        for &a in &term.args {
            if terms.is_zero(a) && term.args.len() > 1 {
                continue;
            }
            match terms.summands(a) {
                Some(sum) if terms.graph.find(a) != own => flat.extend(sum),
                _ => flat.push(a),
            }
        }
        let flat = collect_multiples(terms, flat);
        match term.args.first() {
            Some(&zero) if flat.is_empty() => vec![zero],
            Some(_) if flat[..] != term.args[..] => vec![terms.sum(flat)],
            _ => Vec::new(),
        }
    },
};

/// Joins the multiples of one value in a sum: `ax + bx = (a + b)x`. Without this, a value added to itself n times would
/// be a sum of 2ⁿ terms. Multiples stay apart if their factors' sum is 0 or not an f32. They also stay apart if the
/// value is not f32: a multiple is f32, but their sum is not.
fn collect_multiples(terms: &mut TermGraph, flat: Vec<Id>) -> Vec<Id> {
    let mut multiples: Vec<(Id, Vec<(f32, Id)>)> = Vec::new();
    for a in flat {
        let a = terms.graph.find(a);
        let scale = terms.ops_of(a).into_iter().find_map(|(op, _, args)| {
            let Op::Scale(s) = &*op else { return None };
            let of = terms.graph.find(args[0]);
            let same = terms.ty(of).is_some_and(|t| t.dtype == DType::F32);
            (s.bias == 0.0 && s.scale.is_finite() && same && of != a).then_some((s.scale, of))
        });
        let (factor, of) = scale.unwrap_or((1.0, a));
        match multiples.iter_mut().find(|(x, _)| *x == of) {
            Some((_, all)) => all.push((factor, a)),
            None => multiples.push((of, vec![(factor, a)])),
        }
    }
    let mut out = Vec::new();
    for (x, all) in multiples {
        let same = terms.ty(x).is_some_and(|t| t.dtype == DType::F32);
        let sum = all.iter().try_fold(0.0, |sum, (f, _)| exact_sum(sum, *f));
        match sum {
            Some(factor) if same && all.len() > 1 && factor != 0.0 => {
                out.push(scale_term(terms, factor, x));
            }
            _ => out.extend(all.into_iter().map(|(_, a)| a)),
        }
    }
    out
}

fn exact_sum(a: f32, b: f32) -> Option<f32> {
    let sum = f64::from(a) + f64::from(b);
    // The error of a sum of two doubles, by Knuth.
    let other = sum - f64::from(a);
    let error = (f64::from(a) - (sum - other)) + (f64::from(b) - other);
    let exact = error == 0.0 && f64::from(sum as f32) == sum;
    exact.then_some(sum as f32)
}

pub(super) const CONTRACTION: ProofRule = ProofRule {
    name: "contraction",
    equation: "Σ f(x[pᵢ], y[pᵢ]) = f(x, y), if f sums over the axis that the pᵢ partition",
    apply: |terms, term, _| {
        if term.head != Head::Sum {
            return Vec::new();
        }
        // Terms that are parts of one sum, by the whole.
        type Key = (u32, u8, Vec<Id>, Vec<IndexSet>);
        let mut found: Vec<(Key, Vec<(usize, Pattern)>)> = Vec::new();
        for (i, &a) in term.args.iter().enumerate() {
            for (op, result, args) in terms.ops_of(a) {
                for reading in readings(terms, &args) {
                    if is_whole(&reading) {
                        continue;
                    }
                    let Some(relation) = find_relation(terms, &op, &reading) else {
                        continue;
                    };
                    let (Some(pattern), None) = (relation.summed.clone(), relation.mask) else {
                        continue;
                    };
                    let bases = reading.iter().map(|f| f.base).collect();
                    let op = terms.graph.analysis.tables.ops.intern(&relation.op);
                    let key = (op, result, bases, relation.results.clone());
                    match found.iter_mut().find(|(k, _)| *k == key) {
                        Some((_, members)) if members.iter().any(|&(j, _)| j == i) => {}
                        Some((_, members)) => members.push((i, pattern)),
                        None => found.push((key, vec![(i, pattern)])),
                    }
                }
            }
        }
        for ((op, result, bases, results), members) in found {
            let indices: Vec<&Pattern> = members.iter().map(|(_, p)| p).collect();
            if !is_partition(&indices) {
                continue;
            }
            let taken: Vec<usize> = members.iter().map(|&(i, _)| i).collect();
            let dims = terms.ty(term.args[taken[0]]).map(|t| t.dims.clone());
            let (Some(dims), Some(indices)) = (dims, results.get(usize::from(result))) else {
                continue;
            };
            let whole = terms.add(Head::Op { op, result }, bases);
            let whole = terms.view(whole, indices.clone(), dims);
            return vec![replace_summands(terms, &term.args, &taken, whole)];
        }
        Vec::new()
    },
};

fn is_partition(indices: &[&Pattern]) -> bool {
    let checked = || -> Result<bool, NotExpressible> {
        let (first, rest) = indices.split_first().ok_or(NotExpressible)?;
        let mut unit = first.unit.clone();
        let mut period = first.period()?;
        for p in rest {
            unit = common_unit(&unit, &p.unit)?;
            let other = p.period()?;
            if other.checked_div(&period).is_some() {
                period = other;
            } else if period.checked_div(&other).is_none() {
                return Err(NotExpressible);
            }
        }
        let mut intervals = Vec::new();
        for p in indices {
            intervals.extend(p.refine(&unit, &period)?);
        }
        let size = period.checked_div(&unit).and_then(|d| d.as_const());
        Ok(covers_once(intervals, size.ok_or(NotExpressible)?))
    };
    checked() == Ok(true)
}

fn covers_once(mut intervals: Vec<Interval>, size: u64) -> bool {
    intervals.retain(|r| r.len > 0);
    intervals.sort_by_key(|r| r.start);
    let end = intervals
        .iter()
        .try_fold(0, |at, r| (r.start == at).then_some(r.end()));
    end == Some(size)
}

pub(super) const MASKS: ProofRule = ProofRule {
    name: "masks",
    equation: "Σ mask(x, wᵢ, ids) = x, if the wᵢ make up all rows",
    apply: |terms, term, _| {
        if term.head != Head::Sum {
            return Vec::new();
        }
        let mut found: BTreeMap<(Id, Id, u64), Vec<(usize, Mask)>> = BTreeMap::new();
        for (i, &a) in term.args.iter().enumerate() {
            for (mask, value, ids) in terms.masks_of(a) {
                let key = (terms.graph.find(value), terms.graph.find(ids), mask.total);
                let members = found.entry(key).or_default();
                if members.iter().all(|&(j, _)| j != i) {
                    members.push((i, mask));
                }
            }
        }
        for ((value, _, total), members) in found {
            if covers_once(members.iter().map(|(_, m)| m.rows).collect(), total) {
                let taken: Vec<usize> = members.iter().map(|&(i, _)| i).collect();
                return vec![replace_summands(terms, &term.args, &taken, value)];
            }
        }
        Vec::new()
    },
};
