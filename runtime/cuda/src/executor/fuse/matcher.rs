//! Walks from values to their definitions, within an instruction set or a graph.

use std::cell::RefCell;
use std::collections::BTreeSet;

use tpc_ir::op::BinaryKind;
use tpc_ir::program::{FusionContext, StorageFormat};
use tpc_ir::{DType, Dim, Graph, Inst, InstData, Op, Output, RANK, Value};

use crate::planes::Planes;

pub(super) struct Matcher<'a> {
    pub(super) graph: &'a Graph,
    pub(super) insts: &'a [Inst],
    format: &'a dyn Fn(Value) -> StorageFormat,
    kept: &'a dyn Fn(Value) -> bool,
    matched: RefCell<BTreeSet<Inst>>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        insts: &'a [Inst],
        format: &'a dyn Fn(Value) -> StorageFormat,
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

    pub(super) fn last(&self) -> Option<&'a InstData> {
        self.insts.last().map(|i| self.visit(*i))
    }

    pub(super) fn visit(&self, inst: Inst) -> &'a InstData {
        self.matched.borrow_mut().insert(inst);
        self.graph.inst(inst)
    }

    /// Returns the instruction of the set that computes a value. Skips reshapes.
    pub(super) fn def(&self, v: Value) -> Option<&'a InstData> {
        let inst = self.graph.value(v).def.0;
        if !self.insts.contains(&inst) {
            return None;
        }
        let data = self.visit(inst);
        match data.op {
            Op::Reshape(_) => self.def(data.operands[0]),
            _ => Some(data),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.matched.borrow().len() == self.insts.len()
    }

    pub(super) fn is_read_outside(&self, v: Value) -> bool {
        (self.kept)(v)
    }

    pub(super) fn dtype(&self, v: Value) -> DType {
        self.graph.value(v).ty.dtype
    }

    pub(super) fn dims(&self, v: Value) -> &'a [Dim; RANK] {
        &self.graph.value(v).ty.dims
    }

    pub(super) fn are_f32(&self, values: &[Value]) -> bool {
        values.iter().all(|v| self.dtype(*v) == DType::F32)
    }

    /// True for a float type in the layout of the file.
    pub(super) fn is_float(&self, v: Value) -> bool {
        let float = matches!(self.dtype(v), DType::F32 | DType::F16 | DType::Bf16);
        float && (self.format)(v) == StorageFormat::FILE
    }

    pub(super) fn is_packed(&self, v: Value) -> bool {
        (self.format)(v) == Planes::FORMAT
    }

    /// True for a product with a weight in planes and an f32 result.
    pub(super) fn is_product(&self, data: &InstData) -> bool {
        let product = matches!(data.op, Op::MulMat(_) | Op::MulMatId(_));
        product && self.are_f32(&data.results) && self.is_packed(data.operands[0])
    }

    /// Returns the definition of the operand that has the sizes of the result, and the other operand.
    pub(super) fn inner(&self, data: &InstData) -> Option<(&'a InstData, Value)> {
        let [a, b] = *data.operands.as_slice() else {
            return None;
        };
        match (self.def(a), self.def(b)) {
            (Some(inner), None) => Some((inner, b)),
            (None, Some(inner)) if self.dims(b) == self.dims(data.results[0]) => Some((inner, a)),
            _ => None,
        }
    }
}

pub(super) fn is_binary(data: &InstData, kind: BinaryKind) -> bool {
    matches!(&data.op, Op::Binary(op) if op.kind == kind)
}

#[derive(Clone, Copy)]
pub(super) struct DefWalker<'a> {
    pub(super) context: &'a dyn FusionContext,
}

impl<'a> DefWalker<'a> {
    pub(super) fn graph(&self) -> &'a Graph {
        self.context.graph()
    }

    /// Returns the instruction that computes a value, and the views between them.
    pub(super) fn def(&self, v: Value) -> (Inst, &'a InstData, Vec<Inst>) {
        let graph = self.graph();
        let mut views = Vec::new();
        let mut inst = graph.value(v).def.0;
        while self.context.is_view(inst) {
            views.push(inst);
            inst = graph.value(graph.inst(inst).operands[0]).def.0;
        }
        (inst, graph.inst(inst), views)
    }

    /// Returns the instructions that compute a value, recursively, while `within` accepts them.
    pub(super) fn closure(&self, v: Value, within: &dyn Fn(&InstData) -> bool) -> Vec<Inst> {
        let (inst, data, mut out) = self.def(v);
        if !within(data) {
            return Vec::new();
        }
        out.push(inst);
        for operand in &data.operands {
            out.extend(self.closure(*operand, within));
        }
        out
    }

    /// Returns the only reader of a value; `None` for outputs.
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

    /// True if an instruction outside `insts` reads a value, or the value is an output or unused.
    pub(super) fn is_read_outside(&self, v: Value, insts: &[Inst]) -> bool {
        let users = self.context.users(v);
        users.is_empty() || users.iter().any(|u| !insts.contains(u)) || self.is_output(v)
    }
}
