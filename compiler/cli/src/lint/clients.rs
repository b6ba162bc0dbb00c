//! Verdicts on clients' graphs.

use std::path::PathBuf;

use super::print::{self, Checked};
use super::{Args, Format, Target, check, finish, settings};
use crate::args::PlacementArgs;
use crate::clients::{ANY_MEMORY, capture_program, write};
use crate::output::Failure;
use tpc_core::report::PlanReport;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct VerdictArgs {
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Turn findings with these codes, or all `warnings`, into errors; repeatable.
    #[arg(long, value_name = "warnings|CODE")]
    deny: Vec<String>,
    /// Drop findings with these codes; repeatable.
    #[arg(long, value_name = "CODE")]
    allow: Vec<String>,
}

impl VerdictArgs {
    pub(crate) fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    /// True if plans are printed as part of one JSON object.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}

/// Prints the verdicts of tpc and of ggml's tensor split on captures. JSON output includes the plans.
pub(crate) fn verdicts(
    captures: &[PathBuf],
    args: &VerdictArgs,
    placement: &PlacementArgs,
    plans: &[PlanReport],
) -> Result<(), Failure> {
    let args = Args {
        models: Vec::new(),
        graph: None,
        target: None,
        architecture: None,
        format: args.format,
        deny: args.deny.clone(),
        allow: args.allow.clone(),
        config: None,
        command: Vec::new(),
        rpc_command: None,
        capture: None,
        placement: placement.clone(),
    };
    let checked = of_all(captures, &args)?;
    print::print(args.format, &checked, plans)?;
    finish(&args, &checked)
}

fn of_all(captures: &[PathBuf], args: &Args) -> Result<Vec<Checked>, Failure> {
    let config = settings(args)?;
    let mut out = Vec::new();
    for capture in captures {
        let by = |target| {
            let args = Args {
                graph: Some(capture.clone()),
                target,
                ..args.clone()
            };
            check(&args, &config, None, None)
        };
        out.push(by(None)?);
        let mut meta = by(Some(Target::GgmlMeta))?;
        meta.path += " by the rules of ggml's tensor split";
        out.push(meta);
    }
    Ok(out)
}

pub(super) fn run(args: &Args, command: &str) -> Result<(), Failure> {
    let captures = capture_program(command, ANY_MEMORY)?;
    let (folder, is_kept) = match &args.capture {
        Some(folder) => (folder.clone(), true),
        None => {
            let name = format!("tpc-capture-{}", std::process::id());
            (std::env::temp_dir().join(name), false)
        }
    };
    let done = write(&captures, &folder).and_then(|paths| {
        let checked = of_all(&paths, args)?;
        print::print(args.format, &checked, &[])?;
        finish(args, &checked)
    });
    if !is_kept {
        let _ = std::fs::remove_dir_all(&folder);
    }
    done
}
