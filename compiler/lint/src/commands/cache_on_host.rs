//! KV caches on the host.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{Observation, Setting, measurement};
use tpc_ggml::meta::REFUSED;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0901",
        "a host cache under llama.cpp's tensor split",
        "With `-sm tensor`, llama.cpp takes tensors of the host to be the same on every device; a KV cache that \
         is kept there would have to arrive split by heads. It aborts, or silently computes wrong logits, \
         by the architecture. tpc copies to each device the heads that it attends with.",
    )
    .example("`-sm tensor -nkvo`.")
    .cure("leave `-nkvo` out there (with a smaller `-c` or `-ctk q8_0 -ctv q8_0`), or the command of tpc that is \
           printed."),
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
            message!("llama.cpp aborts, as it did with a model of {}", arch)
        }
        Some(Observation::Wrong) => {
            message!(
                "llama.cpp silently computes wrong logits, as it did with a model of {}",
                arch
            )
        }
        Some(Observation::Right | Observation::Untried) | None => {
            "llama.cpp takes the cache to be mirrored: it aborts, or computes wrong logits".into()
        }
    };
    let help = message!("tpc copies each device's heads: {}", command.equivalent);
    out.push(LINT.finding(&given.spelling, does).help(help));
}
