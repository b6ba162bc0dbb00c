use std::path::Path;

use tpc_ir::text::{self, ParsedGraph};
use tpc_ir::verify;

use crate::case::Case;
use crate::command::Command;
use crate::expectation::{Failures, Reported, unmet};
use crate::frontend::Frontend;
use crate::outcome::Outcome;
use crate::{lint, memory, planning, program};

impl Case {
    /// Runs the case. Returns failures as `LINE: MESSAGE`. If `bless` is the file's path, replaces an output that
    /// differs.
    pub fn run(&self, frontend: &Frontend, bless: Option<&Path>) -> Failures {
        if let Some(spec) = &self.model {
            let outcome = lint::of_model(self, spec, frontend);
            let mut failures = outcome.failures;
            failures.extend(unmet(&self.expected, &outcome.reported));
            return failures;
        }
        if self.command == Command::Program {
            return program::run(self, frontend.formats);
        }
        let parsed = match text::parse(self.input()) {
            Ok(parsed) => parsed,
            Err(errors) => return unparsed(self, &errors),
        };
        let outcome = of_parsed(self, &parsed, frontend);
        let mut failures = outcome.failures;
        failures.extend(unmet(&self.expected, &outcome.reported));
        failures.extend(round_trip(&parsed));
        if let Some(output) = outcome.output {
            failures.extend(differs(self, &output, bless));
        }
        failures
    }
}

fn of_parsed(case: &Case, parsed: &ParsedGraph, frontend: &Frontend) -> Outcome {
    let output = match case.command {
        Command::Parse => return Outcome::default(),
        Command::Print => {
            return Outcome {
                failures: prints(case, parsed),
                ..Outcome::default()
            };
        }
        Command::ParseError => {
            return Outcome {
                failures: vec!["1: the text parses".to_owned()],
                ..Outcome::default()
            };
        }
        Command::Verify => return Outcome::reported(verified(case, parsed)),
        Command::Prove => return planning::prove(case, parsed),
        Command::Lint => return lint::of_graph(case, parsed, frontend),
        Command::Program => return Outcome::default(),
        Command::Place => planning::place(case, parsed, frontend),
        Command::Factors => planning::factors(case, parsed, frontend),
        Command::Plan => planning::plan(case, parsed, frontend),
        Command::Shard => planning::shard(case, parsed, frontend),
        Command::Rewrite => planning::rewrite(parsed),
        Command::Lower => planning::lower(parsed),
        Command::Canonicalise => planning::canonicalise(parsed),
        Command::Layout => memory::layout(case, parsed, frontend),
        Command::Cover => memory::cover(case, parsed, frontend),
        Command::Buffers => memory::buffers(case, parsed, frontend),
        Command::Schedule => memory::schedule(case, parsed, frontend),
    };
    Outcome::output(output)
}

fn unparsed(case: &Case, errors: &[text::ParseError]) -> Failures {
    let reported: Vec<Reported> = errors
        .iter()
        .map(|e| case.at(e.span, e.code().id, e.to_string()))
        .collect();
    let mut failures = unmet(&case.expected, &reported);
    if case.command != Command::ParseError {
        failures.push("1: the text does not parse".to_owned());
    }
    failures
}

fn verified(case: &Case, parsed: &ParsedGraph) -> Vec<Reported> {
    let errors = verify::verify(&parsed.graph).err().unwrap_or_default();
    let reported = errors.iter().map(|e| {
        let span = parsed.spans.get(e.entity).unwrap_or_default();
        case.at(span, e.code().id, e.to_string())
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

/// Returns the first line that differs between the section and a pass's output. With the file's path, replaces the
/// section.
fn differs(case: &Case, output: &str, bless: Option<&Path>) -> Failures {
    let (found, expected) = (output.trim(), case.below().trim());
    if found == expected {
        return Failures::new();
    }
    let title = case.command.output().unwrap_or_default();
    if let Some(path) = bless {
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
