use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::HostExperts;
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0808",
        "--n-cpu-moe exceeds the layer count",
        "`--n-cpu-moe` exceeds the number of layers, so all experts stay on the host.",
    )
    .example("`-ncmoe 99` for a model of 48 layers.")
    .cure(
        "use `--cpu-moe` if that is intended, else the number of layers whose experts do not fit.",
    ),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let HostExperts::First(asked) = plan.placement.host_experts else {
        return;
    };
    let layers = plan.compiled.model.summary.n_layer;
    if asked > layers && plan.compiled.resolved.host_expert_tensors > 0 {
        let message = message!(
            "{} exceeds the {} layers: all experts stay on the host",
            asked,
            layers
        );
        let help = message!("use --cpu-moe, or a number below {}", layers);
        out.push(LINT.finding("--n-cpu-moe", message).help(help));
    }
}
