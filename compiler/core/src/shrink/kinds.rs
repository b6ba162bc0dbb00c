//! Kinds of layers: those that are the same but for names.

use std::collections::{BTreeMap, HashMap};

use tpc_ir::{Class, Graph, Inst, Interval, Op, Place, Sharding, TensorType, Value};

/// The instructions of every layer of a graph, by layer.
pub(super) fn by_layer(graph: &Graph) -> BTreeMap<u32, Vec<Inst>> {
    let mut out: BTreeMap<u32, Vec<Inst>> = BTreeMap::new();
    for (inst, data) in graph.insts() {
        if let Some(layer) = data.layer {
            out.entry(layer).or_default().push(inst);
        }
    }
    out
}

/// A value, with the classes of its sharding numbered in the order in which the layer mentions them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    ty: TensorType,
    place: Place,
    sharding: Sharding,
}

/// An operand of a layer's instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Operand {
    /// A result of the layer, by number.
    Inside(usize),
    /// A value of another layer.
    Outside(Shape),
}

/// An instruction of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// The op without the name of what it reads.
    op: Op,
    operands: Vec<Operand>,
    /// The results, each with whether it is used outside of the layer.
    results: Vec<(Shape, bool)>,
}

/// The kind of a layer: its instructions without names. Layers that are the same but for names have equal kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind {
    steps: Vec<Step>,
    /// The sizes and ranges of its classes, by number.
    classes: Vec<(u64, Vec<Interval>)>,
}

/// The kind of the layer of these instructions, and its classes by number; `wanted` says of each value whether it is
/// used outside.
pub(super) fn kind_of(graph: &Graph, insts: &[Inst], wanted: &[bool]) -> (Kind, Vec<Class>) {
    let mut classes: Vec<Class> = Vec::new();
    let mut shape = |v: Value| {
        let data = graph.value(v);
        let sharding = data.sharding.renamed(&mut |c| {
            let known = classes.iter().position(|&k| k == c);
            Class::new(known.unwrap_or_else(|| {
                classes.push(c);
                classes.len() - 1
            }))
        });
        Shape {
            ty: data.ty.clone(),
            place: data.place,
            sharding,
        }
    };
    let mut inside: HashMap<Value, usize> = HashMap::new();
    let mut steps = Vec::with_capacity(insts.len());
    for &inst in insts {
        let data = graph.inst(inst);
        let operand = |v: &Value| match inside.get(v) {
            Some(&n) => Operand::Inside(n),
            None => Operand::Outside(shape(*v)),
        };
        let operands = data.operands.iter().map(operand).collect();
        let mut result = |&v: &Value| {
            inside.insert(v, inside.len());
            (shape(v), wanted[v.index()])
        };
        steps.push(Step {
            op: data.op.nameless(),
            operands,
            results: data.results.iter().map(&mut result).collect(),
        });
    }
    let ranges = |&c: &Class| (graph.class(c).size, graph.class(c).ranges.clone());
    let kind = Kind {
        steps,
        classes: classes.iter().map(ranges).collect(),
    };
    (kind, classes)
}

/// Whether each value is used outside of its layer.
pub(super) fn wanted(graph: &Graph) -> Vec<bool> {
    let mut out = vec![false; graph.values().len()];
    for (_, data) in graph.insts() {
        for &v in &data.operands {
            let home = graph.inst(graph.value(v).def.0).layer;
            out[v.index()] |= home != data.layer;
        }
    }
    for o in &graph.outputs {
        out[o.value().index()] = true;
    }
    out
}
