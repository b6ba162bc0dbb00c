//! Overrides that move attention weights to the host under a tensor split.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_core::placement::Target;
use tpc_diag::{Diagnostic, message};
use tpc_ggml::meta::REFUSED;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0903",
        "attention weights on the host under llama.cpp's tensor split",
        "An `-ot` puts attention weights on the host, while `-sm tensor` splits the caches of the same layer by \
         heads. llama.cpp aborts; it did so with every architecture that was measured. tpc computes the \
         attention of such a layer where its weights are, or copies what it needs.",
    )
    .example("`-sm tensor -ot 'blk\\.0\\.attn.*=CPU'`.")
    .cure("keep attention on the devices with llama.cpp, or use the `tpc` command in the help."),
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
        let message = message!(
            "`{}` puts {} and {} more on the host: llama.cpp aborts",
            o.pattern,
            name,
            placed.len() - 1
        );
        let help = message!(
            "keep attention on the devices with llama.cpp; tpc can plan it: {}",
            command.equivalent
        );
        out.push(LINT.finding("-ot", message).help(help));
    }
}
