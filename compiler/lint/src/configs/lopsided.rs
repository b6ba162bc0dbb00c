use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_core::placement::{SplitMode, Target};
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0802",
        "one device holds far more than the others",
        "Devices are equally fast, but one holds a third more weights than the mean without `--tensor-split`, \
         because of overrides or coarse units. The other devices wait for it, and it runs out of memory first.",
    )
    .example("`-ot 'ffn_down=dev0'` on two devices.")
    .cure("leave out the override, or place as much on the other devices."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let devices = &plan.report.devices;
    let speeds: Vec<f64> = (0..devices.len())
        .map(|d| plan.placement.topology.device(d).bandwidth)
        .collect();
    let alike = speeds.windows(2).all(|w| w[0] == w[1]);
    let split = matches!(plan.compiled.mode, SplitMode::Tensor);
    if !alike || !split || plan.placement.tensor_split.is_some() {
        return;
    }
    let mean = devices.iter().map(|d| d.weights_bytes).sum::<u64>() / devices.len().max(1) as u64;
    let Some(most) = devices.iter().max_by_key(|d| d.weights_bytes) else {
        return;
    };
    if most.weights_bytes > mean + mean / 3 {
        let message = message!(
            "{} holds {} of weights; the mean is {} per device",
            Quantity(&most.name),
            Quantity(bytes(most.weights_bytes)),
            Quantity(bytes(mean))
        );
        let to_device = plan
            .placement
            .overrides
            .iter()
            .any(|o| matches!(o.target, Target::Device(_)));
        let (option, help) = if to_device {
            (
                "--override-tensor",
                "leave out the override for it, or place as much on the other devices",
            )
        } else {
            ("--devices", "use fewer devices, or -sm layer")
        };
        out.push(LINT.finding(option, message).help(help));
    }
}
