//! Sums: over devices, of branches, of biases. A sum is a bag of terms; the rules make it smaller.

use std::collections::BTreeMap;

use egg::Id;
use tpc_ir::op::{AddId, Binary, BinaryKind, Inferred, Linearity, Repeat, Scale};
use tpc_ir::{DType, Interval, Op, TensorType};

use super::Rule;
use super::parts::{is_whole, related, ways};
use crate::prove::pick::{Pick, Picks, Related, Unrelated, common_unit};
use crate::prove::term::{Head, Term, Window};
use crate::prove::terms::Terms;

/// The sum of these.
pub(crate) fn plus(terms: &mut Terms, args: Vec<Id>) -> Id {
    match args.as_slice() {
        [one] => *one,
        _ => terms.add(Head::Plus, args),
    }
}

/// The sum without the terms at `taken`, and with `instead`.
fn replaced(terms: &mut Terms, args: &[Id], taken: &[usize], instead: Id) -> Id {
    let mut rest: Vec<Id> = (0..args.len())
        .filter(|i| !taken.contains(i))
        .map(|i| args[i])
        .collect();
    rest.push(instead);
    plus(terms, rest)
}

pub(super) const SUM_OF_TWO: Rule = Rule {
    name: "sum-of-two",
    equation: "add(x, y) = x + repeat(y); sub(x, y) = x + (−1 · repeat(y))",
    apply: |terms, term, id| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::Binary(Binary { kind }), &[x, y]) = (op, term.args.as_slice()) else {
            return Vec::new();
        };
        let minus = match kind {
            BinaryKind::Add => false,
            BinaryKind::Sub => true,
            BinaryKind::Mul | BinaryKind::Div => return Vec::new(),
        };
        let is_f32 = |t: Option<&TensorType>| t.is_some_and(|t| t.dtype == DType::F32);
        let Some(ty) = terms.ty(id).cloned() else {
            return Vec::new();
        };
        if !is_f32(terms.ty(x)) || !is_f32(terms.ty(y)) {
            return Vec::new();
        }
        let mut y = y;
        if terms.ty(y).is_some_and(|t| t.dims != ty.dims) {
            let repeat = Repeat { dims: ty.dims };
            y = terms.add_op(&repeat.into(), 0, vec![y]);
        }
        if minus {
            let negated = Scale {
                scale: -1.0,
                bias: 0.0,
            };
            y = terms.add_op(&negated.into(), 0, vec![y]);
        }
        vec![plus(terms, vec![x, y])]
    },
};

pub(super) const BIAS_OF_EXPERTS: Rule = Rule {
    name: "bias-of-experts",
    equation: "add_id(x, b, ids) = x + add_id(0, b, ids)",
    apply: |terms, term, id| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::AddId(AddId { window }), &[x, bias, ids]) = (op, term.args.as_slice()) else {
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
        vec![plus(terms, vec![x, added])]
    },
};

