//! Counts of layers beyond the last.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::HostExperts;
use tpc_diag::{Diagnostic, message};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0808",
        "experts of more layers than there are",
        "`--n-cpu-moe` counts layers from the first on, and is larger than the number of layers. All experts \
         stay on the host.",
    )
    .example("`-ncmoe 99` for a model of 48 layers.")
    .cure("`--cpu-moe`, if all are meant; else the number of layers whose experts do not fit."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let HostExperts::First(asked) = plan.placement.host_experts else {
        return;
    };
    let layers = plan.compiled.model.summary.n_layer;
    if asked > layers && plan.compiled.resolved.host_expert_tensors > 0 {
        let message = message!(
            "{} layers of {}: all experts are on the host",
            asked,
            layers
        );
        let help = message!("--cpu-moe, or fewer than {}", layers);
        out.push(LINT.finding("--n-cpu-moe", message).help(help));
    }
}
