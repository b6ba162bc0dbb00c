//! A KV cache on the host under a tensor split.

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{Observation, Setting, limit_codes, measurement};
use tpc_ggml::meta::REFUSED;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: limit_codes::CACHES_ON_HOST,
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
