//! Cache types for which llama.cpp computes attention on the CPU.

use tpc_ir::{Code, DType, Op};

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Maker;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0906",
        "cache types without a kernel in default builds",
        "llama.cpp's CUDA back end has attention kernels for caches of f16, bf16, q8_0 and q4_0, with the same \
         type for keys and values. Other types and mixed types need a build with `GGML_CUDA_FA_ALL_QUANTS`; \
         otherwise the CPU computes attention and every token waits for it. iq4_nl has no CUDA kernel at all.",
    )
    .example("`-ctk q8_0 -ctv q4_0`.")
    .cure("one of these types for both, or such a build. tpc plans every pair as if it had a kernel."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    const COMPILED: [DType; 4] = [DType::F16, DType::Bf16, DType::Q8_0, DType::Q4_0];
    let (k, v) = (
        command.placement.cache_type_k,
        command.placement.cache_type_v,
    );
    if command.line.maker == Maker::IkLlamaCpp {
        return;
    }
    // Attention with a latent cache has no other: its values are a part of the keys.
    let v = if has_values(command) { v } else { k };
    if (k == v && COMPILED.contains(&k)) || k == DType::F32 && v == DType::F32 {
        return;
    }
    let build = if [k, v].contains(&DType::Iq4Nl) {
        "has no CUDA kernel"
    } else {
        "has a CUDA kernel only when built with GGML_CUDA_FA_ALL_QUANTS"
    };
    let message = message!(
        "for K {} and V {}, llama.cpp {}; without a kernel, the CPU computes attention",
        k.name(),
        v.name(),
        build
    );
    let help = "use f16, bf16, q8_0 or q4_0 for both; tpc plans all pairs as if they had kernels";
    out.push(LINT.finding("-ctk", message).help(help));
}

/// Whether the model has caches of values; one whose graph is not known may have.
fn has_values(command: &Command<'_>) -> bool {
    command.file.model.is_none_or(|m| {
        let names = m.graph.insts().filter_map(|(_, i)| match &i.op {
            Op::State(s) => Some(s.name.as_str()),
            _ => None,
        });
        names.into_iter().any(|n| n.starts_with("cache_v"))
    })
}
