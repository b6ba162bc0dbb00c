//! Options whose value does not count.

use std::collections::BTreeSet;

use tpc_ir::Code;

use super::{Check, Line, Lint, Names};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Meaning;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    names: Names::Option,
    code: Code::warning(
        "TPC0914",
        "an option that is overridden",
        "Something is said more than once, and the last counts; an option counts more than an environment \
         variable. Lines that grew over time, and services with an environment file, hold such remains.",
    )
    .example("`LLAMA_ARG_CTX_SIZE=8192 llama-server … -c 4096`.")
    .cure("say it once."),
    check: Check::Line(check),
};

fn check(line: &Line<'_>, out: &mut Vec<Diagnostic>) {
    let mut told = BTreeSet::new();
    for given in &line.command.given {
        let meaning = given.flag.meaning;
        // Of these, all count.
        let several = matches!(
            meaning,
            Meaning::Override
                | Meaning::Adapter
                | Meaning::OverrideKv
                | Meaning::Rope
                | Meaning::Other
                | Meaning::Remote
        );
        if several || !told.insert(meaning) {
            continue;
        }
        let all: Vec<_> = line.command.all(meaning).collect();
        let (Some(last), true) = (all.last(), all.len() > 1) else {
            continue;
        };
        let before: Vec<String> = all[..all.len() - 1]
            .iter()
            .filter(|g| g.value != last.value)
            .map(|g| {
                if g.from_env {
                    format!("{}={}", g.spelled, g.value)
                } else {
                    format!("{} {}", g.spelled, g.value)
                }
            })
            .collect();
        if !before.is_empty() {
            let message = format!(
                "{} {} counts, not {}",
                last.spelled,
                last.value,
                before.join(", ")
            );
            out.push(Diagnostic::new(&LINT.code, &last.spelled, message).help("say it once"));
        }
    }
}
