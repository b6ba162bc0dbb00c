//! Times another program in alternation with tpc.
//!
//! A machine's speed changes from minute to minute, so only speeds measured together are comparable. Each round runs
//! both programs; every second round swaps the order. The report has the median and the range of the ratios.

mod child;
mod speeds;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use tpc_diag::{Diagnostic, codes::COMMAND_LINE};

use super::measure::{Bench, Compared, Measured, Test};
use super::statistics::median;
use super::table::{Column, markdown};
use crate::codes::OTHER_PROGRAM;
use crate::output::Failure;
use crate::progress::Progress;
use child::Signals;
use speeds::Speeds;

const ERROR_LINES: usize = 5;

pub(super) struct Other<'a> {
    command: &'a str,
    signals: Signals,
}

impl<'a> Other<'a> {
    pub(super) fn new(command: &'a str) -> Other<'a> {
        Other {
            command,
            signals: Signals::listen(),
        }
    }

    fn name(&self) -> &'a str {
        let mut words = self.command.split_whitespace();
        let program = words.find(|w| !w.contains('=')).unwrap_or(self.command);
        let name = Path::new(program).file_name().and_then(OsStr::to_str);
        name.unwrap_or(program)
    }

    fn speeds(&self) -> Result<Speeds, Failure> {
        let fault = |what: String| {
            let help =
                "the program must print speeds as llama-bench does: table, `-o json` or `-o jsonl`";
            let d = Diagnostic::new(&OTHER_PROGRAM, self.command, what).help(help);
            Failure::findings(vec![d])
        };
        let Output {
            status,
            stdout,
            stderr,
        } = (self.signals)
            .output(&mut shell(self.command))
            .map_err(|e| fault(format!("cannot be run: {e}")))?;
        if !status.success() {
            let text = String::from_utf8_lossy(&stderr);
            let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
            let last = &lines[lines.len().saturating_sub(ERROR_LINES)..];
            let what = format!("failed with {status}\n  {}", last.join("\n  "));
            return Err(fault(what.trim_end().to_owned()));
        }
        let speeds = speeds::read(&String::from_utf8_lossy(&stdout));
        if speeds.is_empty() {
            return Err(fault("does not print readable speeds".to_owned()));
        }
        Ok(speeds)
    }

    /// Returns the tests of both programs. Runs the other program once, which also warms up.
    fn common(&self, tests: &[Test]) -> Result<Vec<Test>, Failure> {
        let found = self.speeds()?;
        let is_common = |t: &&Test| found.contains_key(&t.name());
        let common: Vec<Test> = tests.iter().filter(is_common).copied().collect();
        if common.is_empty() {
            let ours: Vec<String> = tests.iter().map(Test::name).collect();
            let theirs: Vec<&str> = found.keys().map(String::as_str).collect();
            let message = format!(
                "the other program measures {}, but this command {}",
                theirs.join(", "),
                ours.join(", ")
            );
            let d = Diagnostic::new(&COMMAND_LINE, "--compare", message);
            return Err(Failure::usage(
                d.help("give both programs the same -p, -n and -d"),
            ));
        }
        Ok(common)
    }

    /// Measures the common tests in rounds.
    ///
    /// # Errors
    /// Returns TPC0427 if the other program fails, and TPC0400 without a common test.
    pub(super) fn measure(
        &self,
        bench: &mut Bench<'_, '_>,
        tests: &[Test],
        rounds: u64,
        progress: &Progress,
    ) -> Result<Vec<Measured>, Failure> {
        let tests = self.common(tests)?;
        let mut out = Vec::new();
        for &test in &tests {
            bench.once(test)?;
            let mut measured = Measured::new(test, bench.sequences);
            measured.other = Some(Compared {
                command: self.command.to_owned(),
                speeds: Vec::new(),
            });
            out.push(measured);
            progress.advance(1);
        }
        for round in 0..rounds {
            let mut theirs = None;
            if round % 2 == 1 {
                theirs = Some(self.speeds()?);
            }
            for measured in &mut out {
                let (time, _) = bench.once(measured.test)?;
                measured.times.push(time);
                progress.advance(1);
            }
            let theirs = theirs.map_or_else(|| self.speeds(), Ok)?;
            for measured in &mut out {
                let speed = theirs.get(&measured.test.name()).copied();
                let speeds = measured.other.as_mut().map(|o| &mut o.speeds);
                if let Some(speeds) = speeds {
                    speeds.push(speed.unwrap_or(f64::NAN));
                }
            }
        }
        Ok(out)
    }

    pub(super) fn report(&self, measured: &[Measured]) -> String {
        let columns = [
            Column::left("test"),
            Column::right("tpc t/s"),
            Column::right(format!("{} t/s", self.name())),
            Column::right("ratio"),
            Column::right("range of the rounds"),
        ];
        let rows = measured.iter().filter_map(|m| {
            let other = m.other.as_ref()?;
            let ratios = other.ratios(&m.speeds());
            let (least, most) = (ratios.first()?, ratios.last()?);
            Some(vec![
                m.name(),
                format!("{:.2}", median(&m.speeds())),
                format!("{:.2}", median(&other.speeds)),
                format!("{:.2}", median(&ratios)),
                format!("{least:.2}–{most:.2}"),
            ])
        });
        markdown(&columns, &rows.collect::<Vec<_>>())
    }
}

fn shell(command: &str) -> Command {
    let (program, option) = match cfg!(windows) {
        true => ("cmd", "/C"),
        false => ("sh", "-c"),
    };
    let mut out = Command::new(program);
    out.arg(option).arg(command);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_their_files_names() {
        let name = |command| Other::new(command).name();
        assert_eq!(
            name("CUDA_VISIBLE_DEVICES=0 ./build/bin/llama-bench -r 1"),
            "llama-bench"
        );
        assert_eq!(name("tpc bench m.gguf"), "tpc");
    }
}
