use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{Setting, limit_codes};

pub(crate) static DROPPED: Lint = Lint {
    entity: EntityKind::Option,
    code: limit_codes::DROPPED_MODE,
    check: Check::Command(lint_dropped_modes),
};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0912",
        "tpc does not support -sm row",
        "llama.cpp's `-sm row` splits single matrices and keeps everything else, such as the KV cache, on the main \
         device. tpc plans a split by layers instead, with other memory per device. llama.cpp dropped `row` in July \
         2026 (TPC0925).",
    )
    .example("`-sm row -ts 1,1` with `--engine llama.cpp@0.5.0`.")
    .cure("use `-sm tensor` if llama.cpp supports it for the model, else `-sm layer`."),
    check: Check::Command(row),
};

fn lint_dropped_modes(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let Some(mode) = command.line.value(Setting::SplitMode) else {
        return;
    };
    let Some(dropped) = command.build.dropped_mode(mode) else {
        return;
    };
    let message = message!(
        "not possible with {}: -sm {} was removed in {} (\"{}\"; {})",
        command.build.name(),
        mode,
        dropped.since,
        dropped.says,
        dropped.basis.to_string()
    );
    let instead = match command.would_split_tensors() {
        true => "use -sm tensor, or -sm layer",
        false => "use -sm layer; -sm tensor fails for this model",
    };
    out.push(DROPPED.finding("-sm", message).help(instead));
}

fn row(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let mode = command.line.value(Setting::SplitMode);
    if mode == Some("row") && command.build.has_mode("row") {
        let message = "llama.cpp splits matrices by rows and keeps the KV cache on the main device; tpc plans a split by layers";
        let help = match command.would_split_tensors() {
            true => "use -sm tensor with llama.cpp",
            false => "use -sm layer with llama.cpp",
        };
        out.push(LINT.finding("-sm", message).help(help));
    }
}
