//! The version of the quantised blocks.

use tpc_ir::{Code, Severity};

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0618",
        "blocks of another version",
        "`general.quantization_version` is not 2, the version of all blocks that current engines read; or it is \
         missing though tensors are quantised, so that readers must guess. Blocks of version 1 have other \
         layouts, and read as version 2 are noise.",
    )
    .example("a file converted before May 2023.")
    .cure("quantise the model again.")
    .or(Severity::Note),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    const KEY: &str = "general.quantization_version";
    const CURRENT: u64 = 2;
    let quantised = file
        .header()
        .tensors()
        .iter()
        .filter(|t| t.dtype.is_quantised())
        .count();
    let found = file.count(KEY);
    if quantised == 0 || found == Some(CURRENT) {
        return;
    }
    let help = "quantise the model again, or write 2 if the blocks are of version 2";
    out.push(match found {
        Some(n) => {
            let message = message!("{} is {}; current engines read blocks of version 2", KEY, n);
            LINT.finding(KEY, message).help(help)
        }
        None => {
            let message = message!(
                "{} is missing, and {} tensors are quantised",
                KEY,
                quantised
            );
            LINT.milder_finding(KEY, message).help(help)
        }
    });
}
