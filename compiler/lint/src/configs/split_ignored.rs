use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0801",
        "--tensor-split is ignored on one device",
        "`--tensor-split` is given, but everything is on one device: there is only one, or the split mode is `none`.",
    )
    .example("`-sm none -ts 3,1`.")
    .cure("use `-sm tensor` or `-sm layer`, or leave out the proportions."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    if plan.placement.tensor_split.is_some() && plan.compiled.mode == SplitMode::None {
        let why = match plan.placement.devices.len() {
            1 => "there is one device",
            _ => "the split mode is `none`",
        };
        let message = message!("--tensor-split is ignored: {}", why);
        let help = "use -sm tensor or -sm layer on several devices, or leave out the proportions";
        out.push(LINT.finding("--tensor-split", message).help(help));
    }
}
