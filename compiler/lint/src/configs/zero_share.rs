use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0800",
        "a device has the share 0",
        "`--tensor-split` gives a device the share 0, or lists fewer proportions than devices. The device stays empty \
         and idle.",
    )
    .example("`--devices 3 -ts 1,1`.")
    .cure("give a proportion for each device, or use fewer devices."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let Some(shares) = &plan.placement.tensor_split else {
        return;
    };
    if shares.len() < 2 || plan.compiled.mode == SplitMode::None {
        return;
    }
    let zero = shares
        .iter()
        .zip(&plan.placement.devices)
        .filter(|(s, _)| **s == 0.0);
    let names: Vec<&str> = zero.map(|(_, d)| d.name.as_str()).collect();
    if !names.is_empty() {
        let message = message!(
            "{} of {} devices have the share 0: {}",
            names.len(),
            shares.len(),
            Quantity(names.join(", "))
        );
        let help = message!(
            "give {} proportions above 0, or use --devices {}",
            shares.len(),
            shares.len() - names.len()
        );
        out.push(LINT.finding("--tensor-split", message).help(help));
    }
}
