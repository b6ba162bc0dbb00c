//! `tpc doctor`: checks that tpc works on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use crate::output::{self, Failure, Format};
use tpc_core::format::wrapped;
use tpc_core::placement::{DeviceKind, parse_devices};
use tpc_diag::{Diagnostic, codes, visible};
use tpc_engine::devices::cards;
use tpc_engine::doctor::{self, Checked, Emulation, Options, Report, Status, Verdict};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Executor {
    /// Graphics cards.
    Cuda,
    /// Emulated devices: needs a C++ compiler.
    EmulatedCuda,
}

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
    /// Seconds that a check may take.
    #[arg(long, value_name = "SECONDS", hide = true)]
    limit: Option<f64>,
}

/// The time limit of a check, in seconds.
const LIMIT: f64 = 60.0;
/// The time limit of a check with `--quick`, in seconds.
const QUICK_LIMIT: f64 = 20.0;

/// The variable with a fault of emulated devices, for tests.
const FAULT: &str = "TPC_EMULATED_FAULT";

#[derive(Serialize)]
struct JsonReport<'a> {
    tpc: u32,
    verdict: &'static str,
    checks: Vec<JsonCheck<'a>>,
}

#[derive(Serialize)]
struct JsonCheck<'a> {
    section: &'static str,
    name: &'a str,
    status: &'static str,
    finding: &'a str,
    cure: Option<&'a str>,
    figures: BTreeMap<&'static str, f64>,
}

impl<'a> From<&'a Checked> for JsonCheck<'a> {
    fn from(c: &'a Checked) -> JsonCheck<'a> {
        JsonCheck {
            section: c.section.name(),
            name: &c.name,
            status: c.finding.status.word(),
            finding: &c.finding.text,
            cure: c.finding.cure.as_deref(),
            figures: c.finding.figures.iter().copied().collect(),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let numbers = args.devices.as_deref().map(numbers).transpose()?;
    let options = options(args)?;
    let emulation = emulation()?;
    if let Some(path) = &args.write_topology {
        output::try_replace(path).map_err(|e| Failure::file(path, &e))?;
    }
    let mut printer = Printer::new(args.format);
    let mut observe = |checked: &Checked| printer.print(checked);
    let report = match args.executor {
        Executor::Cuda => doctor::run(&doctor::cards(numbers), options, &mut observe),
        Executor::EmulatedCuda => {
            let setup = doctor::emulated(numbers, emulation);
            doctor::run(&setup, options, &mut observe)
        }
    };
    printer.written?;
    match args.format {
        Format::Text => output::result(&format!("\n{report}\n"))?,
        Format::Json => output::json(&JsonReport {
            tpc: 1,
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

/// Returns the numbers of the cards in a list of devices.
fn numbers(list: &str) -> Result<Vec<u32>, Failure> {
    let devices = parse_devices(list).map_err(Failure::usage)?;
    let kinds: Vec<DeviceKind> = devices.iter().map(|d| d.kind).collect();
    cards::no_processor(&kinds)?;
    Ok(cards::numbers(&kinds))
}

fn options(args: &Args) -> Result<Options, Failure> {
    let usual = match args.quick {
        true => QUICK_LIMIT,
        false => LIMIT,
    };
    let seconds = args.limit.unwrap_or(usual);
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
    })
}

/// Returns the emulated devices with the fault that the environment names.
fn emulation() -> Result<Emulation, Failure> {
    let named = std::env::var(FAULT).ok().filter(|n| !n.is_empty());
    let Some(name) = named else {
        return Ok(Emulation::SOUND);
    };
    Emulation::with_fault(&name).ok_or_else(|| {
        let message = format!("{FAULT} names an unknown fault: `{}`", visible(&name));
        let names = Emulation::names().join(", ");
        let d = Diagnostic::new(&codes::COMMAND_LINE, FAULT, message);
        Failure::usage(d.help(format!("unset the variable, or give one of {names}")))
    })
}

/// Prints each check as it ends.
struct Printer {
    format: Format,
    section: Option<&'static str>,
    width: usize,
    written: Result<(), Failure>,
}

impl Printer {
    fn new(format: Format) -> Printer {
        Printer {
            format,
            section: None,
            width: output::width().into(),
            written: Ok(()),
        }
    }

    fn print(&mut self, checked: &Checked) {
        if self.format == Format::Text && self.written.is_ok() {
            let mut out = String::new();
            let section = checked.section.name();
            if let Some(before) = self.section.replace(section).or(Some(""))
                && before != section
            {
                let blank = if before.is_empty() { "" } else { "\n" };
                out.push_str(&format!("{blank}{section}\n"));
            }
            out.push_str(&lines(checked, self.width));
            self.written = output::result(&out);
        }
    }
}

/// Returns the lines of a check: its finding, and the cure of a warning or failure.
fn lines(checked: &Checked, width: usize) -> String {
    let finding = &checked.finding;
    let (word, text) = (finding.status.word(), visible(&finding.text));
    let line = format!("  {word:<8} {}: {text}", checked.name);
    let mut out = wrapped(&line, width, 11);
    if let (Status::Warning | Status::Failed, Some(cure)) = (finding.status, &finding.cure) {
        let cure = format!("{:11}cure: {}", "", visible(cure));
        out.push_str(&wrapped(&cure, width, 17));
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_numbers_of_cards() {
        assert_eq!(numbers("cuda:2,cuda:0").ok(), Some(vec![2, 0]));
        assert_eq!(numbers("2").ok(), Some(vec![0, 1]));
        for wrong in ["cpu", "", "cuda:x"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }
}
