use rustc_hash::FxHashMap;
use tpc_ir::op::OpCategory;
use tpc_ir::{Op, Value};

/// The model's outside values, in the order of the obligation's signature.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    pub(super) values: Vec<Value>,
    numbers: FxHashMap<Value, u32>,
}

impl Boundary {
    pub(super) fn number(&mut self, v: Value) -> (u32, bool) {
        let next = self.values.len() as u32;
        let n = *self.numbers.entry(v).or_insert(next);
        if n == next {
            self.values.push(v);
        }
        (n, n == next)
    }

    pub(super) fn find(&self, v: Value) -> Option<usize> {
        self.numbers.get(&v).map(|&n| n as usize)
    }
}

/// True if an outside value is added as this op on its operand. The op rearranges elements, and a device may apply it
/// in a different layer than the model does.
pub(super) const fn is_inlined(op: &Op) -> bool {
    match op.category() {
        OpCategory::Layout | OpCategory::Selection | OpCategory::Repetition | OpCategory::Copy => {
            true
        }
        OpCategory::Stored
        | OpCategory::Input
        | OpCategory::Constant
        | OpCategory::Assembly
        | OpCategory::Update
        | OpCategory::Collective(_)
        | OpCategory::Product
        | OpCategory::Heavy
        | OpCategory::Light => false,
    }
}
