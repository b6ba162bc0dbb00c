//! Pairs of cache types that send attention to the CPU.

use tpc_ir::Code;
use tpc_ir::DType;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0906",
        "cache types without a kernel in usual builds",
        "The CUDA back end of llama.cpp is compiled with kernels for attention to caches of f16, bf16, q8_0 and \
         q4_0, keys and values alike. For other types, and for keys and values of different types, it must be \
         built with `GGML_CUDA_FA_ALL_QUANTS`; without, attention is computed by the CPU, and every token waits \
         for it. For iq4_nl there is no such kernel at all.",
    )
    .example("`-ctk q8_0 -ctv q4_0`.")
    .cure("one of these types for both, or such a build. tpc treats all pairs alike."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    const COMPILED: [DType; 4] = [DType::F16, DType::Bf16, DType::Q8_0, DType::Q4_0];
    let (k, v) = (
        command.placement.cache_type_k,
        command.placement.cache_type_v,
    );
    if (k == v && COMPILED.contains(&k)) || k == DType::F32 && v == DType::F32 {
        return;
    }
    let build = if [k, v].contains(&DType::Iq4Nl) {
        "has no CUDA kernel"
    } else {
        "has a CUDA kernel only when built with GGML_CUDA_FA_ALL_QUANTS"
    };
    let message = message!(
        "for K {} and V {} llama.cpp {}; else the CPU attends",
        k.name(),
        v.name(),
        build
    );
    let help = "f16, bf16, q8_0 or q4_0 for both; tpc treats all pairs alike";
    out.push(LINT.finding("-ctk", message).help(help));
}
