//! Linear functions of sums and of zero.

use egg::Id;
use tpc_ir::op::{InferredTypes, Linearity};
use tpc_ir::{Op, TensorType};

use super::sums::replace_summands;
use crate::prove::language::{Head, Term};
use crate::prove::term_graph::{ProofRule, TermGraph};

/// A linear function: a head with its nonlinear arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    head: Head,
    /// The linear argument; `None` for all arguments together.
    of: Option<usize>,
    others: Vec<Id>,
    types: Vec<Option<TensorType>>,
}

fn functions(terms: &TermGraph, term: &Term) -> Vec<(Function, Vec<Id>)> {
    let ty = |&a: &Id| terms.ty(a).cloned();
    let whole = |head| Function {
        head,
        of: None,
        others: Vec::new(),
        types: term.args.iter().map(ty).collect(),
    };
    match term.head {
        Head::View(_) => vec![(whole(term.head), term.args.to_vec())],
        Head::Op { op, .. } if !term.args.is_empty() => {
            let op = terms.op(op);
            let types: Option<Vec<&TensorType>> = term.args.iter().map(|&a| terms.ty(a)).collect();
            let Some(types) = types else {
                return Vec::new();
            };
            let Ok(InferredTypes::Types(results)) = op.infer(&types) else {
                return Vec::new();
            };
            let results: Vec<&TensorType> = results.iter().collect();
            match op.rule(&types, &results).linearity {
                Linearity::Joint => vec![(whole(term.head), term.args.to_vec())],
                Linearity::PerOperand(operands) => operands
                    .into_iter()
                    .filter(|&k| k < term.args.len())
                    .map(|k| {
                        let mut others = term.args.to_vec();
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

/// Returns the arguments that a term is linear in, each time with the other arguments.
pub(in crate::prove) fn linear_arguments(
    terms: &TermGraph,
    term: &Term,
) -> Vec<(Vec<Id>, Vec<Id>)> {
    let all = functions(terms, term).into_iter();
    all.map(|(function, own)| (own, function.others)).collect()
}

pub(super) const LINEAR: ProofRule = ProofRule {
    name: "linear",
    equation: "Σ f(xᵢ) = f(Σ xᵢ), if f is linear",
    apply: |terms, term, id| {
        if term.head != Head::Sum {
            return Vec::new();
        }
        let own = terms.graph.find(id);
        // Per function: the positions of the sum's terms that have it, with the linear arguments.
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
        let most = found.iter().map(|(_, m)| m.len()).max();
        let Some((function, members)) = found.into_iter().find(|(_, m)| Some(m.len()) == most)
        else {
            return Vec::new();
        };
        let width = members[0].1.len();
        let sums: Vec<Id> = (0..width)
            .map(|k| {
                let summands = members.iter().map(|(_, args)| args[k]).collect();
                terms.sum(summands)
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
        vec![replace_summands(terms, &term.args, &taken, applied)]
    },
};

pub(super) const LINEAR_IN_ZERO: ProofRule = ProofRule {
    name: "linear-in-zero",
    equation: "f(0) = 0, if f is linear, and defined for its other operands, which are numbers",
    apply: |terms, term, id| {
        // Zero times a value is zero only if the value is finite.
        let defined = terms
            .op_of(term)
            .is_none_or(|(op, _)| terms.is_defined(&op, &term.args));
        let vanishes = defined
            && functions(terms, term).iter().any(|(function, args)| {
                args.iter().all(|&a| terms.is_zero(a))
                    && function.others.iter().all(|&a| terms.is_number(a))
            });
        match terms.ty(id).cloned() {
            Some(ty) if vanishes => vec![terms.zero(&ty)],
            _ => Vec::new(),
        }
    },
};

pub(in crate::prove) fn is_linear_in(
    terms: &TermGraph,
    op: &Op,
    args: &[Id],
    of: &[usize],
) -> bool {
    let types: Option<Vec<&TensorType>> = args.iter().map(|&a| terms.ty(a)).collect();
    let Some(types) = types else { return false };
    let Ok(InferredTypes::Types(results)) = op.infer(&types) else {
        return false;
    };
    let results: Vec<&TensorType> = results.iter().collect();
    match (op.rule(&types, &results).linearity, of) {
        (Linearity::Joint, _) => of.len() == args.len(),
        (Linearity::PerOperand(operands), [k]) => operands.contains(k),
        _ => false,
    }
}
