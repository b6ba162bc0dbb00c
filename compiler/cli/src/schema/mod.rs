//! `tpc schema`: prints JSON Schemas of the commands' JSON outputs.
//!
//! - `table` names an output type per command. The commands serialise the same types;
//! - `open` permits the additions of later versions.

mod open;
mod table;

use std::fmt::Write;

use clap::builder::PossibleValuesParser;

use crate::output::{self, Failure};
use table::SCHEMAS;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Command whose output to describe [default: list the commands].
    #[arg(value_name = "COMMAND", value_parser = names())]
    name: Option<String>,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(SCHEMAS.iter().map(|s| s.command))
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let named = args.name.as_ref();
    match named.and_then(|name| SCHEMAS.iter().find(|s| s.command == name)) {
        Some(schema) => output::json(&schema.document()),
        None => output::result(&list()),
    }
}

fn list() -> String {
    let width = SCHEMAS.iter().map(|s| s.command.len()).max().unwrap_or(0);
    let mut out = String::new();
    for s in &SCHEMAS {
        let _ = writeln!(out, "{:width$}  {}: {}", s.command, s.invocation, s.content);
    }
    out
}
