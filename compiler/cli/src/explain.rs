//! `tpc explain`: the documentation of diagnostic codes.

use super::output::{self, Failure};
use tpc_diag::Diagnostic;

use super::catalogue::codes;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A diagnostic code, such as TPC0301 [default: list all codes].
    code: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let all = codes();
    let Some(code) = &args.code else {
        let list: String = all
            .iter()
            .map(|c| format!("{}  {}\n", c.id, c.title))
            .collect();
        return output::result(&list);
    };
    let wanted = code.to_ascii_uppercase();
    match all.iter().find(|c| ***c == *wanted) {
        Some(c) => output::result(&format!(
            "{}: {}\n\n{}\n",
            c.id,
            c.title,
            c.paragraphs().join("\n\n")
        )),
        None => Err(Failure::usage(
            Diagnostic::new(
                &tpc_diag::codes::UNKNOWN_CODE,
                "explain",
                format!("there is no code `{code}`"),
            )
            .help("`tpc explain` lists all codes"),
        )),
    }
}
