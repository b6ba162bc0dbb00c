//! ALiBi slopes that llama.cpp computes wrongly under a tensor split.

use tpc_ir::Op;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::limit_codes;
use tpc_ggml::meta::REFUSED;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: limit_codes::SLOPES,
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let slopes = command.file.model.is_some_and(|m| {
        let ops = m.graph.insts();
        ops.into_iter()
            .any(|(_, i)| matches!(&i.op, Op::FlashAttn(a) if a.max_bias > 0.0))
    });
    if command.splits_tensors() && slopes && !REFUSED.contains(&command.file.arch()) {
        let message = "llama.cpp silently uses wrong ALiBi slopes on every device but the first";
        let help = message!(
            "use -sm layer with llama.cpp; tpc numbers the heads correctly: {}",
            command.equivalent
        );
        out.push(LINT.finding("-sm", message).help(help));
    }
}
