//! Kinds of layers: those that are the same but for names.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use tpc_ir::{AxisTree, Class, ClassRef, Graph, Inst, Sharding, Unreduced, Value};

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

/// A layer of a graph without names, and the classes that it mentions in the order in which it does.
pub(super) struct Sketch<'a> {
    graph: &'a Graph,
    pub(super) text: String,
    pub(super) classes: Vec<Class>,
}

impl<'a> Sketch<'a> {
    /// The sketch of these instructions, where values are `wanted` outside or not.
    pub(super) fn of(graph: &'a Graph, insts: &[Inst], wanted: &[bool]) -> Sketch<'a> {
        let mut out = Sketch {
            graph,
            text: String::new(),
            classes: Vec::new(),
        };
        let mut inside: HashMap<Value, usize> = HashMap::new();
        for &inst in insts {
            let data = graph.inst(inst);
            let _ = write!(out.text, "{:?}(", data.op.nameless());
            for v in &data.operands {
                match inside.get(v) {
                    Some(n) => {
                        let _ = write!(out.text, "{n} ");
                    }
                    None => out.value(*v),
                }
            }
            out.text.push_str(")=");
            for &v in &data.results {
                let n = inside.len();
                inside.insert(v, n);
                out.value(v);
                let _ = write!(out.text, "{}", u8::from(wanted[v.index()]));
            }
            out.text.push('\n');
        }
        out
    }

    fn value(&mut self, v: Value) {
        let data = self.graph.value(v);
        let _ = write!(self.text, "{}@{}", data.ty, data.place);
        self.sharding(&data.sharding);
    }

    fn sharding(&mut self, sharding: &Sharding) {
        for axis in &sharding.axes {
            self.text.push('/');
            if let Some(tree) = axis {
                self.tree(tree);
            }
        }
        match sharding.unreduced {
            Unreduced::None => {}
            Unreduced::Partial => self.text.push('+'),
            Unreduced::OwnerMasked(class) => {
                self.text.push('+');
                self.class(ClassRef { class, div: 1 });
            }
        }
        let _ = write!(self.text, "~{} ", sharding.granule);
    }

    fn tree(&mut self, tree: &AxisTree) {
        match tree {
            AxisTree::Leaf { size, split } => {
                let _ = write!(self.text, "{size}");
                if let Some(class) = split {
                    self.class(*class);
                }
            }
            AxisTree::Product(k) | AxisTree::Sum(k) => {
                let open = if matches!(tree, AxisTree::Sum(_)) {
                    "s["
                } else {
                    "p["
                };
                self.text.push_str(open);
                for t in k {
                    self.tree(t);
                    self.text.push(',');
                }
                self.text.push(']');
            }
        }
    }

    fn class(&mut self, of: ClassRef) {
        let known = self.classes.iter().position(|&c| c == of.class);
        let number = known.unwrap_or_else(|| {
            let data = self.graph.class(of.class);
            let _ = write!(self.text, "{}{:?}", data.size, data.ranges);
            self.classes.push(of.class);
            self.classes.len() - 1
        });
        let _ = write!(self.text, "c{number}:{}", of.div);
    }
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
