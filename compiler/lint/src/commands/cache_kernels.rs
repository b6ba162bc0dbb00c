use tpc_ir::{Code, Op};

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::engines::{Backend, CacheKernel};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0906",
        "cache types without a fast kernel",
        "Without an attention kernel for the cache types, the back end converts the cache to f16 for every token, or \
         the CPU computes attention. CUDA in llama.cpp 0.8.0 reads equal types of f16, bf16, q8_0 and q4_0, converts \
         other pairs (without `GGML_CUDA_FA_QUANTS`), and does not support iq4_nl. Vulkan and SYCL support mixed \
         pairs, Metal only equal types.",
    )
    .example("`-ctk q8_0 -ctv q4_0` on CUDA.")
    .cure("use a pair that the help names; tpc's estimates assume a kernel."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let (k, v) = (
        command.placement.cache_type_k,
        command.placement.cache_type_v,
    );
    // Latent attention has no separate value cache.
    let v = if has_values(command) { v } else { k };
    for backend in back_ends(command) {
        let Some(kernels) = command.build.cache_kernels(backend) else {
            continue;
        };
        let does = match kernels.kernel(k.name(), v.name()) {
            CacheKernel::Direct => continue,
            CacheKernel::Converted => "converts the cache to f16 for every token (slow)",
            CacheKernel::Missing => "has no attention kernel: the CPU computes attention",
        };
        let message = message!(
            "for K {} and V {}, {} on {} {} ({})",
            k.name(),
            v.name(),
            command.build.name(),
            backend.name(),
            does,
            kernels.basis.to_string()
        );
        let direct = kernels.direct.as_ref().unwrap_or(&kernels.types);
        let types = direct.join(", ");
        let help = match &kernels.with {
            Some(option) => message!(
                "use the same type for both: {}; or build with {}",
                types,
                option
            ),
            None => message!("use the same type for both: {}", types),
        };
        out.push(LINT.finding("-ctk", message).help(help));
        return;
    }
}

/// Returns the back ends of the command, or CUDA if the line names no back end.
fn back_ends(command: &Command<'_>) -> Vec<Backend> {
    let known: Vec<Backend> = command.backends.iter().flatten().copied().collect();
    match known.is_empty() {
        true => vec![Backend::Cuda],
        false => known,
    }
}

/// True if the model has value caches, or its graph is unknown.
fn has_values(command: &Command<'_>) -> bool {
    command.file.model.is_none_or(|m| {
        let names = m.graph.insts().filter_map(|(_, i)| match &i.op {
            Op::State(s) => Some(s.name.as_str()),
            _ => None,
        });
        names.into_iter().any(|n| n.starts_with("cache_v"))
    })
}
