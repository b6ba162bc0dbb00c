//! The work of a launch: bytes and operations, for profiles.

use tpc_ir::op::{ExpertShare, Extents, OpCategory, Slot, Work};
use tpc_ir::program::Program;
use tpc_ir::{Bindings, DType, InstData, Launch, Op, TensorType};

/// Returns the work of a launch for a batch of these sizes. Attention reads only the cells that its tokens see, and the
/// sizes do not tell which, so its work is [`Work::NONE`]; so is the work of views, copies and collectives.
pub fn launch_work(program: &Program, launch: Launch, sizes: &Bindings) -> Work {
    let mut sum = Work::NONE;
    for &inst in program.launch(launch).covered_insts() {
        let data = program.graph.inst(inst);
        let counted = match data.op.category() {
            OpCategory::Heavy => !matches!(data.op, Op::FlashAttn(_) | Op::LightningIndexer(_)),
            OpCategory::Product
            | OpCategory::Repetition
            | OpCategory::Assembly
            | OpCategory::Update
            | OpCategory::Light => true,
            _ => false,
        };
        if counted && !data.results.is_empty() {
            let work = data.op.work(&Local {
                program,
                data,
                sizes,
            });
            sum.flops += work.flops;
            sum.bytes += work.bytes;
        }
    }
    sum
}

/// The tensors of an instruction of a program. They are on one device, so parts are whole.
struct Local<'a> {
    program: &'a Program,
    data: &'a InstData,
    sizes: &'a Bindings,
}

impl Local<'_> {
    fn ty(&self, slot: Slot) -> &TensorType {
        let value = match slot {
            Slot::Operand(i) => self.data.operands[i],
            Slot::Result(i) => self.data.results[i],
        };
        &self.program.graph.value(value).ty
    }
}

impl Extents for Local<'_> {
    fn dtype(&self, slot: Slot) -> DType {
        self.ty(slot).dtype
    }

    fn size(&self, slot: Slot, axis: usize) -> Option<u64> {
        self.ty(slot).dims[axis].eval(self.sizes)
    }

    fn elements(&self, slot: Slot) -> f64 {
        let dims = self.ty(slot).dims.iter();
        dims.map(|d| d.eval(self.sizes).unwrap_or(0) as f64)
            .product()
    }

    fn total_elements(&self, slot: Slot) -> f64 {
        self.elements(slot)
    }

    fn stored_bytes(&self, operand: usize) -> f64 {
        self.ty(Slot::Operand(operand))
            .bytes(self.sizes)
            .unwrap_or(0) as f64
    }

    fn expert_load(&self, _: f64) -> Option<ExpertShare> {
        None
    }
}
