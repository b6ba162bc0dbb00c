use tpc_ir::Code;
use tpc_ir::DType;

use super::{Check, EntityKind, File, Lint};
use crate::view::layer_name;
use tpc_diag::{Diagnostic, message};
use tpc_gguf::Endianness;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::error(
        "TPC0615",
        "a tensor has infinities or NaNs",
        "A single infinity or NaN in a norm, a bias or a router makes every logit NaN. The lint reads tensors of at \
         most 1,048,576 elements in f32, f16 or bf16.",
    )
    .example("an f16 conversion of a weight above 65504.")
    .cure("convert the model again, from bf16 or f32, and check the download."),
    check: Check::File(check),
};

const MOST: u64 = 1 << 20;

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    if file.file.endianness() != Endianness::Little {
        return;
    }
    for t in file
        .header()
        .tensors()
        .iter()
        .filter(|t| t.elements() <= MOST)
    {
        let Some(data) = file.file.tensor_data(t) else {
            return;
        };
        // All exponent bits are set.
        let halves = |bits: u16| {
            let pairs = data.as_chunks::<2>().0.iter();
            pairs
                .filter(|&&b| u16::from_le_bytes(b) & bits == bits)
                .count()
        };
        let found = match t.dtype {
            DType::F32 => {
                let words = data.as_chunks::<4>().0.iter();
                words
                    .filter(|&&b| !f32::from_le_bytes(b).is_finite())
                    .count()
            }
            DType::F16 => halves(0x7c00),
            DType::Bf16 => halves(0x7f80),
            DType::F8E4M3 => data.iter().filter(|&b| b & 0x7f == 0x7f).count(),
            _ => 0,
        };
        if found > 0 {
            let message = message!(
                "{} has {} infinities or NaNs among {} elements",
                layer_name(&t.name),
                found,
                t.elements()
            );
            let help = "convert the model again, from bf16 or f32, and check the download";
            out.push(LINT.finding(&t.name, message).help(help));
        }
    }
}
