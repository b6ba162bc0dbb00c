//! What is known of every class of terms: type, place and sharding.
//!
//! Two terms are in one class if every device ends up with the same from both, and a *pending sum* is known by its sum
//! alone: devices may hold different summands as long as these add up to the same. All ops that take a pending sum are
//! linear in it, so nothing can tell two such apart. That keeps graphs small: of a chain of additions there is one
//! pending form, not one per way to distribute the summands.

use std::collections::HashMap;

use egg::{Analysis, DidMerge, EGraph, Id};
use tpc_ir::op::Sharded;
use tpc_ir::verify::derive;
use tpc_ir::{Class, ClassData, GroupData, Interval, Op, Place, Sharding, TensorType, Unreduced};

use super::language::{Head, Node, OpRef, OutRef};

/// The e-graph of a region.
pub(crate) type Terms = EGraph<Node, Table>;

/// What a value is, apart from how it is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Out {
    pub(crate) ty: TensorType,
    pub(crate) place: Place,
    pub(crate) sharding: Sharding,
}

/// An op on what it reads, and the types and places of what it gives.
type Application = (OpRef, Vec<OutRef>, OutRef);

/// Everything that terms refer to, each thing once.
#[derive(Debug, Default)]
pub(crate) struct Table {
    ops: Vec<Op>,
    op_by_value: HashMap<Op, OpRef>,
    outs: Vec<Vec<Out>>,
    out_by_value: HashMap<Vec<Out>, OutRef>,
    /// What each leaf is.
    pub(crate) leaves: Vec<OutRef>,
    /// Classes of split factors.
    pub(crate) classes: Vec<ClassData>,
    /// Groups of devices.
    pub(crate) groups: Vec<GroupData>,
    derived: HashMap<Application, Option<OutRef>>,
}

/// What is known of a class of terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    /// What its values are.
    pub(crate) out: OutRef,
    /// The first value of the region that it stands for, which names it.
    pub(crate) origin: Option<u32>,
}

impl Table {
    /// A table of its own for a region, in which all handles so far are good.
    pub(crate) fn fork(&self) -> Table {
        Table {
            ops: self.ops.clone(),
            op_by_value: self.op_by_value.clone(),
            outs: self.outs.clone(),
            out_by_value: self.out_by_value.clone(),
            ..Table::default()
        }
    }

    /// The handle of an op.
    pub(crate) fn op_ref(&mut self, op: &Op) -> OpRef {
        if let Some(&known) = self.op_by_value.get(op) {
            return known;
        }
        let new = OpRef(u32::try_from(self.ops.len()).expect("invariant: regions are small"));
        self.ops.push(op.clone());
        self.op_by_value.insert(op.clone(), new);
        new
    }

    /// The handle of a list of results.
    pub(crate) fn out_ref(&mut self, outs: Vec<Out>) -> OutRef {
        if let Some(&known) = self.out_by_value.get(&outs) {
            return known;
        }
        let new = OutRef(u32::try_from(self.outs.len()).expect("invariant: regions are small"));
        self.outs.push(outs.clone());
        self.out_by_value.insert(outs, new);
        new
    }

    pub(crate) fn op(&self, op: OpRef) -> &Op {
        &self.ops[op.0 as usize]
    }

    pub(crate) fn outs(&self, out: OutRef) -> &[Out] {
        &self.outs[out.0 as usize]
    }

    /// The one result of a list.
    pub(crate) fn out(&self, out: OutRef) -> &Out {
        &self.outs(out)[0]
    }

    /// The same with nothing split and nothing pending.
    pub(crate) fn whole(&mut self, out: OutRef) -> OutRef {
        let whole = |o: &Out| Out {
            sharding: Sharding::mirrored(),
            ..o.clone()
        };
        let outs = self.outs(out).iter().map(whole).collect();
        self.out_ref(outs)
    }

    /// A class of `size` indices that so many devices share evenly: one of the region's own, or a new one.
    pub(crate) fn even_class(&mut self, size: u64, ranks: u64) -> Class {
        let cut = |rank: u64| size * rank / ranks;
        let class = ClassData {
            name: format!("rows of {size}"),
            size,
            ranges: (0..ranks)
                .map(|r| Interval::from_bounds(cut(r), cut(r + 1)))
                .collect(),
        };
        let known = self.classes.iter().position(|c| *c == class);
        Class::new(known.unwrap_or_else(|| {
            self.classes.push(class);
            self.classes.len() - 1
        }))
    }

    /// Devices of a place.
    pub(crate) fn ranks(&self, place: Place) -> usize {
        match place {
            Place::Host | Place::Device(_) => 1,
            Place::Group(g) => self.groups[g.index()].devices.len(),
        }
    }

    /// The results of `op` on operands that are `operands`, of the types and at the places of `like`; `None` where the
    /// op does not take their shardings.
    pub(crate) fn derive(
        &mut self,
        op: OpRef,
        operands: Vec<OutRef>,
        like: OutRef,
    ) -> Option<OutRef> {
        let key = (op, operands, like);
        if let Some(&known) = self.derived.get(&key) {
            return known;
        }
        let (_, operands, _) = &key;
        let sharded: Vec<Sharded<'_>> = operands
            .iter()
            .map(|&o| {
                let o = self.out(o);
                Sharded {
                    ty: &o.ty,
                    sharding: &o.sharding,
                }
            })
            .collect();
        let types: Vec<&TensorType> = self.outs(like).iter().map(|o| &o.ty).collect();
        let made = derive(self.op(op), &sharded, &types).map(|shardings| {
            let new = |(o, sharding): (&Out, Sharding)| Out {
                sharding,
                ..o.clone()
            };
            self.outs(like).iter().zip(shardings).map(new).collect()
        });
        let made = made.map(|outs| self.out_ref(outs));
        self.derived.insert(key, made);
        made
    }
}

impl Analysis<Node> for Table {
    type Data = Fact;

    fn make(egraph: &mut EGraph<Node, Table>, node: &Node, _: Id) -> Fact {
        let out = match node.head {
            Head::Leaf(i) => egraph.analysis.leaves[i as usize],
            Head::Op(_, out) => out,
            Head::Result(i) => {
                let all = egraph[node.operands[0]].data.out;
                let one = egraph.analysis.outs(all)[i as usize].clone();
                egraph.analysis.out_ref(vec![one])
            }
        };
        Fact { out, origin: None }
    }

    fn merge(&mut self, a: &mut Fact, b: Fact) -> DidMerge {
        debug_assert_eq!(
            self.outs(a.out),
            self.outs(b.out),
            "equal terms have one type, place and sharding"
        );
        let old = a.origin;
        let first = [a.origin, b.origin].into_iter().flatten().min();
        a.origin = first;
        DidMerge(old != first, b.origin != first)
    }
}

/// What the value of a class is.
pub(crate) fn out_of(terms: &Terms, id: Id) -> &Out {
    terms.analysis.out(terms[id].data.out)
}

/// The pending sum of a class.
pub(crate) fn pending_of(terms: &Terms, id: Id) -> Unreduced {
    out_of(terms, id).sharding.unreduced
}

/// The class of a term that stands for `origin`.
pub(crate) fn insert(terms: &mut Terms, node: Node, origin: Option<u32>) -> Id {
    let id = terms.add(node);
    let known = terms[id].data.origin;
    let first = [known, origin].into_iter().flatten().min();
    if known != first {
        let mut fact = terms[id].data;
        fact.origin = first;
        terms.set_analysis_data(id, fact);
    }
    id
}
