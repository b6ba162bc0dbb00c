use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0811",
        "most of the time is spent in all-reduces",
        "By the estimate, all-reduces take more than half of the time of a decoded token. The links are too slow for \
         this model, or the model is too small for this many devices.",
    )
    .example("eight devices on a network of 1 GB/s.")
    .cure("use fewer devices, `-sm layer` (one vector per device and token), or faster links; `-sm auto` compares."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let compiled = plan.compiled;
    let asked = plan.placement.split_mode;
    if !compiled.mode.splits_tensors() || asked == SplitMode::Auto {
        return;
    }
    let links = compiled.estimate.breakdown.collectives_us;
    let total = compiled.estimate.decode_us;
    if links > 0.5 * total {
        let message = message!(
            "{} of {} ms per token are spent in {} all-reduces among {} devices",
            Quantity(format!("{:.2}", links / 1e3)),
            Quantity(format!("{:.2}", total / 1e3)),
            plan.report.collectives.decode.all_reduce,
            plan.report.devices.len()
        );
        let help = "use fewer devices, -sm layer, or faster links (--topology); -sm auto compares";
        out.push(LINT.finding("--split-mode", message).help(help));
    }
}
