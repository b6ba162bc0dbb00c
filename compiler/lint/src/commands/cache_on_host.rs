//! A KV cache on the host under a tensor split.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{Observation, Setting, measurement};
use tpc_ggml::meta::REFUSED;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0901",
        "a KV cache on the host under llama.cpp's tensor split",
        "With `-sm tensor`, llama.cpp treats tensors on the host as identical on every device, but a KV cache on \
         the host would have to be split by heads. Depending on the architecture, llama.cpp aborts or silently \
         computes wrong logits. tpc copies to each device the heads that it needs.",
    )
    .example("`-sm tensor -nkvo`.")
    .cure("leave out `-nkvo` with llama.cpp (a smaller `-c`, or `-ctk q8_0 -ctv q8_0`, saves memory), or use the \
           `tpc` command in the help."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let Some(given) = command.line.last(Setting::KvOffload) else {
        return;
    };
    let arch = command.file.arch();
    if !command.splits_tensors()
        || !command.line.is_off(Setting::KvOffload)
        || REFUSED.contains(&arch)
    {
        return;
    }
    let does = match measurement(arch).map(|m| m.cache_on_host) {
        Some(Observation::Crash) => {
            message!("llama.cpp aborts, as measured with {}", arch)
        }
        Some(Observation::Wrong) => {
            message!(
                "llama.cpp silently computes wrong logits, as measured with {}",
                arch
            )
        }
        Some(Observation::Right | Observation::Untried) | None => {
            "llama.cpp treats the cache as mirrored: it aborts or silently computes wrong logits"
                .into()
        }
    };
    let help = message!(
        "tpc copies to each device its heads: {}",
        command.equivalent
    );
    out.push(LINT.finding(&given.spelling, does).help(help));
}
