use egg::Id;
use tpc_ir::op::Linearity;

use super::{EqualPairs, RewriteRule, delay, local_op, rule_of, sums_of};
use crate::rewrite::analysis::{EGraph, type_of};
use crate::rewrite::language::Node;

/// `all_reduce(a) + b = all_reduce(a + b)`, if `b` is unreduced, or is whole and added by one device. Two applications
/// give `all_reduce(a) + all_reduce(b) = all_reduce(a + b)`.
pub(super) const ADDED_SUM: RewriteRule = RewriteRule {
    name: "added-sum",
    equation: "all_reduce(a) ± b = all_reduce(a ± b)",
    condition: "b is unreduced, or whole on every device and counts on the first",
    apply: |egraph, eclass, node, equal| {
        let split = |&o: &Id| type_of(egraph, o).sharding.is_split();
        if node.operands.iter().any(split) {
            return;
        }
        linear(
            egraph,
            eclass,
            node,
            equal,
            |linearity, n| match linearity {
                Linearity::Additive => (0..n).map(|i| vec![i]).collect(),
                Linearity::AdditiveFirst => vec![vec![0]],
                _ => Vec::new(),
            },
        );
    },
};

/// `view(all_reduce(a)) = all_reduce(view(a))` for reshapes, permutations, slices, repetitions and sums along an axis.
pub(super) const VIEW_OF_SUM: RewriteRule = RewriteRule {
    name: "view-of-sum",
    equation: "f(all_reduce(a)) = all_reduce(f(a))",
    condition: "f is linear: a view, a slice, a repetition, a sum along an axis",
    apply: |egraph, eclass, node, equal| {
        linear(
            egraph,
            eclass,
            node,
            equal,
            |linearity, n| match linearity {
                Linearity::Joint if n == 1 => vec![vec![0]],
                _ => Vec::new(),
            },
        );
    },
};

pub(super) const CONCAT_OF_SUMS: RewriteRule = RewriteRule {
    name: "concat-of-sums",
    equation: "concat(all_reduce(a), all_reduce(b)) = all_reduce(concat(a, b))",
    condition: "all operands are sums",
    apply: |egraph, eclass, node, equal| {
        linear(
            egraph,
            eclass,
            node,
            equal,
            |linearity, n| match linearity {
                Linearity::Joint if n > 1 => vec![(0..n).collect()],
                _ => Vec::new(),
            },
        );
    },
};

/// `f(all_reduce(a), m) = all_reduce(f(a, m))` if `f` is linear in `a`: products and quotients by whole values,
/// products with whole matrices, look-ups. If `f` reads split experts, and each device has the rows of `a` for its
/// experts, `f(all_reduce(a)) = f(a)`.
pub(super) const SCALED_SUM: RewriteRule = RewriteRule {
    name: "scaled-sum",
    equation: "f(all_reduce(a), m) = all_reduce(f(a, m))",
    condition: "f is linear in a; m is whole on every device, or its experts are split like the rows of a",
    apply: |egraph, eclass, node, equal| {
        linear(
            egraph,
            eclass,
            node,
            equal,
            |linearity, _| match linearity {
                Linearity::PerOperand(linear) => linear.iter().map(|&i| vec![i]).collect(),
                _ => Vec::new(),
            },
        );
    },
};

fn linear(
    egraph: &mut EGraph,
    eclass: Id,
    node: &Node,
    equal: &mut EqualPairs,
    positions: fn(&Linearity, usize) -> Vec<Vec<usize>>,
) {
    let Some(op) = local_op(egraph, node) else {
        return;
    };
    if node.operands.iter().all(|&o| sums_of(egraph, o).is_empty()) {
        return;
    }
    let rule = rule_of(egraph, node, op);
    for at in positions(&rule.linearity, node.operands.len()) {
        delay(egraph, eclass, node, op, &at, equal);
    }
}
