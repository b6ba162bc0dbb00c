use tpc_ir::{Code, Severity};
use tpc_passes::machine::Engine;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::foreign_types::ForeignTypes;
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::File,
    code: Code::error(
        "TPC0316",
        "only ik_llama.cpp supports the file's types",
        "The file has types that only ik_llama.cpp reads, such as iq3_k or iq4_ks. llama.cpp does not load it. tpc \
         plans the file, but does not run it.",
    )
    .example("a file of IQ3_K under `--engine llama.cpp`.")
    .cure("use `--engine ik_llama.cpp`, or a file with llama.cpp's types, such as q4_k or iq3_s.")
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
        "not possible with llama.cpp: {} have types of ik_llama.cpp ({}); tpc can only plan the file",
        foreign.tensors(),
        foreign.names()
    );
    let finding = match plan.placement.engine {
        Engine::Tpc => LINT.milder_finding("model file", message),
        _ => LINT.finding("model file", message),
    };
    out.push(finding.help(
        "run the file with ik_llama.cpp (--engine ik_llama.cpp plans that), or use a file with llama.cpp's types, such \
         as q4_k",
    ));
}