pub(super) const FLATTEN: Rule = Rule {
    name: "flatten",
    equation: "(x + y) + z = x + y + z; x + 0 = x; 0 + 0 = 0",
    apply: |terms, term, id| {
        if term.head != Head::Plus {
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
        match term.args.first() {
            Some(&zero) if flat.is_empty() => vec![zero],
            Some(_) if flat != term.args => vec![plus(terms, flat)],
            _ => Vec::new(),
        }
    },
};

pub(super) const CONTRACTION: Rule = Rule {
    name: "contraction",
    equation: "Σ f(x[pᵢ], y[pᵢ]) = f(x, y), where f sums over what the pᵢ cut into parts",
    apply: |terms, term, _| {
        if term.head != Head::Plus {
            return Vec::new();
        }
        // The parts of sums, by the whole.
        type Key = (u32, u8, Vec<Id>, Vec<Picks>);
        let mut found: Vec<(Key, Vec<(usize, Pick)>)> = Vec::new();
        for (i, &a) in term.args.iter().enumerate() {
            for (op, result, args) in terms.ops_of(a) {
                for way in ways(terms, &args) {
                    if is_whole(&way) {
                        continue;
                    }
                    let Some(relation) = related(&op, &way) else {
                        continue;
                    };
                    let (Some(pick), None) = (relation.summed, relation.window) else {
                        continue;
                    };
                    let bases = way.iter().map(|f| f.base).collect();
                    let op = terms.graph.analysis.tables.ops.number(&relation.op);
                    let key = (op, result, bases, relation.results);
                    match found.iter_mut().find(|(k, _)| *k == key) {
                        Some((_, members)) if members.iter().any(|&(j, _)| j == i) => {}
                        Some((_, members)) => members.push((i, pick)),
                        None => found.push((key, vec![(i, pick)])),
                    }
                }
            }
        }
        for ((op, result, bases, results), members) in found {
            let picks: Vec<&Pick> = members.iter().map(|(_, p)| p).collect();
            if !is_partition(&picks) {
                continue;
            }
            let taken: Vec<usize> = members.iter().map(|&(i, _)| i).collect();
            let dims = terms.ty(term.args[taken[0]]).map(|t| t.dims.clone());
            let (Some(dims), Some(picks)) = (dims, results.get(usize::from(result))) else {
                continue;
            };
            let whole = terms.add(Head::Op { op, result }, bases);
            let whole = terms.view(whole, picks.clone(), dims);
            return vec![replaced(terms, &term.args, &taken, whole)];
        }
        Vec::new()
    },
};

/// Whether each index is picked exactly once.
fn is_partition(picks: &[&Pick]) -> bool {
    let checked = || -> Related<bool> {
        let (first, rest) = picks.split_first().ok_or(Unrelated)?;
        let mut unit = first.unit.clone();
        let mut period = first.period()?;
        for p in rest {
            unit = common_unit(&unit, &p.unit)?;
            let other = p.period()?;
            if other.checked_div(&period).is_some() {
                period = other;
            } else if period.checked_div(&other).is_none() {
                return Err(Unrelated);
            }
        }
        let mut runs = Vec::new();
        for p in picks {
            runs.extend(p.refined(&unit, &period)?);
        }
        let size = period.checked_div(&unit).and_then(|d| d.as_const());
        Ok(tiles(runs, size.ok_or(Unrelated)?))
    };
    checked() == Ok(true)
}

/// Whether runs cover `size` indices, each once.
fn tiles(mut runs: Vec<Interval>, size: u64) -> bool {
    runs.retain(|r| r.len > 0);
    runs.sort_by_key(|r| r.start);
    let end = runs
        .iter()
        .try_fold(0, |at, r| (r.start == at).then_some(r.end()));
    end == Some(size)
}

pub(super) const WINDOWS: Rule = Rule {
    name: "windows",
    equation: "Σ only(x, wᵢ, ids) = x, where the wᵢ make up all there is",
    apply: |terms, term, _| {
        if term.head != Head::Plus {
            return Vec::new();
        }
        let mut found: BTreeMap<(Id, Id, u64), Vec<(usize, Window)>> = BTreeMap::new();
        for (i, &a) in term.args.iter().enumerate() {
            for (window, value, ids) in terms.only_of(a) {
                let key = (terms.graph.find(value), terms.graph.find(ids), window.total);
                let members = found.entry(key).or_default();
                if members.iter().all(|&(j, _)| j != i) {
                    members.push((i, window));
                }
            }
        }
        for ((value, _, total), members) in found {
            if tiles(members.iter().map(|(_, w)| w.run).collect(), total) {
                let taken: Vec<usize> = members.iter().map(|&(i, _)| i).collect();
                return vec![replaced(terms, &term.args, &taken, value)];
            }
        }
        Vec::new()
    },
};

/// A linear function, by what it is but for the argument that it is linear in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    head: Head,
    /// The argument, or `None` for all arguments together.
    of: Option<usize>,
    others: Vec<Id>,
    /// The types of the arguments that it is linear in.
    types: Vec<Option<TensorType>>,
}

