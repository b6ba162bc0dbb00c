//! Running a case.

use std::path::Path;

use tpc_ir::text::{self, ParsedGraph};
use tpc_ir::verify;

use super::case::Case;
use super::command::Command;
use super::expectation::{Failures, Reported, unmet};
use super::{lint, passes, program};

/// What a command makes of a text that parses: findings, failures, and the exact output of a pass.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) reported: Vec<Reported>,
    pub(crate) failures: Failures,
    pub(crate) output: Option<String>,
}

impl Outcome {
    /// The outcome of a command that only reports.
    pub(crate) fn reported(reported: Vec<Reported>) -> Outcome {
        Outcome {
            reported,
            ..Outcome::default()
        }
    }

    /// The outcome of a pass: its output, or why there is none.
    pub(crate) fn output(output: Result<String, String>) -> Outcome {
        match output {
            Ok(text) => Outcome {
                output: Some(text),
                ..Outcome::default()
            },
            Err(e) => Outcome {
                failures: vec![format!("1: {e}")],
                ..Outcome::default()
            },
        }
    }
}

/// The failures of a case. `path` is where its output is blessed.
pub(crate) fn run(case: &Case, path: Option<&Path>) -> Failures {
    if let Some(spec) = &case.model {
        let outcome = lint::of_model(case, spec);
        let mut failures = outcome.failures;
        failures.extend(unmet(&case.expected, &outcome.reported));
        return failures;
    }
    if case.command == Command::Program {
        return program::run(case);
    }
    let parsed = match text::parse(case.input()) {
        Ok(parsed) => parsed,
        Err(errors) => return unparsed(case, &errors),
    };
    let outcome = of_parsed(case, &parsed);
    let mut failures = outcome.failures;
    failures.extend(unmet(&case.expected, &outcome.reported));
    failures.extend(round_trip(&parsed));
    if let Some(output) = outcome.output {
        failures.extend(differs(case, &output, path));
    }
    failures
}

fn of_parsed(case: &Case, parsed: &ParsedGraph) -> Outcome {
    match case.command {
        Command::Parse => Outcome::default(),
        Command::Print => Outcome {
            failures: prints(case, parsed),
            ..Outcome::default()
        },
        Command::ParseError => Outcome {
            failures: vec!["1: the text parses".to_owned()],
            ..Outcome::default()
        },
        Command::Verify => Outcome::reported(verified(case, parsed)),
        Command::Place => Outcome::output(passes::place(case, parsed)),
        Command::Factors => Outcome::output(passes::factors(case, parsed)),
        Command::Shard => Outcome::output(passes::shard(case, parsed)),
        Command::Rewrite => Outcome::output(passes::rewrite(parsed)),
        Command::Lower => Outcome::output(passes::lower(parsed)),
        Command::Canonicalise => Outcome::output(passes::canonicalise(parsed)),
        Command::Prove => passes::prove(case, parsed),
        Command::Lint => lint::of_graph(case, parsed),
        // It reads the text of a program, above.
        Command::Program => Outcome::default(),
    }
}

/// The failures of a text that does not parse.
fn unparsed(case: &Case, errors: &[text::ParseError]) -> Failures {
    let reported: Vec<Reported> = errors
        .iter()
        .map(|e| at(case, e.span, e.code().id, e.to_string()))
        .collect();
    let mut failures = unmet(&case.expected, &reported);
    if case.command != Command::ParseError {
        failures.push("1: the text does not parse".to_owned());
    }
    failures
}

/// A report on the line of a span of the case's text.
pub(crate) fn at(case: &Case, span: text::Span, code: &str, message: String) -> Reported {
    Reported {
        line: span.line(&case.text),
        code: code.to_owned(),
        message,
    }
}

fn verified(case: &Case, parsed: &ParsedGraph) -> Vec<Reported> {
    let errors = verify::verify(&parsed.graph).err().unwrap_or_default();
    let reported = errors.iter().map(|e| {
        let span = parsed.spans.get(e.entity).unwrap_or_default();
        at(case, span, e.code().id, e.to_string())
    });
    reported.collect()
}

fn round_trip(parsed: &ParsedGraph) -> Failures {
    let mut failures = Vec::new();
    let printed = text::print(&parsed.graph);
    match text::parse(&printed.text) {
        Err(e) => failures.push(format!("1: printed text does not parse: {}", e[0])),
        Ok(again) => {
            if again.graph != parsed.graph
                || text::print(&again.graph) != printed
                || again.spans != printed.spans
            {
                failures.push("1: another graph after printing and parsing".to_owned());
            }
        }
    }
    failures
}

/// The first line on which the text is not what printing gives.
fn prints(case: &Case, parsed: &ParsedGraph) -> Failures {
    let printed = text::print(&parsed.graph);
    let body = &case.text[case.body..];
    if body == printed.text {
        return Failures::new();
    }
    let equal = body.lines().zip(printed.text.lines());
    let equal = equal.take_while(|(a, b)| a == b).count();
    let prints = printed.text.lines().nth(equal).unwrap_or("nothing");
    vec![format!(
        "{}: prints as `{prints}`",
        case.line_at(case.body) + equal
    )]
}

/// The first line on which the output of a pass is not the section; with `TPC_BLESS`, the section is replaced.
fn differs(case: &Case, output: &str, path: Option<&Path>) -> Failures {
    let (found, expected) = (output.trim(), case.below().trim());
    if found == expected {
        return Failures::new();
    }
    let title = case.command.output().unwrap_or_default();
    if let (Some(path), Some(_)) = (path, std::env::var_os("TPC_BLESS")) {
        let blessed = format!("{}\n\n; ---- {title}\n{found}\n", case.input().trim_end());
        return match std::fs::write(path, blessed) {
            Ok(()) => Failures::new(),
            Err(e) => vec![format!("1: cannot bless: {e}")],
        };
    }
    let Some(section) = &case.section else {
        return vec![format!(
            "1: no section `; ---- {title}`; TPC_BLESS=1 writes it"
        )];
    };
    let equal = found.lines().zip(expected.lines());
    let equal = equal.take_while(|(a, b)| a == b).count();
    let start = section.body + case.below().len() - case.below().trim_start().len();
    let found = found.lines().nth(equal).unwrap_or("nothing");
    vec![format!(
        "{}: the pass gives `{found}` (TPC_BLESS=1 replaces the section)",
        case.line_at(start) + equal
    )]
}
