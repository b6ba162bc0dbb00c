use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, Message, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Device,
    code: Code::warning(
        "TPC0302",
        "a device gets no part of a split",
        "A split has fewer units (heads, quantisation blocks, layers) than devices, or a share rounds to zero. The \
         device idles while the others compute.",
    )
    .example("2 experts on 3 devices; `--tensor-split 100,1`.")
    .cure("use fewer devices, or shares that give each device at least one unit."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let compiled = plan.compiled;
    let help = "use fewer devices, or other proportions in --tensor-split";
    let mut found: Vec<(Message, u64)> = Vec::new();
    let options = &compiled.choice().options;
    for (c, option) in compiled.sharded.classes.iter().zip(options) {
        let stage = option.group.index();
        let devices = &compiled.request.layer_placement.stages[stage];
        let shares = compiled.request.stage_device_weights(stage);
        let idle: Vec<&str> = (0..c.ranges.len())
            .filter(|&r| c.ranges[r].len == 0 && shares[r] > 0.0)
            .map(|r| compiled.request.devices[devices[r]].as_str())
            .collect();
        if idle.is_empty() {
            continue;
        }
        let kind = c.name.split_once(' ').map_or(c.name.as_str(), |(_, k)| k);
        let text = message!(
            "{} ({} units): no unit for {}",
            kind,
            c.size,
            Quantity(idle.join(", "))
        );
        match found.iter_mut().find(|(t, _)| *t == text) {
            Some(x) => x.1 += 1,
            None => found.push((text, 1)),
        }
    }
    for (text, n) in found {
        let message = message!("{} ({} times)", text, n);
        out.push(LINT.finding("", message).help(help));
    }
    if compiled.mode != SplitMode::Layer {
        return;
    }
    let layers = compiled.resolved.layer_placement.layers.len();
    let idle = plan.report.devices.iter().enumerate();
    for (i, d) in idle.filter(|(_, d)| d.weights_bytes == 0) {
        let share = plan.placement.tensor_split.as_ref().and_then(|s| s.get(i));
        // The share of 0 was requested; another lint reports it.
        if share == Some(&0.0) {
            continue;
        }
        let few = plan.placement.n_gpu_layers;
        if let Some(n) = few.filter(|&n| n < plan.report.devices.len() as u64) {
            let message = match n {
                0 => message!("gets no layer: -ngl 0 keeps all layers on the host"),
                _ => message!("gets no layer: -ngl {} is below the number of devices", n),
            };
            let help = "use a larger -ngl, or fewer devices";
            out.push(LINT.finding(&d.name, message).help(help));
            continue;
        }
        let message = match share {
            _ if layers < plan.report.devices.len() => {
                "gets no layer: there are fewer layers than devices"
            }
            Some(_) => "gets no layer: the proportion is less than a layer",
            None => "gets no layer: its part is less than a layer",
        };
        out.push(LINT.finding(&d.name, message.to_owned()).help(help));
    }
}
