use std::collections::BTreeSet;

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, Message, message};
use tpc_ggml::llama_cpp::Setting;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0914",
        "an option is overridden",
        "An option is given more than once, and the last value counts. Options override environment variables, such as \
         leftovers in a service's environment file.",
    )
    .example("`LLAMA_ARG_CTX_SIZE=8192 llama-server … -c 4096`.")
    .cure("give the option once."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let mut told = BTreeSet::new();
    for given in &command.line.options {
        let setting = given.spec.setting;
        // These options accumulate.
        let several = matches!(
            setting,
            Setting::Override
                | Setting::Adapter
                | Setting::OverrideKv
                | Setting::Rope
                | Setting::Other
                | Setting::Remote
        );
        if several || !told.insert(setting) {
            continue;
        }
        let all: Vec<_> = command.line.all(setting).collect();
        let (Some(last), true) = (all.last(), all.len() > 1) else {
            continue;
        };
        let before: Vec<Message> = all[..all.len() - 1]
            .iter()
            .filter(|g| g.value != last.value)
            .map(|g| {
                if g.from_env {
                    message!("{}={}", g.spelling, g.value)
                } else {
                    message!("{} {}", g.spelling, g.value)
                }
            })
            .collect();
        if !before.is_empty() {
            let message = message!(
                "{} {} overrides {}",
                last.spelling,
                last.value,
                Message::join(before, ", ")
            );
            out.push(
                LINT.finding(&last.spelling, message)
                    .help("give the option once"),
            );
        }
    }
}
