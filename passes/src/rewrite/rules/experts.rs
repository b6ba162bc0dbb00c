//! Rows of split experts: zero on all devices except the expert's owner.

use tpc_ir::op::Linearity;

use super::{RewriteRule, delay, local_op, rule_of, sums_of};
use crate::rewrite::analysis::type_of;

/// `f(all_reduce(a), …) = all_reduce(f(a, …))` if zero rows stay zero.
pub(super) const ZERO_ROWS: RewriteRule = RewriteRule {
    name: "zero-rows",
    equation: "f(all_reduce(a), all_reduce(b)) = all_reduce(f(a, b))",
    condition: "f(0) = 0, and the rows of all operands are zero except on their experts' owners",
    apply: |egraph, eclass, node, equal| {
        let Some(op) = local_op(egraph, node) else {
            return;
        };
        if node.operands.iter().any(|&o| sums_of(egraph, o).is_empty()) {
            return;
        }
        let rule = rule_of(egraph, node, op);
        if rule.keeps_zero && rule.linearity == Linearity::Opaque {
            let all: Vec<usize> = (0..node.operands.len()).collect();
            delay(egraph, eclass, node, op, &all, equal);
        }
    },
};

/// `add_id(all_reduce(a), bias, ids) = all_reduce(add_id(a, bias, ids))`; each device adds its own experts' rows.
pub(super) const EXPERT_BIAS: RewriteRule = RewriteRule {
    name: "expert-bias",
    equation: "add_id(all_reduce(a), b, ids) = add_id(a, b, ids)",
    condition: "the experts of b are split: each device adds its own rows",
    apply: |egraph, eclass, node, equal| {
        let Some(op) = local_op(egraph, node) else {
            return;
        };
        let own = |i: usize| type_of(egraph, node.operands[i]).sharding.is_split();
        if node.operands.len() < 2 || !own(1) || sums_of(egraph, node.operands[0]).is_empty() {
            return;
        }
        if rule_of(egraph, node, op).linearity == Linearity::AdditiveFirst {
            delay(egraph, eclass, node, op, &[0], equal);
        }
    },
};
