use tpc_ir::{Code, Severity};

use super::{Check, EntityKind, File, Lint};
use tpc_diag::suggest::nearest;
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0620",
        "a key that no engine reads",
        "GGUF does not define this key of the model's architecture. Engines ignore its value and use a default. The \
         help names the nearest known key.",
    )
    .example("`llama.attention.head_count_vk`.")
    .cure("write the correct key.")
    .with_milder_severity(Severity::Note),
    check: Check::File(check),
};

const KNOWN: &str = include_str!("known_keys.txt");

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let prefix = format!("{}.", file.arch());
    if file.model.is_none() {
        return;
    }
    for entry in file.header().metadata().entries() {
        let Some(name) = entry.key.strip_prefix(&prefix) else {
            continue;
        };
        // Image and sound encoders have their own keys.
        let other = ["vision.", "audio."].iter().any(|p| name.starts_with(p));
        if other || KNOWN.lines().any(|k| k == name) {
            continue;
        }
        let message = message!("unknown key {}: no engine reads it", entry.key);
        out.push(match nearest(name, KNOWN.lines()) {
            Some(near) => {
                LINT.finding(&entry.key, message)
                    .help(message!("did you mean {}{}?", prefix, near))
            }
            None => LINT
                .milder_finding(&entry.key, message)
                .help("check the key's name, or leave out the key"),
        });
    }
}
