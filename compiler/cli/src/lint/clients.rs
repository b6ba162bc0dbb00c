//! Verdicts on clients' graphs.

use std::path::PathBuf;

use super::print::{self, Checked};
use super::{Args, Format, Target, check, conclude, finish, settings, sources};
use crate::args::PlacementArgs;
use crate::clients::{ANY_MEMORY, capture_program, write};
use crate::input::HubArgs;
use crate::output::Failure;
use tpc_core::report::PlanReport;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct VerdictArgs {
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Turn findings with these codes, all `warnings`, or all `notes` and warnings, into errors; repeatable.
    #[arg(long, value_name = "warnings|notes|CODE")]
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
        hub: HubArgs::default(),
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
        baseline: None,
        update_baseline: false,
        source: None,
        placement: placement.clone(),
    };
    let checked = of_all(captures, &args)?;
    print::print(args.format, &checked, None, plans)?;
    finish(&args, &checked)
}

fn of_all(captures: &[PathBuf], args: &Args) -> Result<Vec<Checked>, Failure> {
    let config = settings(args)?;
    let sources = sources::read(args)?;
    let mut out = Vec::new();
    for capture in captures {
        // The folder may be temporary.
        let key = capture
            .file_name()
            .map(|n| n.to_string_lossy().into_owned());
        let by = |target| -> Result<Checked, Failure> {
            let args = Args {
                graph: Some(capture.clone()),
                target,
                ..args.clone()
            };
            let mut checked = check(&args, &config, &sources, None, None)?;
            checked.key = key.clone().unwrap_or_default();
            Ok(checked)
        };
        out.push(by(None)?);
        let mut meta: Checked = by(Some(Target::GgmlMeta))?;
        for name in [&mut meta.path, &mut meta.key] {
            *name += " by the rules of ggml's tensor split";
        }
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
    let done = write(&captures, &folder).and_then(|paths| conclude(args, of_all(&paths, args)?));
    if !is_kept {
        let _ = std::fs::remove_dir_all(&folder);
    }
    done
}
