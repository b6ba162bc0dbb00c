use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::{SplitMode, Target};
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Plan,
    code: Code::warning(
        "TPC0309",
        "one device would be faster",
        "By the estimate, a token takes longer on all devices than on the first one alone, which has memory for the \
         model: collectives cost more than the split gains. `tpc plan` and `tpc lint` warn only if an alternative fits \
         and is clearly faster.",
    )
    .example("a model of 100 MB on 8 devices.")
    .cure("use `-sm none` or fewer devices; `-sm auto` compares. Give the true links with `--topology`."),
    check: Check::Plan(check),
};

/// Formats a time in milliseconds with at least two decimals and three digits.
fn milliseconds(us: f64) -> String {
    let decimals = if us < 100.0 {
        4
    } else if us < 1e3 {
        3
    } else {
        2
    };
    format!("{:.decimals$}", us / 1e3)
}

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let (report, asked) = (plan.report, plan.placement.split_mode);
    if report.devices.len() < 2 || matches!(asked, SplitMode::Auto | SplitMode::None) {
        return;
    }
    let devices = report.devices.iter().map(|d| d.total_bytes);
    let total = devices.fold(0, u64::saturating_add);
    let room = report.devices[0].capacity_bytes.is_none_or(|c| total <= c);
    let e = &report.estimate;
    // The time on one device assumes that no data is on the host, so plans with host data are not compared.
    let p = plan.placement;
    let on_host = !p.host_experts.is_none() || p.kv_on_host || p.n_gpu_layers.is_some();
    let to_host = p.overrides.iter().any(|o| o.target == Target::Host);
    let slower = e.decode_us > e.baseline_single_us * (1.0 + e.error);
    if room && slower && !on_host && !to_host {
        let message = message!(
            "{} ms per token on {} devices, but {} ms on one",
            Quantity(milliseconds(e.decode_us)),
            report.devices.len(),
            Quantity(milliseconds(e.baseline_single_us))
        );
        let help = match plan.faster {
            None => "use -sm none, or fewer devices; -sm auto compares".into(),
            // Advice requires a gain above the error of the estimates.
            Some(search) => match search() {
                Some(a) => message!("{}: {}", Quantity(a.options.clone()), Quantity(a.worth())),
                None => return,
            },
        };
        out.push(LINT.finding("plan", message).help(help));
    }
}
