//! Walks up from a value to what computes it: among the instructions of a set, and in a whole graph.

use std::cell::RefCell;
use std::collections::BTreeSet;

use tpc_ir::op::BinaryKind;
use tpc_ir::program::{StoredFormat, Surroundings};
use tpc_ir::{DType, Dim, Graph, Inst, InstData, Op, Output, RANK, Value};

/// The instructions that share a launch.
pub(super) struct Matcher<'a> {
    pub(super) graph: &'a Graph,
    pub(super) insts: &'a [Inst],
    format: &'a dyn Fn(Value) -> StoredFormat,
    kept: &'a dyn Fn(Value) -> bool,
    /// Those that were matched.
    matched: RefCell<BTreeSet<Inst>>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        insts: &'a [Inst],
        format: &'a dyn Fn(Value) -> StoredFormat,
        kept: &'a dyn Fn(Value) -> bool,
    ) -> Matcher<'a> {
        Matcher {
            graph,
            insts,
            format,
            kept,
            matched: RefCell::default(),
        }
    }

    /// The last instruction.
    pub(super) fn last(&self) -> Option<&'a InstData> {
        self.insts.last().map(|i| self.visit(*i))
    }

    /// An instruction of the set, which is matched so.
    pub(super) fn visit(&self, inst: Inst) -> &'a InstData {
        self.matched.borrow_mut().insert(inst);
        self.graph.inst(inst)
    }

    /// The instruction of the set that computes a value; reshapes between are passed.
    pub(super) fn of(&self, v: Value) -> Option<&'a InstData> {
        let inst = self.graph.value(v).def.0;
        if !self.insts.contains(&inst) {
            return None;
        }
        let data = self.visit(inst);
        match data.op {
            Op::Reshape(_) => self.of(data.operands[0]),
            _ => Some(data),
        }
    }

    /// Whether all instructions were matched.
    pub(super) fn is_complete(&self) -> bool {
        self.matched.borrow().len() == self.insts.len()
    }

    /// Whether something outside reads a value.
    pub(super) fn is_kept(&self, v: Value) -> bool {
        (self.kept)(v)
    }

    pub(super) fn dtype(&self, v: Value) -> DType {
        self.graph.value(v).ty.dtype
    }

    pub(super) fn dims(&self, v: Value) -> &'a [Dim; RANK] {
        &self.graph.value(v).ty.dims
    }

    /// Whether the values are f32.
    pub(super) fn are_f32(&self, values: &[Value]) -> bool {
        values.iter().all(|v| self.dtype(*v) == DType::F32)
    }

    /// Whether a value is read as reals, one by one.
    pub(super) fn is_float(&self, v: Value) -> bool {
        let float = matches!(self.dtype(v), DType::F32 | DType::F16 | DType::Bf16);
        float && (self.format)(v) == StoredFormat::File
    }

    /// Whether a weight lies in planes.
    pub(super) fn is_packed(&self, v: Value) -> bool {
        (self.format)(v) == StoredFormat::Planes
    }

    /// Whether it is a product with a weight in planes, as f32.
    pub(super) fn is_product(&self, data: &InstData) -> bool {
        let product = matches!(data.op, Op::MulMat(_) | Op::MulMatId(_));
        product && self.are_f32(&data.results) && self.is_packed(data.operands[0])
    }

    /// Of an operation on two tensors the one that the set computes, and the other; the first has the result's sizes.
    pub(super) fn inner(&self, data: &InstData) -> Option<(&'a InstData, Value)> {
        let [a, b] = *data.operands.as_slice() else {
            return None;
        };
        match (self.of(a), self.of(b)) {
            (Some(inner), None) => Some((inner, b)),
            (None, Some(inner)) if self.dims(b) == self.dims(data.results[0]) => Some((inner, a)),
            _ => None,
        }
    }
}

/// Whether it is an operation of a kind on two tensors.
pub(super) fn is_binary(data: &InstData, kind: BinaryKind) -> bool {
    matches!(&data.op, Op::Binary(op) if op.kind == kind)
}

/// Walks in a whole graph.
#[derive(Clone, Copy)]
pub(super) struct DefWalker<'a> {
    pub(super) context: &'a dyn Surroundings,
}

impl<'a> DefWalker<'a> {
    pub(super) fn graph(&self) -> &'a Graph {
        self.context.graph()
    }

    /// What computes a value, and the views between.
    pub(super) fn of(&self, v: Value) -> (Inst, &'a InstData, Vec<Inst>) {
        let graph = self.graph();
        let mut views = Vec::new();
        let mut inst = graph.value(v).def.0;
        while self.context.is_view(inst) {
            views.push(inst);
            inst = graph.value(graph.inst(inst).operands[0]).def.0;
        }
        (inst, graph.inst(inst), views)
    }

    /// The set of what computes a value and all that this needs, as far as `within` says.
    pub(super) fn closure(&self, v: Value, within: &dyn Fn(&InstData) -> bool) -> Vec<Inst> {
        let (inst, data, mut out) = self.of(v);
        if !within(data) {
            return Vec::new();
        }
        out.push(inst);
        for operand in &data.operands {
            out.extend(self.closure(*operand, within));
        }
        out
    }

    /// The only instruction that reads a value, where it is no output.
    pub(super) fn only_user(&self, v: Value) -> Option<(Inst, &'a InstData)> {
        let [user] = *self.context.users(v) else {
            return None;
        };
        (!self.is_output(v)).then(|| (user, self.graph().inst(user)))
    }

    fn is_output(&self, v: Value) -> bool {
        let outputs = self.graph().outputs.iter();
        outputs.map(Output::value).any(|o| o == v)
    }

    /// Whether a value is read by others than these.
    pub(super) fn is_read_beside(&self, v: Value, insts: &[Inst]) -> bool {
        let users = self.context.users(v);
        users.is_empty() || users.iter().any(|u| !insts.contains(u)) || self.is_output(v)
    }
}
