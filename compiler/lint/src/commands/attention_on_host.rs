//! Overrides that move attention weights to the host under a tensor split.

use super::{Check, Command, EntityKind, Lint};
use tpc_core::placement::Target;
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::limit_codes;
use tpc_ggml::meta::REFUSED;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: limit_codes::ATTENTION_ON_HOST,
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    if !command.splits_tensors() || REFUSED.contains(&command.file.arch()) {
        return;
    }
    let tensors = command.file.header().tensors().iter();
    let placed = tensors
        .filter(|t| t.name.contains(".attn_") && t.n_dims > 1)
        .filter_map(|t| {
            let first = command
                .placement
                .overrides
                .iter()
                .find(|o| o.matches(&t.name) == Ok(true))?;
            (first.target == Target::Host).then_some((t.name.as_str(), first))
        });
    let placed: Vec<_> = placed.collect();
    if let Some((name, o)) = placed.first() {
        let message = match placed.len() - 1 {
            0 => message!(
                "`{}` puts {} on the host: llama.cpp aborts",
                o.pattern,
                name
            ),
            more => message!(
                "`{}` puts {} and {} more on the host: llama.cpp aborts",
                o.pattern,
                name,
                more
            ),
        };
        let help = message!(
            "keep attention on the devices with llama.cpp; tpc can plan it: {}",
            command.equivalent
        );
        out.push(LINT.finding("-ot", message).help(help));
    }
}
