//! The kind of a factor, as a phrase for messages.

use std::collections::BTreeSet;

use tpc_ir::factor::Var;
use tpc_ir::op::Role;
use tpc_ir::{DType, Graph, Op, Value};

use crate::factors::{Analysis, LeafFacts};

pub(super) fn kind_of(graph: &Graph, analysis: &Analysis, chain: &[Var]) -> &'static str {
    if chain.len() > 1 {
        return "heads";
    }
    let of = Leaf {
        graph,
        analysis,
        leaf: chain[0],
        facts: &analysis.leaves[&chain[0]],
    };
    let state = |&v: &Value| matches!(graph.def_op(v), Op::State(_));
    if of.facts.stored.iter().any(state) {
        return of.kind_in_states();
    }
    let vector = |&v: &Value| {
        let ty = &graph.value(v).ty;
        ty.dtype == DType::F32 && ty.dims[1].is_one()
    };
    if of.facts.stored.iter().all(vector) {
        return "vector";
    }
    of.kind_in_weights()
}

struct Leaf<'a> {
    graph: &'a Graph,
    analysis: &'a Analysis,
    leaf: Var,
    facts: &'a LeafFacts,
}

impl Leaf<'_> {
    fn is_along(&self, v: Value, axis: usize) -> bool {
        let summands = &self.analysis.summands[v.index()];
        summands.iter().any(|t| t.axes[axis].contains(&self.leaf))
    }

    fn meets(&self, operands: fn(&Op) -> &'static [usize], axis: usize) -> bool {
        let mut insts = self.graph.insts();
        insts.any(|(_, i)| {
            let operands = operands(&i.op).iter().map(|&o| i.operands[o]);
            operands.into_iter().any(|v| self.is_along(v, axis))
        })
    }

    fn has_role(&self, role: Role) -> bool {
        let mut roles = self.analysis.insts.iter().flat_map(|i| &i.roles);
        roles.any(|r| r.role == role && r.summands.iter().flatten().any(|&l| l == self.leaf))
    }

    fn kind_in_states(&self) -> &'static str {
        match () {
            () if self.facts.owned => "cells",
            () if self.meets(kv_operands, 2) => "kv heads",
            () if self.meets(kv_operands, 0) => "head width",
            () if self.meets(kv_operands, 1) => "cells",
            () if self.meets(recurrent_state, 2) => "state heads",
            () => "state",
        }
    }

    fn kind_in_weights(&self) -> &'static str {
        let stored = &self.facts.stored;
        let layer = |&v: &Value| self.graph.inst(self.graph.value(v).def.0).layer;
        let layers: BTreeSet<Option<u32>> = stored.iter().map(layer).collect();
        let looked_up = self.graph.insts().any(|(_, i)| {
            matches!(i.op, Op::GetRows(_))
                && stored.contains(&i.operands[0])
                && self.is_along(i.operands[0], 1)
        });
        match () {
            () if self.has_role(Role::Expert) => "experts",
            () if looked_up => "vocabulary",
            () if self.has_role(Role::Norm) && layers.len() > 1 => "model width",
            () if self.has_role(Role::Norm) => "normed width",
            () if self.meets(queries, 2) => "heads per kv head",
            () if self.has_role(Role::Reduce) => "width",
            () => "rows",
        }
    }
}

fn kv_operands(op: &Op) -> &'static [usize] {
    if matches!(op, Op::FlashAttn(_)) {
        &[1, 2]
    } else {
        &[]
    }
}

fn queries(op: &Op) -> &'static [usize] {
    if matches!(op, Op::FlashAttn(_)) {
        &[0]
    } else {
        &[]
    }
}

fn recurrent_state(op: &Op) -> &'static [usize] {
    if matches!(op, Op::SsmScan(_)) {
        &[0]
    } else if matches!(op, Op::GatedDeltaNet(_)) {
        &[5]
    } else if matches!(op, Op::Wkv(_)) {
        &[4]
    } else {
        &[]
    }
}
