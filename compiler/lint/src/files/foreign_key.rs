use std::collections::BTreeMap;

use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_models::ARCHS;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0621",
        "keys of another architecture",
        "Engines ignore keys with the prefix of another architecture. Often `general.architecture` was changed without \
         the keys.",
    )
    .example("`llama.rope.freq_base` in a file whose architecture is `qwen2`.")
    .cure("write the keys with the file's architecture as the prefix."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let own = file.arch();
    let entries = file.header().metadata().entries().iter();
    let mut foreign: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in entries {
        let Some((prefix, _)) = entry.key.split_once('.') else {
            continue;
        };
        if prefix != own && ARCHS.iter().any(|a| a.name == prefix) {
            foreign.entry(prefix).or_default().push(&entry.key);
        }
    }
    for (prefix, keys) in foreign {
        let message = message!(
            "{} keys of {}, such as {}, are ignored in a {} file",
            keys.len(),
            prefix,
            keys[0],
            own
        );
        let help = message!(
            "rename the keys: engines read only keys that begin with {}.",
            own
        );
        out.push(LINT.finding(keys[0], message).help(help));
    }
}
