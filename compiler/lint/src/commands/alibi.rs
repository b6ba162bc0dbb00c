//! Slopes that depend on the number of a head.

use tpc_ir::Code;
use tpc_ir::Op;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::meta::REFUSED;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0902",
        "ALiBi under llama.cpp's tensor split",
        "Attention of this model takes a slope times the distance from each logit, and every head has a slope of \
         its own. Under `-sm tensor` llama.cpp computes the slopes from the heads of a device, numbered from 0 \
         on each: all devices but the first have wrong ones, and nothing says so. tpc gives each device the \
         numbers of its heads.",
    )
    .example("a BLOOM model on two devices.")
    .cure("`-sm layer` there, or the command of tpc that is printed."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let slopes = command.file.model.is_some_and(|m| {
        let ops = m.graph.insts();
        ops.into_iter()
            .any(|(_, i)| matches!(&i.op, Op::FlashAttn(a) if a.max_bias > 0.0))
    });
    if command.splits_tensors() && slopes && !REFUSED.contains(&command.file.arch()) {
        let message =
            "llama.cpp silently gives the heads of all devices but the first wrong ALiBi slopes";
        let help = message!(
            "-sm layer there; tpc numbers the heads: {}",
            command.equivalent
        );
        out.push(LINT.finding("-sm", message).help(help));
    }
}
