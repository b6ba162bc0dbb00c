use tpc_ir::{Code, Severity};

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{ParsedOption, ROPE_SETTINGS, Setting, is_of_context, metadata_override};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0918",
        "an option changes the model",
        "The plan ignores changes of the file's metadata (`--override-kv`) and RoPE scaling. RoPE affects only the \
         longest context (TPC0312). A changed count, such as the number of experts used, changes the graph.",
    )
    .example("`--override-kv qwen3moe.expert_used_count=int:16`.")
    .cure("for a count, write the value into the file; for RoPE, no action needed.")
    .with_milder_severity(Severity::Note),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let of_context = |value: &str| {
        let mut parts = value.split(',');
        parts.all(|p| metadata_override(p).is_some_and(|(name, _)| is_of_context(name)))
    };
    for given in command.line.all(Setting::OverrideKv) {
        if of_context(&given.value) {
            out.push(of_rotation(command, &given.spelling, &given.value));
            continue;
        }
        let message = message!(
            "the plan ignores {} {} and uses the file's value",
            given.spelling,
            given.value
        );
        let d = LINT.finding(&given.spelling, message);
        out.push(d.help("write the value into the file"));
    }
    let rope = |given: &&ParsedOption| ROPE_SETTINGS.contains(&given.spec.setting);
    if let Some(given) = command.line.options.iter().rfind(rope) {
        out.push(of_rotation(command, &given.spelling, &given.value));
    }
}

fn of_rotation(command: &Command<'_>, spelling: &str, value: &str) -> Diagnostic {
    let message = message!(
        "{} {} changes only RoPE: sizes and splits stay the same",
        spelling,
        value
    );
    let note = LINT.milder_finding(spelling, message);
    let trained = command.file.model.map_or(0, |m| m.summary.n_ctx_train);
    match command.placement.stretch.filter(|s| s.reach() > trained) {
        Some(stretch) => note.help(message!(
            "no action needed: the model's context is now {} tokens",
            stretch.reach()
        )),
        None => note.help("no action needed"),
    }
}
