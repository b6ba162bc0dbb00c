use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_core::placement::{HostExperts, Target};
use tpc_core::report::DeviceReport;
use tpc_diag::{Diagnostic, Message, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0807",
        "weights or caches on the host fit on the devices",
        "Options keep weights or caches on the slower host, although each device has room for its part. `tpc plan` and \
         `tpc lint` plan alternatives, and warn only if one is faster by more than the error of the estimates.",
    )
    .example("`--n-cpu-moe 10` that was needed with a longer context.")
    .cure("use the options in the help, such as a larger `--n-gpu-layers` or a smaller `--n-cpu-moe`."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let p = plan.placement;
    let experts = match p.host_experts {
        HostExperts::All => ("--cpu-moe", "leave out --cpu-moe, or use --n-cpu-moe"),
        _ => ("--n-cpu-moe", "lower --n-cpu-moe"),
    };
    let to_host = p.overrides.iter().any(|o| o.target == Target::Host);
    let options = [
        (
            "--n-gpu-layers",
            "raise --n-gpu-layers",
            // With a value above the number of layers, the host has no layer.
            p.n_gpu_layers
                .is_some_and(|n| n <= plan.compiled.model.summary.n_block()),
        ),
        (experts.0, experts.1, !p.host_experts.is_none()),
        ("--no-kv-offload", "leave out --no-kv-offload", p.kv_on_host),
        (
            "--override-tensor",
            "place fewer tensors on the host with --override-tensor",
            to_host,
        ),
    ];
    let given: Vec<_> = options.iter().filter(|o| o.2).collect();
    let host = &plan.report.host;
    let held = host.weights_bytes + host.kv_bytes;
    let devices = &plan.report.devices;
    let part = held / devices.len().max(1) as u64;
    // The margin is for scratch memory.
    let room = |d: &DeviceReport| {
        let free = d.capacity_bytes?.checked_sub(d.total_bytes)?;
        (free > part + part / 8 + d.capacity_bytes? / 32).then_some(free)
    };
    let free: Option<Vec<u64>> = devices.iter().map(room).collect();
    if let (Some(first), Some(free)) = (given.first(), free)
        && held > 0
    {
        let message = message!(
            "the host holds {} ({} per device), but each device has at least {} free",
            Quantity(bytes(held)),
            Quantity(bytes(part)),
            Quantity(bytes(free.into_iter().min().unwrap_or(0)))
        );
        let help = match plan.faster {
            None => {
                let cures: Vec<&str> = given.iter().map(|o| o.1).collect();
                Message::from(cures.join(", or "))
            }
            // Another lint reports the round trips.
            Some(search) => match search() {
                Some(a) => message!(
                    "this fits and is faster: {}: {}",
                    Quantity(a.options.clone()),
                    Quantity(a.worth())
                ),
                None => return,
            },
        };
        out.push(LINT.finding(first.0, message).help(help));
    }
}
