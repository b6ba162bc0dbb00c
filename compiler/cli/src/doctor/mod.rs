//! `tpc doctor`: checks that tpc works on this machine.

mod machine;
mod report;

pub(crate) use machine::{Executor, LIMIT, Machine};
pub(crate) use report::{JsonCheck, Printer};

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::{self, Failure, Format};
use machine::QUICK_LIMIT;
use tpc_diag::{Diagnostic, FormatVersion, codes};
use tpc_engine::doctor::{self, Checked, Options, Report, Section, Verdict};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Cards to check, such as `cuda:0,cuda:1` [default: all; emulated: two devices].
    #[arg(long, value_name = "SPEC")]
    devices: Option<String>,
    /// Devices to check.
    #[arg(long, value_enum, default_value = "cuda")]
    executor: Executor,
    /// Run only a small model, on the first device and the first pair.
    #[arg(long)]
    quick: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// File for the measured links, for `tpc plan --topology`.
    #[arg(long, value_name = "FILE.ron")]
    write_topology: Option<PathBuf>,
    /// First seed of the random cases of kernels.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Seconds that a check may take.
    #[arg(long, value_name = "SECONDS", hide = true)]
    limit: Option<f64>,
}

/// The output of `tpc doctor` as JSON.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MachineCheck")]
pub(crate) struct JsonReport<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// The result of all checks.
    #[schemars(extend("enum" = Verdict::ALL.map(Verdict::word)))]
    verdict: &'static str,
    /// The checks, in the order of their runs.
    checks: Vec<JsonCheck<'a>>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let machine = Machine::new(args.executor, args.devices.as_deref())?;
    let options = options(args)?;
    if let Some(path) = &args.write_topology {
        output::try_replace(path).map_err(|e| Failure::file(path, &e))?;
    }
    let mut printer = Printer::new(args.format);
    let mut observe = |checked: &Checked| printer.print(checked);
    let report = machine.check(options, &mut observe);
    printer.written?;
    match args.format {
        Format::Text => output::result(&format!("\n{report}\n"))?,
        Format::Json => output::json(&JsonReport {
            tpc: FormatVersion,
            verdict: report.verdict().word(),
            checks: report.checks.iter().map(JsonCheck::from).collect(),
        })?,
    }
    write_topology(args, &report)?;
    match report.verdict() {
        Verdict::Works | Verdict::Warns => Ok(()),
        // The report names the failures and their cures.
        Verdict::Fails => Err(Failure::findings(Vec::new())),
    }
}

fn options(args: &Args) -> Result<Options, Failure> {
    let usual = match args.quick {
        true => QUICK_LIMIT,
        false => LIMIT,
    };
    let seconds = args.limit.unwrap_or(usual.as_secs_f64());
    let limit = Some(seconds).filter(|s| (0.1..=86_400.0).contains(s));
    let Some(limit) = limit else {
        let message = format!("--limit must be a number from 0.1 to 86400, not {seconds}");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--limit", message);
        return Err(Failure::usage(
            d.help("leave out the option: the limit is 60"),
        ));
    };
    Ok(Options {
        quick: args.quick,
        limit: Duration::from_secs_f64(limit),
        seed: args.seed,
        sections: &Section::ALL,
    })
}

fn write_topology(args: &Args, report: &Report) -> Result<(), Failure> {
    let Some(path) = &args.write_topology else {
        return Ok(());
    };
    match doctor::topology(report) {
        Some(text) => output::replace(path, text.as_bytes()),
        None => {
            let message = "no topology is written, because no device was measured";
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--write-topology", message);
            output::diagnostic(&d.help("cure the failed checks, then run `tpc doctor` again"));
            Ok(())
        }
    }
}
