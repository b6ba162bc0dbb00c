use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Setting;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0910",
        "the physical batch is larger than the logical batch",
        "`-ub` is larger than `-b` (2048 by default). llama.cpp computes at most `-b` tokens at once, so the excess \
         has no effect. tpc has no `-b` and reserves memory for `-ub` tokens.",
    )
    .example("`-b 512 -ub 2048`.")
    .cure("lower `-ub` to `-b`, or raise `-b`."),
    check: Check::Command(check),
};

/// The default logical batch in tokens.
const BATCH: u64 = 2048;

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let batch = command.line.count(Setting::Batch).unwrap_or(BATCH);
    let Some(ubatch) = command
        .line
        .count(Setting::Ubatch)
        .filter(|&u| u > batch && batch > 0)
    else {
        return;
    };
    let message = message!(
        "-ub {} exceeds -b {}: llama.cpp computes at most {} tokens at once",
        ubatch,
        batch,
        batch
    );
    let help = message!("-ub {}, or -b {}", batch, ubatch);
    out.push(LINT.finding("-ub", message).help(help));
}
