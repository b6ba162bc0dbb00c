//! Cutting a sharded graph into regions, and finding those that are alike.
//!
//! A region is the instructions from the first of a layer to the first of the next, in program order. What it reads of
//! other regions comes from earlier ones, and they are rewritten one by one: values that cross keep their shardings.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use tpc_ir::{Class, ClassData, Graph, Inst, Op, Value};

use super::analysis::{Out, Table};
use super::language::{OpRef, OutRef};

/// What a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Arg {
    /// A leaf of the region.
    Leaf(u32),
    /// A result of one of its steps, by number.
    Value(u32),
}

/// A leaf of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leaf {
    /// What it is.
    pub(super) out: OutRef,
    /// Whether it is an input of the batch.
    pub(super) input: bool,
}

/// An instruction of a region.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// It defines this leaf.
    Leaf(u32),
    /// It applies an op; its results are the next numbers.
    Apply {
        /// The op.
        op: OpRef,
        /// What it gives.
        out: OutRef,
        /// What it reads.
        operands: Vec<Arg>,
    },
}

/// A region without names: alike regions have equal shapes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Instructions.
    pub(super) steps: Vec<Step>,
    /// Leaves, those from other regions included, in order of first appearance.
    pub(super) leaves: Vec<Leaf>,
    /// Numbers of the values that are wanted outside.
    pub(super) roots: Vec<u32>,
    /// Size and ranges of its classes, in order of first appearance.
    pub(super) classes: Vec<(u64, Vec<tpc_ir::Interval>)>,
}

/// A region of a graph.
#[derive(Clone, Debug)]
pub(super) struct Region {
    /// The layer that it begins with.
    pub(super) layer: Option<u32>,
    /// What it is apart from names.
    pub(super) shape: Shape,
    /// The values of its leaves.
    pub(super) leaves: Vec<Value>,
    /// The values of its steps, by number.
    pub(super) values: Vec<Value>,
    /// Its classes.
    pub(super) classes: Vec<Class>,
}

/// Instructions of a region, at most: what has no layers is cut somewhere.
const LONGEST: usize = 1024;

fn cuts(graph: &Graph) -> Vec<Range<usize>> {
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    let mut starts = vec![0];
    for (i, data) in graph.insts() {
        let new = data.layer.is_some_and(|l| seen.insert(l));
        let i = i.index();
        if i > 0 && (new || i - starts[starts.len() - 1] >= LONGEST) {
            starts.push(i);
        }
    }
    let ends = starts[1..].iter().copied().chain([graph.insts().len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(a, b)| a..b)
        .collect()
}

/// Cuts `graph` into regions, whose ops and types go into `table`.
pub(super) fn regions(graph: &Graph, table: &mut Table) -> Vec<Region> {
    // Where each value is wanted last.
    let mut last = vec![0; graph.values().len()];
    for (i, data) in graph.insts() {
        for v in &data.operands {
            last[v.index()] = i.index() + 1;
        }
    }
    for o in &graph.outputs {
        last[o.value().index()] = usize::MAX;
        if let tpc_ir::Output::State { state, .. } = o {
            last[state.index()] = usize::MAX;
        }
    }
    cuts(graph)
        .into_iter()
        .map(|cut| {
            let layer = graph.inst(Inst::new(cut.start)).layer;
            let mut sketch = Sketch {
                graph,
                table,
                region: Region {
                    layer,
                    shape: Shape::default(),
                    leaves: Vec::new(),
                    values: Vec::new(),
                    classes: Vec::new(),
                },
                args: HashMap::new(),
            };
            let end = cut.end;
            for i in cut {
                sketch.inst(Inst::new(i));
            }
            let mut region = sketch.region;
            region.shape.roots = (0..region.values.len())
                .filter(|&i| last[region.values[i].index()] > end)
                .map(number)
                .collect();
            let data = |c: &Class| (graph.class(*c).size, graph.class(*c).ranges.clone());
            region.shape.classes = region.classes.iter().map(data).collect();
            region
        })
        .collect()
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("invariant: regions are small")
}

struct Sketch<'a> {
    graph: &'a Graph,
    table: &'a mut Table,
    region: Region,
    args: HashMap<Value, Arg>,
}

impl Sketch<'_> {
    fn inst(&mut self, inst: Inst) {
        let data = self.graph.inst(inst);
        if data.op.is_leaf() && !data.op.is_constant() {
            let leaf = self.leaf(data.results[0]);
            self.region.shape.steps.push(Step::Leaf(leaf));
            return;
        }
        let operands = data.operands.iter().map(|&v| self.arg(v)).collect();
        let outs = data.results.iter().map(|&v| self.out(v)).collect();
        let step = Step::Apply {
            op: self.table.op_ref(&data.op),
            out: self.table.out_ref(outs),
            operands,
        };
        self.region.shape.steps.push(step);
        for &v in &data.results {
            let n = number(self.region.values.len());
            self.args.insert(v, Arg::Value(n));
            self.region.values.push(v);
        }
    }

    fn arg(&mut self, v: Value) -> Arg {
        match self.args.get(&v) {
            Some(&known) => known,
            None => Arg::Leaf(self.leaf(v)),
        }
    }

    fn leaf(&mut self, v: Value) -> u32 {
        let out = self.out(v);
        let leaf = Leaf {
            out: self.table.out_ref(vec![out]),
            input: matches!(self.graph.def_op(v), Op::Input(_)),
        };
        let n = number(self.region.leaves.len());
        self.region.shape.leaves.push(leaf);
        self.region.leaves.push(v);
        self.args.insert(v, Arg::Leaf(n));
        n
    }

    /// A value, with the classes of its sharding numbered as the region meets them.
    fn out(&mut self, v: Value) -> Out {
        let data = self.graph.value(v);
        let classes = &mut self.region.classes;
        let sharding = data.sharding.renamed(&mut |c| {
            let at = classes.iter().position(|&k| k == c);
            Class::new(at.unwrap_or_else(|| {
                classes.push(c);
                classes.len() - 1
            }))
        });
        Out {
            ty: data.ty.clone(),
            place: data.place,
            sharding,
        }
    }
}

/// The classes of a region's shape, without names.
pub(super) fn class_data(shape: &Shape) -> Vec<ClassData> {
    let data = |(size, ranges): &(u64, Vec<tpc_ir::Interval>)| ClassData {
        name: String::new(),
        size: *size,
        ranges: ranges.clone(),
    };
    shape.classes.iter().map(data).collect()
}