/// The linear functions that a term is, each with its arguments.
fn functions(terms: &Terms, term: &Term) -> Vec<(Function, Vec<Id>)> {
    let ty = |&a: &Id| terms.ty(a).cloned();
    let whole = |head| Function {
        head,
        of: None,
        others: Vec::new(),
        types: term.args.iter().map(ty).collect(),
    };
    match term.head {
        Head::View(_) => vec![(whole(term.head), term.args.clone())],
        Head::Op { op, .. } if !term.args.is_empty() => {
            let op = terms.op(op);
            let types: Option<Vec<&TensorType>> = term.args.iter().map(|&a| terms.ty(a)).collect();
            let Some(types) = types else {
                return Vec::new();
            };
            let Ok(Inferred::Types(results)) = op.infer(&types) else {
                return Vec::new();
            };
            let results: Vec<&TensorType> = results.iter().collect();
            match op.rule(&types, &results).linearity {
                Linearity::Joint => vec![(whole(term.head), term.args.clone())],
                Linearity::Each(operands) => operands
                    .into_iter()
                    .filter(|&k| k < term.args.len())
                    .map(|k| {
                        let mut others = term.args.clone();
                        let own = others.remove(k);
                        let function = Function {
                            head: term.head,
                            of: Some(k),
                            others,
                            types: vec![ty(&own)],
                        };
                        (function, vec![own])
                    })
                    .collect(),
                Linearity::Opaque | Linearity::Additive | Linearity::AdditiveFirst => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

pub(super) const LINEAR: Rule = Rule {
    name: "linear",
    equation: "Σ f(xᵢ) = f(Σ xᵢ), where f is linear",
    apply: |terms, term, id| {
        if term.head != Head::Plus {
            return Vec::new();
        }
        let own = terms.graph.find(id);
        // Per function, which terms of the sum it is, with its arguments there.
        type Uses = Vec<(usize, Vec<Id>)>;
        let mut found: Vec<(Function, Uses)> = Vec::new();
        for (i, &a) in term.args.iter().enumerate() {
            for node in terms.nodes(a).iter() {
                for (function, args) in functions(terms, node) {
                    if args.iter().any(|&x| terms.graph.find(x) == own) {
                        continue;
                    }
                    match found.iter_mut().find(|(f, _)| *f == function) {
                        Some((_, members)) if members.iter().any(|(j, _)| *j == i) => {}
                        Some((_, members)) => members.push((i, args)),
                        None => found.push((function, vec![(i, args)])),
                    }
                }
            }
        }
        found.retain(|(_, members)| members.len() > 1);
        // What takes most terms first; of equals the first found.
        let most = found.iter().map(|(_, m)| m.len()).max();
        let Some((function, members)) = found.into_iter().find(|(_, m)| Some(m.len()) == most)
        else {
            return Vec::new();
        };
        let width = members[0].1.len();
        let sums: Vec<Id> = (0..width)
            .map(|k| {
                let summands = members.iter().map(|(_, args)| args[k]).collect();
                plus(terms, summands)
            })
            .collect();
        let args = match function.of {
            None => sums,
            Some(k) => {
                let mut args = function.others;
                args.insert(k, sums[0]);
                args
            }
        };
        let applied = terms.add(function.head, args);
        let taken: Vec<usize> = members.iter().map(|(i, _)| *i).collect();
        vec![replaced(terms, &term.args, &taken, applied)]
    },
};

pub(super) const LINEAR_IN_ZERO: Rule = Rule {
    name: "linear-in-zero",
    equation: "f(0) = 0, where f is linear",
    apply: |terms, term, id| {
        let vanishes = functions(terms, term)
            .iter()
            .any(|(_, args)| args.iter().all(|&a| terms.is_zero(a)));
        match terms.ty(id).cloned() {
            Some(ty) if vanishes => vec![terms.zero(&ty)],
            _ => Vec::new(),
        }
    },
};

/// Whether an op is linear in these of its arguments together.
pub(crate) fn is_linear_in(terms: &Terms, op: &Op, args: &[Id], of: &[usize]) -> bool {
    let types: Option<Vec<&TensorType>> = args.iter().map(|&a| terms.ty(a)).collect();
    let Some(types) = types else { return false };
    let Ok(Inferred::Types(results)) = op.infer(&types) else {
        return false;
    };
    let results: Vec<&TensorType> = results.iter().collect();
    match (op.rule(&types, &results).linearity, of) {
        (Linearity::Joint, _) => of.len() == args.len(),
        (Linearity::Each(operands), [k]) => operands.contains(k),
        _ => false,
    }
}
