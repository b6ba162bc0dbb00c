use crate::frontend::Frontend;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    /// The line number, from 1; 0 for a finding without a line.
    pub(crate) line: usize,
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The failures of a case, each as `LINE: MESSAGE`.
pub type Failures = Vec<String>;

const SEVERITIES: [&str; 3] = ["; error[", "; warning[", "; note["];

/// Parses the expectations at the end of a line.
pub(crate) fn expectations(
    number: usize,
    line: &str,
    frontend: &Frontend,
) -> Result<Vec<Reported>, String> {
    let mut starts: Vec<(usize, usize)> = SEVERITIES
        .iter()
        .flat_map(|s| line.match_indices(s).map(|(at, s)| (at, at + s.len())))
        .collect();
    starts.sort_unstable();
    let statement = starts.first().map_or(line, |&(at, _)| &line[..at]);
    if statement.contains("[TPC") || statement.contains("; test ") {
        return Err(format!("{number}: malformed expectation or directive"));
    }
    let ends = starts.iter().skip(1).map(|&(at, _)| at).chain([line.len()]);
    let pieces = starts
        .iter()
        .zip(ends)
        .map(|(&(_, from), to)| &line[from..to]);
    let known = (!starts.is_empty()).then(frontend.codes);
    let known = known.unwrap_or_default();
    pieces
        .map(|piece| {
            let (code, rest) = piece.split_once(']').unwrap_or((piece, ""));
            if !known.iter().any(|c| **c == *code) {
                return Err(format!("{number}: unknown code `{code}`"));
            }
            let message = match rest.trim() {
                "" => "",
                rest => rest
                    .strip_prefix(": ")
                    .ok_or_else(|| format!("{number}: malformed expectation `{rest}`"))?,
            };
            Ok(Reported {
                line: number,
                code: code.to_owned(),
                message: message.to_owned(),
            })
        })
        .collect()
}

pub(crate) fn unmet(expected: &[Reported], reported: &[Reported]) -> Failures {
    let mut left: Vec<&Reported> = reported.iter().collect();
    let mut failures = Vec::new();
    for e in expected {
        let fits =
            |r: &&Reported| r.line == e.line && r.code == e.code && r.message.contains(&e.message);
        match left.iter().position(fits) {
            Some(i) => {
                left.remove(i);
            }
            None => failures.push(format!(
                "{}: not reported: error[{}]: {}",
                e.line, e.code, e.message
            )),
        }
    }
    let unexpected = left
        .iter()
        .map(|r| format!("{}: unexpected error[{}]: {}", r.line, r.code, r.message));
    failures.extend(unexpected);
    failures
}
