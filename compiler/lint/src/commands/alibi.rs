//! ALiBi slopes that llama.cpp computes wrongly under a tensor split.

use tpc_ir::Code;
use tpc_ir::Op;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::meta::REFUSED;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0902",
        "ALiBi under llama.cpp's tensor split",
        "ALiBi subtracts from each logit the distance times a slope, and every head has a slope of its own. \
         Under `-sm tensor` llama.cpp numbers the heads of each device from 0, so all devices but the first use \
         wrong slopes, and nothing reports it. tpc gives each device the numbers of its heads.",
    )
    .example("a BLOOM model on two devices.")
    .cure("`-sm layer` with llama.cpp, or the `tpc` command in the help."),
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
