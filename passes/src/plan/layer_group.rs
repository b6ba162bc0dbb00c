//! Layer groups: the units of planning.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use tpc_ir::factor::Var;
use tpc_ir::{Graph, Group, Inst, Op, Place, TensorType, Value};

use crate::factors::{Analysis, Summand};
use crate::layers::{Prologue, Section, Shape, View, shape};

/// The instructions of one layer, of the prologue, or of the epilogue, on one group of devices.
#[derive(Clone, Debug)]
pub struct LayerGroup {
    /// The group of devices.
    pub group: Group,
    /// The layer; `None` for the prologue and the epilogue.
    pub layer: Option<u32>,
    /// Instructions, in program order.
    pub insts: Vec<Inst>,
    /// Leaves in order of first appearance. Alike layer groups have corresponding leaves in the same order.
    pub leaves: Vec<Var>,
    /// The signature; equal for layer groups that differ only in names of weights and states.
    pub signature: Signature,
}

/// The numbers of distinct layer groups, ignoring names; more than one number if groups were merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature(Vec<usize>);

impl Signature {
    pub(super) fn append(&mut self, other: &Signature) {
        self.0.extend(&other.0);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Layer {
    shape: Shape<PlacedOp, PlacedValue>,
    /// Leaves that an override keeps whole: the step of the first occurrence, and the leaf's position.
    whole: Vec<(usize, usize)>,
}

/// An op before splits. Leaf ops have only a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PlacedOp {
    name: &'static str,
    op: Option<Op>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum PlacedValue {
    Result(TensorType),
    /// A value from outside: its number, its type, and true for a weight or state.
    External(usize, TensorType, bool),
}

struct PlacedView<'a> {
    graph: &'a Graph,
    outside: FxHashMap<Value, usize>,
}

impl View for PlacedView<'_> {
    type Op = PlacedOp;
    type Value = PlacedValue;

    fn op(&mut self, op: &Op) -> PlacedOp {
        PlacedOp {
            name: op.name(),
            op: (!op.is_leaf()).then(|| op.clone()),
        }
    }

    fn external(&mut self, v: Value) -> PlacedValue {
        let next = self.outside.len();
        let number = *self.outside.entry(v).or_insert(next);
        let stored = self.graph.def_op(v).is_stored();
        PlacedValue::External(number, self.graph.value(v).ty.clone(), stored)
    }

    fn result(&mut self, v: Value) -> PlacedValue {
        PlacedValue::Result(self.graph.value(v).ty.clone())
    }
}

/// Returns the group that plans an instruction: the result's group or, for a copy, the operand's.
fn planning_group(graph: &Graph, inst: Inst) -> Option<Group> {
    let data = graph.inst(inst);
    let copied = matches!(data.op, Op::Copy(_)).then(|| data.operands[0]);
    data.results
        .iter()
        .copied()
        .chain(copied)
        .find_map(|v| match graph.value(v).place {
            Place::Group(g) => Some(g),
            Place::Host | Place::Device(_) => None,
        })
}

/// Returns the layer groups of a placed graph, in program order per group of devices.
pub fn layer_groups(graph: &Graph, analysis: &Analysis) -> Vec<LayerGroup> {
    let prologue = Prologue::of_graph(graph);
    let mut insts: BTreeMap<(Group, Section), Vec<Inst>> = BTreeMap::new();
    for (inst, data) in graph.insts() {
        let Some(group) = planning_group(graph, inst) else {
            continue;
        };
        let section = prologue.section(inst, data.layer);
        insts.entry((group, section)).or_default().push(inst);
    }
    let mut distinct = FxHashMap::default();
    insts
        .into_iter()
        .map(|((group, _), insts)| layer_group(graph, analysis, group, insts, &mut distinct))
        .collect()
}

/// Returns the layer group of instructions that are all in one layer, or all outside layers. Numbers distinct layers in
/// order of appearance.
fn layer_group(
    graph: &Graph,
    analysis: &Analysis,
    group: Group,
    insts: Vec<Inst>,
    distinct: &mut FxHashMap<Layer, usize>,
) -> LayerGroup {
    let mut seen: BTreeSet<Var> = BTreeSet::new();
    let mut leaves: Vec<Var> = Vec::new();
    let mut whole = Vec::new();
    for (step, &inst) in insts.iter().enumerate() {
        let data = graph.inst(inst);
        let planned = |v: &&Value| graph.value(**v).place == Place::Group(group);
        for v in data.operands.iter().chain(&data.results).filter(planned) {
            for leaf in analysis.summands[v.index()]
                .iter()
                .flat_map(Summand::leaves)
            {
                if !seen.insert(leaf) {
                    continue;
                }
                let facts = analysis.leaves.get(&leaf);
                if facts.is_some_and(|f| f.pinned_whole.is_some()) {
                    whole.push((step, leaves.len()));
                }
                leaves.push(leaf);
            }
        }
    }
    let mut view = PlacedView {
        graph,
        outside: FxHashMap::default(),
    };
    let shape = shape(graph, &insts, &mut view);
    let next = distinct.len();
    let number = *distinct.entry(Layer { shape, whole }).or_insert(next);
    LayerGroup {
        group,
        layer: graph.inst(insts[0]).layer,
        insts,
        leaves,
        signature: Signature(vec![number]),
    }
}
