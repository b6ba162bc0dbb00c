//! The analysis of the e-graph: type, place and sharding of each e-class.
//!
//! Two terms are in one e-class if every device gets the same value from both. An *unreduced sum* is identified by its
//! total alone: ops that read it are linear, so they cannot distinguish the summands on devices. A chain of additions
//! therefore has one unreduced form, not one per distribution of the summands.

use egg::{Analysis, DidMerge, Id};
use rustc_hash::FxHashMap;
use tpc_ir::op::ShardedTensor;
use tpc_ir::verify::derive;
use tpc_ir::{Class, ClassData, GroupData, Interval, Op, Place, Sharding, TensorType, Unreduced};

use super::language::{Head, Node, OpRef, TypesRef};

pub(crate) type EGraph = egg::EGraph<Node, Table>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShardedType {
    pub(crate) ty: TensorType,
    pub(crate) place: Place,
    pub(crate) sharding: Sharding,
}

/// An op, the types of its operands, and the types and places of its results.
type DerivationKey = (OpRef, Vec<TypesRef>, TypesRef);

#[derive(Debug, Default)]
pub(crate) struct Table {
    ops: Vec<Op>,
    op_by_value: FxHashMap<Op, OpRef>,
    types: Vec<Vec<ShardedType>>,
    types_by_value: FxHashMap<Vec<ShardedType>, TypesRef>,
    pub(crate) leaves: Vec<TypesRef>,
    pub(crate) classes: Vec<ClassData>,
    pub(crate) groups: Vec<GroupData>,
    derived: FxHashMap<DerivationKey, Option<TypesRef>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(crate) types: TypesRef,
    /// The first value of the section that the e-class represents; its name becomes the e-class's.
    pub(crate) origin: Option<u32>,
}

impl Table {
    /// Returns a copy of the table for one section. Existing handles stay valid.
    pub(crate) fn fork(&self) -> Table {
        Table {
            ops: self.ops.clone(),
            op_by_value: self.op_by_value.clone(),
            types: self.types.clone(),
            types_by_value: self.types_by_value.clone(),
            ..Table::default()
        }
    }

    pub(crate) fn op_ref(&mut self, op: &Op) -> OpRef {
        if let Some(&known) = self.op_by_value.get(op) {
            return known;
        }
        let new = OpRef(u32::try_from(self.ops.len()).expect("invariant: sections are small"));
        self.ops.push(op.clone());
        self.op_by_value.insert(op.clone(), new);
        new
    }

    pub(crate) fn types_ref(&mut self, types: Vec<ShardedType>) -> TypesRef {
        if let Some(&known) = self.types_by_value.get(&types) {
            return known;
        }
        let new = TypesRef(u32::try_from(self.types.len()).expect("invariant: sections are small"));
        self.types.push(types.clone());
        self.types_by_value.insert(types, new);
        new
    }

    pub(crate) fn op(&self, op: OpRef) -> &Op {
        &self.ops[op.0 as usize]
    }

    pub(crate) fn types(&self, out: TypesRef) -> &[ShardedType] {
        &self.types[out.0 as usize]
    }

    pub(crate) fn ty(&self, out: TypesRef) -> &ShardedType {
        &self.types(out)[0]
    }

    pub(crate) fn whole(&mut self, out: TypesRef) -> TypesRef {
        let whole = |o: &ShardedType| ShardedType {
            sharding: Sharding::mirrored(),
            ..o.clone()
        };
        let types = self.types(out).iter().map(whole).collect();
        self.types_ref(types)
    }

    /// Returns a class of `size` indices that `ranks` devices share evenly. Adds the class if necessary.
    pub(crate) fn even_class(&mut self, size: u64, ranks: u64) -> Class {
        let cut = |rank| even_cut(size, ranks, rank);
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

    pub(crate) fn ranks(&self, place: Place) -> usize {
        match place {
            Place::Host | Place::Device(_) => 1,
            Place::Group(g) => self.groups[g.index()].devices.len(),
        }
    }

    /// Returns the result types of `op` on `operands`, with the plain types and the places of `like`. Returns `None` if
    /// the op rejects the operands' shardings.
    pub(crate) fn derive(
        &mut self,
        op: OpRef,
        operands: Vec<TypesRef>,
        like: TypesRef,
    ) -> Option<TypesRef> {
        let key = (op, operands, like);
        if let Some(&known) = self.derived.get(&key) {
            return known;
        }
        let (_, operands, _) = &key;
        let sharded: Vec<ShardedTensor<'_>> = operands
            .iter()
            .map(|&o| {
                let o = self.ty(o);
                ShardedTensor {
                    ty: &o.ty,
                    sharding: &o.sharding,
                }
            })
            .collect();
        let types: Vec<&TensorType> = self.types(like).iter().map(|o| &o.ty).collect();
        let made = derive(self.op(op), &sharded, &types).map(|shardings| {
            let new = |(o, sharding): (&ShardedType, Sharding)| ShardedType {
                sharding,
                ..o.clone()
            };
            self.types(like).iter().zip(shardings).map(new).collect()
        });
        let made = made.map(|types| self.types_ref(types));
        self.derived.insert(key, made);
        made
    }
}

impl Analysis<Node> for Table {
    type Data = Fact;

    fn make(egraph: &mut EGraph, node: &Node, _: Id) -> Fact {
        let out = match node.head {
            Head::Leaf(i) => egraph.analysis.leaves[i as usize],
            Head::Op(_, out) => out,
            Head::Result(i) => {
                let all = egraph[node.operands[0]].data.types;
                let one = egraph.analysis.types(all)[i as usize].clone();
                egraph.analysis.types_ref(vec![one])
            }
        };
        Fact {
            types: out,
            origin: None,
        }
    }

    fn merge(&mut self, a: &mut Fact, b: Fact) -> DidMerge {
        debug_assert_eq!(
            self.types(a.types),
            self.types(b.types),
            "equal terms have one type, place and sharding"
        );
        let old = a.origin;
        let first = [a.origin, b.origin].into_iter().flatten().min();
        a.origin = first;
        DidMerge(old != first, b.origin != first)
    }
}

/// Returns the first index of device `rank` if `ranks` devices share `size` indices evenly.
pub(crate) fn even_cut(size: u64, ranks: u64, rank: u64) -> u64 {
    // The product overflows 64 bits if `size` is near 2^64.
    (u128::from(size) * u128::from(rank) / u128::from(ranks.max(1))) as u64
}

pub(crate) fn type_of(egraph: &EGraph, id: Id) -> &ShardedType {
    egraph.analysis.ty(egraph[id].data.types)
}

pub(crate) fn unreduced_of(egraph: &EGraph, id: Id) -> Unreduced {
    type_of(egraph, id).sharding.unreduced
}

pub(crate) fn insert(egraph: &mut EGraph, node: Node, origin: Option<u32>) -> Id {
    let id = egraph.add(node);
    let known = egraph[id].data.origin;
    let first = [known, origin].into_iter().flatten().min();
    if known != first {
        let mut fact = egraph[id].data;
        fact.origin = first;
        egraph.set_analysis_data(id, fact);
    }
    id
}
