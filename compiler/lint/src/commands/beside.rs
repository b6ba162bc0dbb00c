//! Models and adapters that are loaded in addition to the model.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Message, message};
use tpc_ggml::llama_cpp::Setting;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0909",
        "memory that the plan does not count",
        "The command loads more than the model: a draft model, an image encoder, adapters, or blocks that draft \
         tokens. They take memory on the devices, and verifying drafts computes several tokens at once. The plan \
         counts the model alone.",
    )
    .example("`-md draft.gguf`.")
    .cure("reserve that memory: `--reserve` before the `--`, such as `--reserve 3GiB`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    for setting in [
        Setting::Draft,
        Setting::Speculation,
        Setting::Projector,
        Setting::Adapter,
    ] {
        for given in command.line.all(setting) {
            // Drafts from the text itself take no memory to speak of; blocks of the model's own file are planned.
            let planned =
                |kind: &str| kind == "none" || kind == "draft-mtp" || kind.starts_with("ngram");
            if setting == Setting::Speculation && given.value.split(',').all(planned) {
                continue;
            }
            let size = std::fs::metadata(&given.value).ok().map(|m| bytes(m.len()));
            let size = size.map_or_else(Message::default, |s| message!(" (a file of {})", s));
            let message = message!(
                "the plan does not count the memory of {} {}{}",
                given.spelling,
                given.value,
                size
            );
            let note = LINT.finding(&given.spelling, message);
            out.push(note.help("reserve its memory before the `--`: --reserve 3GiB keeps 3 GiB of each device free"));
        }
    }
}
