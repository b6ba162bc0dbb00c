//! Shares of weights that differ from `--tensor-split`.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, Message, Quantity, message};

/// Points of a hundred by which a share may differ without a word.
const QUIET: f64 = 3.0;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0307",
        "a device's share is not the one asked for",
        "`--tensor-split` is followed as far as heads, quantisation blocks and whole layers allow. The message \
         gives the requested and the actual share of the weights, per device, in per cent.",
    )
    .example("`-ts 9,1` for a model with 4 KV heads.")
    .cure("proportions near the actual ones."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let Some(asked) = &plan.placement.tensor_split else {
        return;
    };
    let devices = &plan.report.devices;
    if plan.compiled.mode == SplitMode::None {
        return;
    }
    let sum: f64 = asked.iter().sum();
    let held: f64 = devices.iter().map(|d| d.weights_bytes as f64).sum();
    let points = |x: f64, of: f64| 100.0 * x / of.max(f64::MIN_POSITIVE);
    let off: Vec<Message> = devices
        .iter()
        .zip(asked)
        .map(|(d, &a)| (d, points(a, sum), points(d.weights_bytes as f64, held)))
        .filter(|(_, a, b)| (a - b).abs() > QUIET)
        .map(|(d, a, b)| {
            message!(
                "{} {} → {} %",
                Quantity(&d.name),
                Quantity(format!("{a:.0}")),
                Quantity(format!("{b:.0}"))
            )
        })
        .collect();
    if !off.is_empty() && held > 0.0 {
        let message = message!(
            "requested → actual share of the weights: {}",
            Message::join(off, ", ")
        );
        out.push(LINT.finding("--tensor-split", message).help(
            "heads and quantisation blocks are not split; use proportions near the actual ones",
        ));
    }
}
