use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};
use tpc_ir::op::Rule;
use tpc_ir::{Graph, Inst, TensorType, Value};

/// Sharding rules by hash of op and types, with the first instruction of each. Instructions that differ only in names
/// share a rule.
#[derive(Default)]
pub(super) struct RuleCache {
    by_hash: FxHashMap<u64, Vec<(Inst, Arc<Rule>)>>,
}

impl RuleCache {
    pub(super) fn rule(&mut self, graph: &Graph, inst: Inst) -> Arc<Rule> {
        let data = graph.inst(inst);
        if data.op.is_leaf() {
            // Leaf rules are cheaper to compute than to look up.
            return Arc::new(make_rule(graph, inst));
        }
        let alike = |a: &[Value], b: &[Value]| {
            let ty = |v: &Value| &graph.value(*v).ty;
            a.len() == b.len() && a.iter().map(ty).eq(b.iter().map(ty))
        };
        let found = self.by_hash.entry(hash(graph, inst)).or_default();
        let same = found.iter().find(|(other, _)| {
            let other = graph.inst(*other);
            other.op == data.op
                && alike(&other.operands, &data.operands)
                && alike(&other.results, &data.results)
        });
        if let Some((_, rule)) = same {
            return Arc::clone(rule);
        }
        let rule = Arc::new(make_rule(graph, inst));
        found.push((inst, Arc::clone(&rule)));
        rule
    }
}

fn make_rule(graph: &Graph, inst: Inst) -> Rule {
    let data = graph.inst(inst);
    let types =
        |vs: &[Value]| -> Vec<&TensorType> { vs.iter().map(|&v| &graph.value(v).ty).collect() };
    data.op.rule(&types(&data.operands), &types(&data.results))
}

fn hash(graph: &Graph, inst: Inst) -> u64 {
    let data = graph.inst(inst);
    let mut hasher = FxBuildHasher.build_hasher();
    data.op.hash(&mut hasher);
    for v in data.operands.iter().chain(&data.results) {
        graph.value(*v).ty.hash(&mut hasher);
    }
    hasher.finish()
}
