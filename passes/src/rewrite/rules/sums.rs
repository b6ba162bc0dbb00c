//! Merging and delaying all-reduces.

use egg::Id;
use tpc_ir::op::Linearity;

use super::{Equal, Rule, delay, local_op, rule_of, sums_of};
use crate::rewrite::analysis::{Terms, out_of, pending_of};
use crate::rewrite::language::Node;

/// `all_reduce(a) + all_reduce(b) = all_reduce(a + b)`, and so for differences.
pub(super) const ADDED_SUMS: Rule = Rule {
    name: "added-sums",
    equation: "all_reduce(a) ± all_reduce(b) = all_reduce(a ± b)",
    condition: "the op is additive",
    apply: |terms, class, node, equal| {
        linear(terms, class, node, equal, |linearity, n| match linearity {
            Linearity::Additive => vec![(0..n).collect()],
            _ => Vec::new(),
        });
    },
};

/// `all_reduce(a) + m = all_reduce(a + m)`, where the whole `m` counts on one device.
pub(super) const SUM_AND_WHOLE: Rule = Rule {
    name: "sum-and-whole",
    equation: "all_reduce(a) ± m = all_reduce(a ± m)",
    condition: "m is whole on every device; it counts on the first",
    apply: |terms, class, node, equal| {
        if node
            .operands
            .iter()
            .any(|&o| out_of(terms, o).sharding.is_split())
        {
            return;
        }
        linear(terms, class, node, equal, |linearity, n| match linearity {
            Linearity::Additive => (0..n).map(|i| vec![i]).collect(),
            Linearity::AdditiveFirst => vec![vec![0]],
            _ => Vec::new(),
        });
    },
};

/// `view(all_reduce(a)) = all_reduce(view(a))`: reshapes, permutations, slices, repetitions, sums along an axis.
pub(super) const VIEW_OF_SUM: Rule = Rule {
    name: "view-of-sum",
    equation: "f(all_reduce(a)) = all_reduce(f(a))",
    condition: "f is linear: a view, a slice, a repetition, a sum along an axis",
    apply: |terms, class, node, equal| {
        linear(terms, class, node, equal, |linearity, n| match linearity {
            Linearity::Joint if n == 1 => vec![vec![0]],
            _ => Vec::new(),
        });
    },
};

/// `concat(all_reduce(a), all_reduce(b)) = all_reduce(concat(a, b))`.
pub(super) const CONCAT_OF_SUMS: Rule = Rule {
    name: "concat-of-sums",
    equation: "concat(all_reduce(a), all_reduce(b)) = all_reduce(concat(a, b))",
    condition: "all operands are sums",
    apply: |terms, class, node, equal| {
        linear(terms, class, node, equal, |linearity, n| match linearity {
            Linearity::Joint if n > 1 => vec![(0..n).collect()],
            _ => Vec::new(),
        });
    },
};

/// `f(all_reduce(a), m) = all_reduce(f(a, m))` where `f` is linear in `a`: scales, products and quotients by whole
/// values, products with whole matrices, rows looked up.
pub(super) const SCALED_SUM: Rule = Rule {
    name: "scaled-sum",
    equation: "f(all_reduce(a), m) = all_reduce(f(a, m))",
    condition: "f is linear in a, and m is whole on every device",
    apply: |terms, class, node, equal| {
        linear(terms, class, node, equal, |linearity, _| match linearity {
            Linearity::Each(linear) => linear.iter().map(|&i| vec![i]).collect(),
            _ => Vec::new(),
        });
    },
};

/// Two pending sums with one sum are one value to whoever may read them.
pub(super) const SAME_SUM: Rule = Rule {
    name: "same-sum",
    equation: "a = b where all_reduce(a) = all_reduce(b)",
    condition: "a and b are pending in the same way",
    apply: |terms, class, node, equal| {
        let [first, ..] = sums_of(terms, class)[..] else {
            return;
        };
        // Once per class is enough.
        if terms[class].nodes.first() != Some(node) {
            return;
        }
        for sum in sums_of(terms, class) {
            if sum != first && pending_of(terms, sum) == pending_of(terms, first) {
                equal.push((first, sum));
            }
        }
    },
};

/// Delays the sums of the operands at the positions that `pick` gives for the op's linearity.
fn linear(
    terms: &mut Terms,
    class: Id,
    node: &Node,
    equal: &mut Equal,
    pick: fn(&Linearity, usize) -> Vec<Vec<usize>>,
) {
    let Some(op) = local_op(terms, node) else {
        return;
    };
    if node.operands.iter().all(|&o| sums_of(terms, o).is_empty()) {
        return;
    }
    let rule = rule_of(terms, node, op);
    for at in pick(&rule.linearity, node.operands.len()) {
        delay(terms, class, node, op, &at, equal);
    }
}
