//! Ops that keep the summation order of one device because no device computes a part of their sums.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tpc_ir::op::{Role, Rule};
use tpc_ir::{Inst, Op, RANK};

/// Instructions of a placed graph that must not split a sum, and the copies around them.
#[derive(Clone, Debug, Default)]
pub struct ExactOps {
    /// Instructions whose sums stay whole.
    pub whole: BTreeSet<Inst>,
    /// Copies within a group, with the axes whose factors end at the copy. Operand and result may be divided
    /// differently along these axes.
    pub boundaries: BTreeMap<Inst, Vec<usize>>,
}

impl ExactOps {
    /// Returns the sharding rule of an instruction, given the rule of its op.
    pub(super) fn rule(&self, inst: Inst, op: &Op, rule: Arc<Rule>) -> Arc<Rule> {
        if let Some(axes) = self.boundaries.get(&inst) {
            let others: Vec<usize> = (0..RANK).filter(|a| !axes.contains(a)).collect();
            return Arc::new(Rule::opaque().same(0, &others));
        }
        if !self.whole.contains(&inst) {
            return rule;
        }
        let mut rule = Rule::clone(&rule);
        let product = op.is_product();
        for (role, _) in &mut rule.roles {
            match role {
                Role::Reduce | Role::Norm => *role = Role::Whole,
                // Each expert's product is a row of one device.
                Role::Expert if !product => *role = Role::Whole,
                Role::Expert | Role::Gather | Role::Whole | Role::Owned => {}
            }
        }
        Arc::new(rule)
    }
}
