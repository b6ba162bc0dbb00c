//! The rules of rewriting, one named item each: its equation and its side condition stand in its doc comment and in
//! its fields, and [`RULES`] lists them all.
//!
//! A rule derives what an op does with a pending sum from the op's own rule (`tpc_ir::verify::derive`); no rule has a
//! list of ops that it knows.

mod copies;
mod experts;
mod scatter;
mod statistics;
mod sums;

use egg::{Applier, Id, Language, PatternAst, SearchMatches, Searcher, Subst, Symbol, Var};
use tpc_ir::op::AllReduce;
use tpc_ir::{Op, Unreduced};

use super::analysis::{Table, Terms, insert, out_of, pending_of};
use super::language::{Head, Node, OpRef, OutRef};

/// Pairs of classes that a rule found to be equal.
pub(crate) type Equal = Vec<(Id, Id)>;

/// A rule of rewriting.
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// The equation, for people.
    pub equation: &'static str,
    /// When it holds, for people.
    pub condition: &'static str,
    /// Finds the instances whose left side is this term of this class.
    apply: fn(&mut Terms, Id, &Node, &mut Equal),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}, {}", self.name, self.equation, self.condition)
    }
}

/// Every rule.
pub const RULES: &[&Rule] = &[
    &sums::ADDED_SUM,
    &sums::VIEW_OF_SUM,
    &sums::CONCAT_OF_SUMS,
    &sums::SCALED_SUM,
    &experts::ZERO_ROWS,
    &experts::EXPERT_BIAS,
    &statistics::STATISTICS_TOGETHER,
    &scatter::SCATTERED_SUM,
    &scatter::PARTS_OF_ROWS,
    &scatter::NORM_OF_PARTS,
    &copies::SLICE_THEN_COPY,
    &copies::VIEW_THEN_COPY,
    &copies::COPY_THEN_VIEW,
    &copies::COPY_THEN_REPEAT,
    &copies::COPY_OF_COPY,
];

/// A rule as egg takes it.
pub(crate) struct Runnable(pub(crate) &'static Rule);

impl Searcher<Node, Table> for Runnable {
    fn search_eclass_with_limit(
        &self,
        terms: &Terms,
        class: Id,
        _: usize,
    ) -> Option<SearchMatches<'_, Node>> {
        let ops = terms[class].nodes.iter().any(|n| !n.is_leaf());
        ops.then(|| SearchMatches {
            eclass: class,
            substs: vec![Subst::default()],
            ast: None,
        })
    }

    fn vars(&self) -> Vec<Var> {
        Vec::new()
    }
}

impl Applier<Node, Table> for Runnable {
    fn apply_one(
        &self,
        terms: &mut Terms,
        class: Id,
        _: &Subst,
        _: Option<&PatternAst<Node>>,
        _: Symbol,
    ) -> Vec<Id> {
        let class = terms.find(class);
        let mut equal = Equal::new();
        for node in terms[class].nodes.clone() {
            (self.0.apply)(terms, class, &node, &mut equal);
        }
        let mut changed = Vec::new();
        for (a, b) in equal {
            if terms.union(a, b) {
                changed.push(terms.find(a));
            }
        }
        changed
    }
}

/// The op of a term that has operands and one result and moves nothing.
fn local_op(terms: &Terms, node: &Node) -> Option<(OpRef, OutRef)> {
    let Head::Op(op, out) = node.head else {
        return None;
    };
    let one = terms.analysis.outs(out).len() == 1 && !node.operands.is_empty();
    (one && !terms.analysis.op(op).is_transfer()).then_some((op, out))
}

/// The pending sums that all-reduces make a class of.
fn sums_of(terms: &Terms, class: Id) -> Vec<Id> {
    let sum = |n: &Node| match n.head {
        Head::Op(op, _) if matches!(terms.analysis.op(op), Op::AllReduce(_)) => {
            Some(terms.find(n.operands[0]))
        }
        _ => None,
    };
    let mut out: Vec<Id> = terms[class].nodes.iter().filter_map(sum).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Takes the operands at these positions as the pending sums whose all-reduces they are, and the sum of the result
/// instead: `f(all_reduce(a)) = all_reduce(f(a))` wherever `f`'s own rule has it.
fn delay(
    terms: &mut Terms,
    class: Id,
    node: &Node,
    (op, out): (OpRef, OutRef),
    at: &[usize],
    equal: &mut Equal,
) {
    // A result that comes to be split, as a repeated row may, is no sum.
    if out_of(terms, class).sharding.is_split() {
        return;
    }
    let mut forms = vec![node.operands.clone()];
    for &i in at {
        let sums = sums_of(terms, node.operands[i]);
        forms = forms
            .iter()
            .flat_map(|form| {
                sums.iter().map(move |&sum| {
                    let mut form = form.clone();
                    form[i] = sum;
                    form
                })
            })
            .collect();
    }
    for operands in forms {
        let outs = operands.iter().map(|&o| terms[o].data.out).collect();
        let Some(made) = terms.analysis.derive(op, outs, out) else {
            continue;
        };
        let pending = terms.analysis.out(made).sharding.unreduced;
        if pending == Unreduced::None {
            continue;
        }
        let origin = terms[class].data.origin;
        let head = Head::Op(op, made);
        let id = insert(terms, Node { head, operands }, origin);
        if made == terms[class].data.out {
            equal.push((class, id));
            continue;
        }
        let whole = terms.analysis.whole(out);
        let sum = all_reduce(terms, id, whole, origin);
        if pending_of(terms, class) == Unreduced::None {
            equal.push((class, sum));
        } else {
            // Unreduced in another way: the sums are equal.
            let other = all_reduce(terms, class, whole, origin);
            equal.push((other, sum));
        }
    }
}

/// The all-reduce of a pending sum.
fn all_reduce(terms: &mut Terms, sum: Id, out: OutRef, origin: Option<u32>) -> Id {
    let op = terms.analysis.op_ref(&AllReduce.into());
    let head = Head::Op(op, out);
    let operands = vec![sum];
    insert(terms, Node { head, operands }, origin)
}

/// How an op treats pending sums, for the shapes of this term.
fn rule_of(terms: &Terms, node: &Node, (op, out): (OpRef, OutRef)) -> tpc_ir::op::Rule {
    let table = &terms.analysis;
    let operands: Vec<_> = node
        .operands
        .iter()
        .map(|&o| &table.out(terms[o].data.out).ty)
        .collect();
    let results: Vec<_> = table.outs(out).iter().map(|o| &o.ty).collect();
    table.op(op).rule(&operands, &results)
}
