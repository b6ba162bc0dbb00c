use tpc_ir::{Code, Severity};

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0618",
        "unsupported or missing quantisation version",
        "`general.quantization_version` is not 2, which current engines read, or is missing although tensors are \
         quantised. Blocks of version 1 have another layout and read as noise.",
    )
    .example("a file converted before May 2023.")
    .cure("quantise the model again.")
    .with_milder_severity(Severity::Note),
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
    let help = "quantise the model again, or set the key to 2 if the blocks have version 2";
    out.push(match found {
        Some(n) => {
            let message = message!("{} is {}; current engines read version 2", KEY, n);
            LINT.finding(KEY, message).help(help)
        }
        None => {
            let message = message!(
                "{} is missing, although {} tensors are quantised",
                KEY,
                quantised
            );
            LINT.milder_finding(KEY, message).help(help)
        }
    });
}
