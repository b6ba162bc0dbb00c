//! The rules of rewriting: constants with an equation and a side condition, listed in [`RULES`].
//!
//! The op's own rule (`tpc_ir::verify::derive`) determines how it treats an unreduced sum; no rule has a list of ops.

mod copies;
mod experts;
mod scatter;
mod statistics;
mod sums;

use egg::{Applier, Id, Language, PatternAst, SearchMatches, Searcher, Subst, Symbol, Var};
use tpc_ir::op::AllReduce;
use tpc_ir::{Op, Unreduced};

use super::analysis::{EGraph, Table, insert, type_of, unreduced_of};
use super::language::{Head, Node, OpRef, TypesRef};

pub(crate) type EqualPairs = Vec<(Id, Id)>;

/// A rule of rewriting.
pub struct RewriteRule {
    /// The name.
    pub name: &'static str,
    /// The equation, for readers.
    pub equation: &'static str,
    /// The condition, for readers.
    pub condition: &'static str,
    apply: fn(&mut EGraph, Id, &Node, &mut EqualPairs),
}

impl std::fmt::Debug for RewriteRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}, {}", self.name, self.equation, self.condition)
    }
}

/// Every rule.
pub const RULES: &[&RewriteRule] = &[
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

pub(crate) struct RuleApplier(pub(crate) &'static RewriteRule);

impl Searcher<Node, Table> for RuleApplier {
    fn search_eclass_with_limit(
        &self,
        egraph: &EGraph,
        eclass: Id,
        _: usize,
    ) -> Option<SearchMatches<'_, Node>> {
        let ops = egraph[eclass].nodes.iter().any(|n| !n.is_leaf());
        ops.then(|| SearchMatches {
            eclass,
            substs: vec![Subst::default()],
            ast: None,
        })
    }

    fn vars(&self) -> Vec<Var> {
        Vec::new()
    }
}

impl Applier<Node, Table> for RuleApplier {
    fn apply_one(
        &self,
        egraph: &mut EGraph,
        eclass: Id,
        _: &Subst,
        _: Option<&PatternAst<Node>>,
        _: Symbol,
    ) -> Vec<Id> {
        let eclass = egraph.find(eclass);
        let mut equal = EqualPairs::new();
        for node in egraph[eclass].nodes.clone() {
            (self.0.apply)(egraph, eclass, &node, &mut equal);
        }
        let mut changed = Vec::new();
        for (a, b) in equal {
            if egraph.union(a, b) {
                changed.push(egraph.find(a));
            }
        }
        changed
    }
}

/// Returns the op of a term with operands and one result, except transfers.
fn local_op(egraph: &EGraph, node: &Node) -> Option<(OpRef, TypesRef)> {
    let Head::Op(op, out) = node.head else {
        return None;
    };
    let one = egraph.analysis.types(out).len() == 1 && !node.operands.is_empty();
    (one && !egraph.analysis.op(op).is_transfer()).then_some((op, out))
}

fn sums_of(egraph: &EGraph, eclass: Id) -> Vec<Id> {
    let sum = |n: &Node| match n.head {
        Head::Op(op, _) if matches!(egraph.analysis.op(op), Op::AllReduce(_)) => {
            Some(egraph.find(n.operands[0]))
        }
        _ => None,
    };
    let mut out: Vec<Id> = egraph[eclass].nodes.iter().filter_map(sum).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Delays the operands' all-reduces, `f(all_reduce(a)) = all_reduce(f(a))`, if the op's own rule allows it.
fn delay(
    egraph: &mut EGraph,
    eclass: Id,
    node: &Node,
    (op, out): (OpRef, TypesRef),
    at: &[usize],
    equal: &mut EqualPairs,
) {
    // A split result, such as a repeated row, is not a sum.
    if type_of(egraph, eclass).sharding.is_split() {
        return;
    }
    let mut forms = vec![node.operands.clone()];
    for &i in at {
        let sums = sums_of(egraph, node.operands[i]);
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
        let outs = operands.iter().map(|&o| egraph[o].data.types).collect();
        let Some(made) = egraph.analysis.derive(op, outs, out) else {
            continue;
        };
        let unreduced = egraph.analysis.ty(made).sharding.unreduced;
        if unreduced == Unreduced::None {
            continue;
        }
        let origin = egraph[eclass].data.origin;
        let head = Head::Op(op, made);
        let id = insert(egraph, Node { head, operands }, origin);
        if made == egraph[eclass].data.types {
            equal.push((eclass, id));
            continue;
        }
        let whole = egraph.analysis.whole(out);
        let sum = all_reduce(egraph, id, whole, origin);
        if unreduced_of(egraph, eclass) == Unreduced::None {
            equal.push((eclass, sum));
        } else {
            // The two values are unreduced in different ways, so only their sums are equal.
            let other = all_reduce(egraph, eclass, whole, origin);
            equal.push((other, sum));
        }
    }
}

fn all_reduce(egraph: &mut EGraph, sum: Id, out: TypesRef, origin: Option<u32>) -> Id {
    let op = egraph.analysis.op_ref(&AllReduce.into());
    let head = Head::Op(op, out);
    let operands = vec![sum];
    insert(egraph, Node { head, operands }, origin)
}

fn rule_of(egraph: &EGraph, node: &Node, (op, out): (OpRef, TypesRef)) -> tpc_ir::op::Rule {
    let table = &egraph.analysis;
    let operands: Vec<_> = node
        .operands
        .iter()
        .map(|&o| &table.ty(egraph[o].data.types).ty)
        .collect();
    let results: Vec<_> = table.types(out).iter().map(|o| &o.ty).collect();
    table.op(op).rule(&operands, &results)
}
