use std::collections::BTreeSet;

use tpc_ir::{Code, Severity};
use tpc_passes::machine::Engine;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, message};
use tpc_models::Tower;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::File,
    code: Code::error(
        "TPC0315",
        "the model's file has an image or sound encoder",
        "llama.cpp and ik_llama.cpp keep encoders in a separate file (`--mmproj`) and refuse a model file with more \
         tensors than the text model has. tpc plans the text model without the encoder.",
    )
    .example("a Gemma 4 copied from Ollama's store: `wrong number of tensors; expected 2131, got 720`.")
    .cure("use the publisher's GGUF file of the text model, and its mmproj file for images and sound.")
    .with_milder_severity(Severity::Note),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let summary = &plan.compiled.model.summary;
    let (names, kinds): (Vec<&str>, Vec<Tower>) = summary.towers().unzip();
    if names.is_empty() {
        return;
    }
    let prefixes: BTreeSet<&str> = (names.iter())
        .filter_map(|n| n.split_once('.'))
        .map(|(first, _)| first)
        .collect();
    let prefixes: Vec<String> = prefixes.iter().map(|p| format!("`{p}.`")).collect();
    let whose = match (kinds.contains(&Tower::Image), kinds.contains(&Tower::Sound)) {
        (true, true) => "an image and a sound encoder",
        (true, false) => "an image encoder",
        (false, true) => "a sound encoder",
        (false, false) => "an encoder's projector",
    };
    let message = message!(
        "not possible with llama.cpp: the file has {} tensors of {} ({}); tpc plans only the text model",
        names.len().to_string(),
        whose,
        prefixes.join(", ")
    );
    let finding = match plan.placement.engine {
        Engine::Tpc => LINT.milder_finding("model file", message),
        _ => LINT.finding("model file", message),
    };
    out.push(finding.help(
        "for llama.cpp, use the publisher's file of the text model, and the mmproj file with --mmproj",
    ));
}
