use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, Message, Quantity, message};
use tpc_passes::place::LayerPlace;

/// The maximum deviation of a share without a finding, in percentage points.
const QUIET: f64 = 3.0;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0307",
        "a device's share differs from the request",
        "tpc follows `--tensor-split` as far as heads, quantisation blocks and whole layers allow. The message gives \
         the requested and the actual share per device in per cent: of the weights, or with `-sm layer` of the \
         layers (the output counts as one).",
    )
    .example("`-ts 9,1` for a model with 4 KV heads.")
    .cure("use proportions near the actual ones."),
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
    let by_layer = plan.compiled.mode == SplitMode::Layer;
    let parts = match by_layer {
        true => layers(plan),
        false => devices.iter().map(|d| d.weights_bytes as f64).collect(),
    };
    let sum: f64 = asked.iter().sum();
    let held: f64 = parts.iter().sum();
    let points = |x: f64, of: f64| 100.0 * x / of.max(f64::MIN_POSITIVE);
    let off: Vec<Message> = devices
        .iter()
        .zip(asked.iter().zip(&parts))
        .map(|(d, (&a, &part))| (d, points(a, sum), points(part, held)))
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
        let (what, whole) = match by_layer {
            true => ("layers", "layers are not split"),
            false => ("weights", "heads and quantisation blocks are not split"),
        };
        let message = message!(
            "requested → actual share of the {}: {}",
            what,
            Message::join(off, ", ")
        );
        let help = message!("{}; use proportions near the actual ones", whole);
        out.push(LINT.finding("--tensor-split", message).help(help));
    }
}

fn layers(plan: &Plan<'_>) -> Vec<f64> {
    let placed = &plan.compiled.resolved.layer_placement;
    let mut out = vec![0.0; plan.report.devices.len()];
    for place in placed.layers.iter().chain([&placed.epilogue]) {
        let LayerPlace::Stage(stage) = place else {
            continue;
        };
        let device = placed.stages.get(*stage).and_then(|s| s.first());
        if let Some(count) = device.and_then(|&d| out.get_mut(d)) {
            *count += 1.0;
        }
    }
    out
}
