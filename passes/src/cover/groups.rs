//! Fused launches: the target's proposals that satisfy the dependences.

use std::collections::BTreeMap;

use tpc_ir::program::{FusionContext, StorageFormat, Target};
use tpc_ir::{Graph, Inst, Value};

use crate::layout::Layouts;
use crate::lookahead::lookahead_tokens;
use crate::users::Users;

pub(super) struct Groups<'a> {
    seen: GraphContext<'a>,
    ahead: Vec<u32>,
    /// The position of each instruction's launch.
    at: Vec<Inst>,
    taken: Vec<bool>,
    sets: BTreeMap<Inst, Vec<Inst>>,
}

struct GraphContext<'a> {
    graph: &'a Graph,
    layouts: &'a Layouts,
    users: Users,
}

impl FusionContext for GraphContext<'_> {
    fn graph(&self) -> &Graph {
        self.graph
    }

    fn users(&self, value: Value) -> &[Inst] {
        self.users.of(value)
    }

    fn format(&self, value: Value) -> StorageFormat {
        self.layouts.format(value)
    }

    fn is_view(&self, inst: Inst) -> bool {
        self.layouts.is_view(self.graph, inst)
    }
}

impl<'a> Groups<'a> {
    pub(super) fn of(graph: &'a Graph, layouts: &'a Layouts, target: &dyn Target) -> Groups<'a> {
        let seen = GraphContext {
            graph,
            layouts,
            users: Users::of_graph(graph),
        };
        let proposed = target.groups(&seen);
        let n = graph.insts().len();
        let mut out = Groups {
            seen,
            ahead: lookahead_tokens(graph),
            at: (0..n).map(Inst::new).collect(),
            taken: vec![false; n],
            sets: BTreeMap::new(),
        };
        for insts in proposed {
            if let Some(at) = out.place(&insts) {
                for inst in &insts {
                    out.at[inst.index()] = at;
                    out.taken[inst.index()] = true;
                }
                out.sets.insert(at, insts);
            }
        }
        out
    }

    pub(super) fn contains(&self, inst: Inst) -> bool {
        self.taken[inst.index()]
    }

    pub(super) fn launch_at(&self, inst: Inst) -> Option<&[Inst]> {
        self.sets.get(&inst).map(Vec::as_slice)
    }

    /// Returns the position of a fused launch of these instructions. `None` if they cannot be fused.
    fn place(&self, insts: &[Inst]) -> Option<Inst> {
        let sorted = insts.len() > 1 && insts.windows(2).all(|w| w[0] < w[1]);
        let fits = sorted && self.is_one(insts) && insts.iter().all(|i| self.fits(insts, *i));
        let mut places = insts.iter().rev().filter(|_| fits);
        places.find(|at| self.is_between(insts, **at)).copied()
    }

    /// True if no instruction is in another launch and all run in one phase and at one place. If the first is a
    /// collective, the others run at its participants.
    fn is_one(&self, insts: &[Inst]) -> bool {
        let graph = self.seen.graph;
        let place = |v: &Value| graph.value(*v).place;
        let first = graph.inst(insts[0]);
        let places: Vec<_> = first.results.iter().map(place).collect();
        let single = !first.op.is_transfer() || first.op.is_collective();
        let rest = insts[1..].iter().all(|i| {
            let data = graph.inst(*i);
            !data.op.is_transfer() && places.contains(&place(&data.results[0]))
        });
        let ahead = self.ahead[insts[0].index()];
        let free = |i: &Inst| !self.taken[i.index()] && self.ahead[i.index()] == ahead;
        single && rest && insts.iter().all(free)
    }

    /// True if the instruction can join the set. A view needs its operand in the set, and no instruction outside the
    /// set may read the view or the operand. An update must not share the updated value with another instruction of the
    /// set.
    fn fits(&self, insts: &[Inst], inst: Inst) -> bool {
        let (graph, layouts) = (self.seen.graph, self.seen.layouts);
        let data = graph.inst(inst);
        let within = |v: &Value| insts.contains(&graph.value(*v).def.0);
        // A view outside the set must not separate this instruction from a value of the set.
        let behind = |v: &&Value| !within(v) && within(&layouts.base(**v));
        if data.operands.iter().any(|v| behind(&v)) {
            return false;
        }
        if self.seen.is_view(inst) {
            let of = data.operands[0];
            return within(&of)
                && self.is_inside(insts, of)
                && self.is_inside(insts, data.results[0]);
        }
        if data.op.is_update() {
            let updated = layouts.base(data.operands[0]);
            let operands = insts.iter().flat_map(|i| &graph.inst(*i).operands);
            let reads = operands.filter(|v| layouts.base(**v) == updated);
            let read_here = |v: &Value| self.seen.users(*v).iter().any(|u| insts.contains(u));
            return reads.count() == 1 && !within(&updated) && !data.results.iter().any(read_here);
        }
        layouts.is_launched(graph, inst)
    }

    fn is_inside(&self, insts: &[Inst], value: Value) -> bool {
        let users = self.seen.users.of(value);
        !self.seen.users.is_output(value) && users.iter().all(|u| insts.contains(u))
    }

    /// True if the position is after all operands from outside the set and before all outside readers of its results.
    fn is_between(&self, insts: &[Inst], at: Inst) -> bool {
        insts.iter().all(|&i| {
            let data = self.seen.graph.inst(i);
            let before = data.operands.iter().all(|v| {
                let def = self.seen.graph.value(self.seen.layouts.base(*v)).def.0;
                insts.contains(&def) || self.at[def.index()] < at
            });
            before
                && data
                    .results
                    .iter()
                    .all(|v| self.is_read_behind(insts, *v, at))
        })
    }

    fn is_read_behind(&self, insts: &[Inst], value: Value, at: Inst) -> bool {
        self.seen.users.of(value).iter().all(|&user| {
            if insts.contains(&user) {
                return true;
            }
            match self.seen.is_view(user) {
                true => self.is_read_behind(insts, self.seen.graph.inst(user).results[0], at),
                false => self.at[user.index()] > at,
            }
        })
    }
}
