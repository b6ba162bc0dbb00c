//! Sections of a sharded graph, and their skeletons. Sections that differ only in names have equal skeletons.
//!
//! A section extends from the first instruction of a layer to the first of the next, and reads only values of earlier
//! sections. Sections are rewritten separately, so values that cross keep their shardings.

use rustc_hash::FxHashMap;
use tpc_ir::{Class, ClassData, Graph, Inst, Op, Value};

use super::analysis::{ShardedType, Table};
use super::language::{OpRef, TypesRef};
use crate::layers::layer_runs;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Arg {
    Leaf(u32),
    Value(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leaf {
    pub(super) ty: TypesRef,
    pub(super) input: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Leaf(u32),
    /// An op whose results have the next numbers.
    Apply {
        op: OpRef,
        types: TypesRef,
        operands: Vec<Arg>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Skeleton {
    pub(super) steps: Vec<Step>,
    /// The leaves, including values of other sections, in order of first appearance.
    pub(super) leaves: Vec<Leaf>,
    pub(super) roots: Vec<u32>,
    /// Size and ranges of split classes, in order of first appearance.
    pub(super) classes: Vec<(u64, Vec<tpc_ir::Interval>)>,
}

#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) layer: Option<u32>,
    pub(super) skeleton: Skeleton,
    pub(super) leaves: Vec<Value>,
    pub(super) values: Vec<Value>,
    pub(super) classes: Vec<Class>,
}

/// The maximum number of instructions of a section, for graphs without layers.
const LONGEST: usize = 1024;

/// Cuts `graph` into sections; adds ops and types to `table`.
pub(super) fn sections(graph: &Graph, table: &mut Table) -> Vec<Section> {
    // Per value, the position after the last instruction that uses it.
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
    layer_runs(graph, LONGEST)
        .into_iter()
        .map(|cut| {
            let layer = graph.inst(Inst::new(cut.start)).layer;
            let mut sketch = SkeletonBuilder {
                graph,
                table,
                section: Section {
                    layer,
                    skeleton: Skeleton::default(),
                    leaves: Vec::new(),
                    values: Vec::new(),
                    classes: Vec::new(),
                },
                args: FxHashMap::default(),
            };
            let end = cut.end;
            for i in cut {
                sketch.inst(Inst::new(i));
            }
            let mut section = sketch.section;
            section.skeleton.roots = (0..section.values.len())
                .filter(|&i| last[section.values[i].index()] > end)
                .map(number)
                .collect();
            let data = |c: &Class| (graph.class(*c).size, graph.class(*c).ranges.clone());
            section.skeleton.classes = section.classes.iter().map(data).collect();
            section
        })
        .collect()
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("invariant: sections are small")
}

struct SkeletonBuilder<'a> {
    graph: &'a Graph,
    table: &'a mut Table,
    section: Section,
    args: FxHashMap<Value, Arg>,
}

impl SkeletonBuilder<'_> {
    fn inst(&mut self, inst: Inst) {
        let data = self.graph.inst(inst);
        if data.op.is_leaf() && !data.op.is_constant() {
            let leaf = self.leaf(data.results[0]);
            self.section.skeleton.steps.push(Step::Leaf(leaf));
            return;
        }
        let operands = data.operands.iter().map(|&v| self.arg(v)).collect();
        let types = data.results.iter().map(|&v| self.ty(v)).collect();
        let step = Step::Apply {
            op: self.table.op_ref(&data.op),
            types: self.table.types_ref(types),
            operands,
        };
        self.section.skeleton.steps.push(step);
        for &v in &data.results {
            let n = number(self.section.values.len());
            self.args.insert(v, Arg::Value(n));
            self.section.values.push(v);
        }
    }

    fn arg(&mut self, v: Value) -> Arg {
        match self.args.get(&v) {
            Some(&known) => known,
            None => Arg::Leaf(self.leaf(v)),
        }
    }

    fn leaf(&mut self, v: Value) -> u32 {
        let ty = self.ty(v);
        let leaf = Leaf {
            ty: self.table.types_ref(vec![ty]),
            input: matches!(self.graph.def_op(v), Op::Input(_)),
        };
        let n = number(self.section.leaves.len());
        self.section.skeleton.leaves.push(leaf);
        self.section.leaves.push(v);
        self.args.insert(v, Arg::Leaf(n));
        n
    }

    /// Returns a value's type, with classes numbered by appearance in the section.
    fn ty(&mut self, v: Value) -> ShardedType {
        let data = self.graph.value(v);
        let classes = &mut self.section.classes;
        let sharding = data.sharding.rename_classes(&mut |c| {
            let at = classes.iter().position(|&k| k == c);
            Class::new(at.unwrap_or_else(|| {
                classes.push(c);
                classes.len() - 1
            }))
        });
        ShardedType {
            ty: data.ty.clone(),
            place: data.place,
            sharding,
        }
    }
}

pub(super) fn class_data(skeleton: &Skeleton) -> Vec<ClassData> {
    let data = |(size, ranges): &(u64, Vec<tpc_ir::Interval>)| ClassData {
        name: String::new(),
        size: *size,
        ranges: ranges.clone(),
    };
    skeleton.classes.iter().map(data).collect()
}
