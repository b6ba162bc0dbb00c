//! The work of an op on one device, from what the device holds of its operands and results.

use tpc_ir::op::Slot;
use tpc_ir::{Bindings, Op, TensorType};

use super::{ExpertLoad, Work, element_bytes};

/// What one device holds of an instruction's operands and results.
pub(crate) trait Parts {
    /// The type over all devices.
    fn ty(&self, slot: Slot) -> &TensorType;
    /// Elements on this device.
    fn elements(&self, slot: Slot) -> f64;
    /// Elements over all devices.
    fn whole(&self, slot: Slot) -> f64;
    /// Bytes that this device stores of a weight.
    fn stored_bytes(&self, operand: usize) -> f64;
    /// The experts of each device, and of this one, where axis 2 of the first operand is split.
    fn experts(&self) -> Option<(Vec<u64>, u64)>;
}

/// The work of an op with at least one result.
pub(crate) fn work(op: &Op, parts: &impl Parts, b: &Bindings, expert_load: &ExpertLoad) -> Work {
    let operand = |i: usize| parts.elements(Slot::Operand(i));
    let result = |i: usize| parts.elements(Slot::Result(i));
    let size = |slot: Slot, axis: usize, otherwise: u64| {
        parts.ty(slot).dims[axis].eval(b).unwrap_or(otherwise) as f64
    };
    let out = result(0);
    match op {
        op if op.is_leaf() || op.is_transfer() => Work::default(),
        Op::Reshape(_) | Op::Permute(_) | Op::Slice(_) | Op::SetRows(_) | Op::SetSlice(_) => {
            Work::default()
        }
        Op::MulMat(_) => {
            let x = Slot::Operand(1);
            let columns = parts.whole(x) / size(x, 0, 1).max(1.0);
            Work {
                flops: 2.0 * operand(0) * columns,
                bytes: parts.stored_bytes(0) + 4.0 * (operand(1) + out),
            }
        }
        Op::MulMatId(_) => {
            let experts = size(Slot::Operand(0), 2, 1);
            let drawn = parts.whole(Slot::Operand(2));
            // Distinct experts read, and products computed, on this device, of how many that it holds.
            let (touched, products, held) = match parts.experts() {
                Some((lens, own)) => {
                    let busiest = expert_load.busiest(drawn as u64, lens);
                    (busiest.min(own as f64), busiest, (own as f64).max(1.0))
                }
                None => (drawn.min(experts), drawn, experts),
            };
            Work {
                flops: 2.0 * operand(0) / held * products,
                bytes: parts.stored_bytes(0) / held * touched + 4.0 * out,
            }
        }
        Op::GetRows(_) => Work {
            flops: out,
            bytes: 8.0 * out,
        },
        Op::FlashAttn(_) => {
            let cells = size(Slot::Operand(1), 1, 0);
            let kv = |i: usize| operand(i) * element_bytes(parts.ty(Slot::Operand(i)).dtype);
            Work {
                flops: 4.0 * operand(0) * cells,
                bytes: kv(1) + kv(2) + 4.0 * (operand(0) + out),
            }
        }
        Op::LightningIndexer(_) => {
            let cells = size(Slot::Operand(1), 2, 0);
            let keys = element_bytes(parts.ty(Slot::Operand(1)).dtype);
            Work {
                flops: 2.0 * operand(0) * cells,
                bytes: keys * operand(1) + 4.0 * (operand(0) + out),
            }
        }
        Op::SsmScan(_) | Op::GatedDeltaNet(_) => {
            // The state is read and written once, and updated by every token.
            let state = result(1);
            let tokens = size(Slot::Result(0), 2, 1);
            Work {
                flops: 6.0 * state * tokens,
                bytes: 8.0 * (state + out),
            }
        }
        _ => Work {
            flops: out,
            bytes: 8.0 * out,
        },
    }
}
