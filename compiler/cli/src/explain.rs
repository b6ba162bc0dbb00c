//! `tpc explain`: documents diagnostic codes.

use super::output::{self, Failure};
use tpc_diag::{Code, Diagnostic, suggest};

use super::catalogue::codes;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A diagnostic code, such as TPC0301 or 301 [default: list all codes].
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
    let wanted = spelt_out(code);
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
                format!("unknown code `{code}`"),
            )
            .help(near(&wanted, &all)),
        )),
    }
}

/// Completes a code, such as `306`, `tpc306` or `tpc-0306`.
fn spelt_out(code: &str) -> String {
    let upper = code.trim().to_ascii_uppercase();
    let digits = upper.strip_prefix("TPC").unwrap_or(&upper);
    let digits = digits.trim_start_matches(['-', '_', ' ']);
    match (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("TPC{digits:0>4}"),
        false => upper,
    }
}

fn near(wanted: &str, all: &[&Code]) -> String {
    let list = "`tpc explain` lists all codes";
    match suggest::nearest_code(wanted, all.iter().map(|c| c.id)) {
        Some(near) => format!("did you mean {near}? {list}"),
        None => list.to_owned(),
    }
}
