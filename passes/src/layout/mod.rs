//! Layout: the storage of weights, and the values that are views.
//!
//! A view (`reshape`, `permute`, `slice`) is free if its elements are evenly strided in its operand; otherwise it is a
//! copy with a launch. Weights in a kernel's own format cannot be viewed.

use tpc_ir::program::{Layout, StorageFormat, Target, WeightPart, WeightStorage};
use tpc_ir::{Graph, Inst, Op, Value, Verified, stage};

mod print;

pub use print::print;

/// The storage that an op implies for its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Own memory without gaps.
    Owned,
    /// Part of another value's memory; the value that owns the memory is not a view.
    View(Value, Box<Layout>),
}

/// The layouts of a graph.
#[derive(Clone, Debug)]
pub struct Layouts {
    /// The storage of each value.
    pub storage: Vec<Storage>,
    /// The format and the bytes of each weight; `None` for other values.
    pub weight_storage: Vec<Option<WeightStorage>>,
}

impl Layouts {
    /// Returns the layouts of programs for a target. Returns `None` on overflow.
    pub fn of(graph: &Verified<stage::Programs>, target: &dyn Target) -> Option<Layouts> {
        let weight_storage = store_weights(graph, target)?;
        let mut out = Layouts {
            storage: vec![Storage::Owned; graph.values().len()],
            weight_storage,
        };
        for (_, data) in graph.insts() {
            if !data.op.is_view() {
                continue;
            }
            let (operand, result) = (data.operands[0], data.results[0]);
            let Some((base, layout)) = out.layout(graph, operand) else {
                continue;
            };
            if out.is_packed(base) {
                continue;
            }
            let (from, to) = (&graph.value(operand).ty, &graph.value(result).ty);
            if let Some(layout) = layout.view(&data.op, from, to) {
                out.storage[result.index()] = Storage::View(base, Box::new(layout));
            }
        }
        Some(out)
    }

    /// Returns the value that owns the memory of `value`.
    pub fn base(&self, value: Value) -> Value {
        match &self.storage[value.index()] {
            Storage::Owned => value,
            Storage::View(base, _) => *base,
        }
    }

    /// Returns the owner of a value's memory, and the value's layout in that memory. Returns `None` on overflow.
    pub fn layout(&self, graph: &Graph, value: Value) -> Option<(Value, Layout)> {
        match &self.storage[value.index()] {
            Storage::Owned => Some((value, Layout::dense(&graph.value(value).ty)?)),
            Storage::View(base, layout) => Some((*base, (**layout).clone())),
        }
    }

    /// True for views that need no launch.
    pub fn is_view(&self, graph: &Graph, inst: Inst) -> bool {
        let data = graph.inst(inst);
        data.op.is_view() && matches!(self.storage[data.results[0].index()], Storage::View(..))
    }

    /// True for instructions that compute or move data, and thus need a launch.
    pub fn is_launched(&self, graph: &Graph, inst: Inst) -> bool {
        let op = &graph.inst(inst).op;
        let leaf = op.is_stored() || matches!(op, Op::Input(_));
        !leaf && !self.is_view(graph, inst)
    }

    /// Returns the storage format of a value.
    pub fn format(&self, value: Value) -> StorageFormat {
        self.weight_storage[value.index()].map_or(StorageFormat::FILE, |s| s.format)
    }

    fn is_packed(&self, value: Value) -> bool {
        self.format(value) != StorageFormat::FILE
    }
}

fn store_weights(graph: &Graph, target: &dyn Target) -> Option<Vec<Option<WeightStorage>>> {
    let mut readers: Vec<Vec<(&Op, usize)>> = vec![Vec::new(); graph.values().len()];
    for (_, data) in graph.insts() {
        for (i, v) in data.operands.iter().enumerate() {
            if matches!(graph.def_op(*v), Op::Weight(_)) {
                readers[v.index()].push((&data.op, i));
            }
        }
    }
    let mut out = vec![None; graph.values().len()];
    for (value, data) in graph.values() {
        if let Op::Weight(op) = graph.def_op(value) {
            let part = WeightPart::of(op, &data.ty);
            out[value.index()] =
                Some(target.weight_storage(data.place, part, &readers[value.index()])?);
        }
    }
    Some(out)
}
