//! Split modes removed from a release, and `row`, which tpc does not support.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{Setting, limit_codes};

/// The lint for a mode that was removed from the release.
pub(crate) static DROPPED: Lint = Lint {
    entity: EntityKind::Option,
    code: limit_codes::DROPPED_MODE,
    check: Check::Command(lint_dropped_modes),
};

/// The lint for the mode that tpc does not support.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0912",
        "tpc has no row split",
        "llama.cpp's `-sm row` splits single matrices by rows and keeps the KV cache and all else on the main \
         device, so each matrix product ends with a transfer. tpc has no such mode: it plans a split by layers instead, \
         and its memory per device is not that of `row`. llama.cpp dropped `row` in July 2026 (TPC0925).",
    )
    .example("`-sm row -ts 1,1` with `--engine llama.cpp@0.5.0`.")
    .cure("`-sm tensor` where it serves the model, else `-sm layer`."),
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
        "{} does not load a model with -sm {}: gone since {} (\"{}\"; {})",
        command.build.name(),
        mode,
        dropped.since,
        dropped.says,
        dropped.basis.to_string()
    );
    let instead = match command.would_split_tensors() {
        true => "use -sm tensor, or -sm layer",
        false => "use -sm layer; -sm tensor does not serve this model",
    };
    out.push(DROPPED.finding("-sm", message).help(instead));
}

fn row(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let mode = command.line.value(Setting::SplitMode);
    if mode == Some("row") && command.build.has_mode("row") {
        let message = "llama.cpp splits matrices by rows and keeps the KV cache on the main device; tpc plans a split by layers";
        let help = match command.would_split_tensors() {
            true => "use -sm tensor with llama.cpp, too",
            false => "use -sm layer with llama.cpp, too",
        };
        out.push(LINT.finding("-sm", message).help(help));
    }
}
