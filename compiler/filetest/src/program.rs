use tpc_ir::Program;
use tpc_ir::program::text::{self, ParsedProgram, Part};
use tpc_ir::program::{StorageFormat, verify};
use tpc_ir::verify::Violations;

use crate::case::Case;
use crate::expectation::{Failures, Reported, unmet};

pub(crate) fn run(case: &Case, formats: &[StorageFormat]) -> Failures {
    let parsed = match text::parse(case.input(), formats) {
        Ok(parsed) => parsed,
        Err(errors) => {
            let reported = errors.iter();
            let reported = reported.map(|e| case.at(e.span, e.code().id, e.to_string()));
            return unmet(&case.expected, &reported.collect::<Vec<_>>());
        }
    };
    let report = |part: Part, code: &str, message: String| {
        case.at(parsed.spans.get(part).unwrap_or_default(), code, message)
    };
    let (program, mut failures) = match round_trip(&parsed, formats) {
        Ok(found) => found,
        Err(violations) => {
            let of = |e: &tpc_ir::verify::VerifyError| {
                report(Part::Graph(e.entity), e.code().id, e.to_string())
            };
            let reported: Vec<Reported> = violations.errors.iter().map(of).collect();
            return unmet(&case.expected, &reported);
        }
    };
    let errors = verify(&program).err().unwrap_or_default();
    let reported = errors.iter();
    let reported = reported.map(|e| report(e.part, e.code.id, e.to_string()));
    failures.extend(unmet(&case.expected, &reported.collect::<Vec<_>>()));
    failures
}

/// Returns the program. Adds a failure if printing and parsing change the program.
fn round_trip(
    parsed: &ParsedProgram,
    formats: &[StorageFormat],
) -> Result<(Program, Failures), Violations> {
    let program = parsed.clone().program()?;
    let printed = text::print(&program);
    let same = text::parse(&printed.text, formats).is_ok_and(|again| {
        let spans = again.spans == printed.spans;
        let program = |p: Program| p == program && text::print(&p) == printed;
        spans && again.program().is_ok_and(program)
    });
    let failures = match same {
        true => Failures::new(),
        false => vec!["1: printing and parsing change the program".to_owned()],
    };
    Ok((program, failures))
}
