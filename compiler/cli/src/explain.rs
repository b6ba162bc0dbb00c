//! `tpc explain`.

use tpc_ir::CodeDoc;

use super::output::{self, Failure};
use tpc_diag::Diagnostic;

use super::codes::codes;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A diagnostic code, such as TPC0301; without one, all are listed.
    code: Option<String>,
}

/// Every code of the compiler and of the runtime, in order. The compiler's library does not know the runtime, so they
/// meet here.
pub(super) fn catalogue() -> Vec<CodeDoc> {
    let mut out = codes();
    out.extend(tpc_runtime::CODES);
    out.sort_by_key(|c| c.code);
    out
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let codes = catalogue();
    let Some(code) = &args.code else {
        let list: String = codes
            .iter()
            .map(|c| format!("{}  {}\n", c.code, c.title))
            .collect();
        return output::result(&list);
    };
    let wanted = code.to_ascii_uppercase();
    match codes.iter().find(|c| c.code == wanted) {
        Some(c) => output::result(&format!(
            "{}: {}\n\n{}\n",
            c.code,
            c.title,
            c.doc.trim_end()
        )),
        None => Err(Failure::usage(
            Diagnostic::error("TPC0407", "explain", format!("`{code}` is no code"))
                .help("`tpc explain` lists all codes"),
        )),
    }
}
