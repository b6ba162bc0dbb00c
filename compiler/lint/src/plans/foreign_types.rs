//! Element types that only `ik_llama.cpp` runs.

use tpc_ir::{Code, Severity};
use tpc_passes::machine::Engine;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::foreign_types::ForeignTypes;
use tpc_diag::{Diagnostic, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::File,
    code: Code::error(
        "TPC0316",
        "the file's types are ik_llama.cpp's",
        "Weights have types that only ik_llama.cpp reads, such as iq3_k or iq4_ks. tpc plans such files, and does not run \
         them yet. llama.cpp does not load them.",
    )
    .example("a file of IQ3_K under `--engine llama.cpp`.")
    .cure("`--engine ik_llama.cpp`, or a file of llama.cpp's types, such as q4_k or iq3_s.")
    .with_milder_severity(Severity::Note),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    if plan.placement.engine == Engine::IkLlamaCpp {
        return;
    }
    let Some(foreign) = ForeignTypes::of_graph(&plan.compiled.model.graph) else {
        return;
    };
    let message = message!(
        "{} have types of ik_llama.cpp ({}): llama.cpp does not load the file, and tpc plans it but does not run it",
        foreign.tensors(),
        foreign.names()
    );
    let finding = match plan.placement.engine {
        Engine::Tpc => LINT.milder_finding("model file", message),
        _ => LINT.finding("model file", message),
    };
    out.push(finding.help(
        "run it with ik_llama.cpp (--engine ik_llama.cpp plans that), or use a file of llama.cpp's types, such as q4_k",
    ));
}
