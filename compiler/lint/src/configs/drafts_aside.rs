use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_models::ARCHS;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0330",
        "draft blocks are left out",
        "The file has multi-token-prediction blocks (`nextn`). The model works without them, so tpc plans them only on \
         request.",
    )
    .example("a Qwen 3.6 with `blk.64.nextn.eh_proj.weight`.")
    .cure("no action needed; `--spec-type draft-mtp` plans them if tpc supports the architecture's draft blocks."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let summary = &plan.compiled.model.summary;
    let Some(aside) = summary.ignored_drafts else {
        return;
    };
    let (many, take) = if aside.blocks == 1 {
        ("", "takes")
    } else {
        ("s", "take")
    };
    let message = message!(
        "{} draft block{} left out, which {} {} of the file",
        aside.blocks,
        many,
        take,
        Quantity(bytes(aside.bytes))
    );
    let described = ARCHS
        .iter()
        .any(|a| a.name == summary.arch && a.drafts.is_some());
    let help = if described {
        "--spec-type draft-mtp plans them with the model".into()
    } else {
        message!(
            "no action needed: the model works without them; tpc does not support draft blocks of {}",
            summary.arch
        )
    };
    out.push(LINT.finding("--spec-type", message).help(help));
}
