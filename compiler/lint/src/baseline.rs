//! Accepted findings: a file of JSON lines, sorted, with a finding per line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BaselineState, Finding};

/// The version of the file's format.
const VERSION: u32 = 1;

/// The first line of the file.
#[derive(Serialize, Deserialize)]
struct Head {
    tpc_baseline: u32,
}

/// An accepted finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// The file with the finding.
    pub file: String,
    /// The code.
    pub code: String,
    /// The first affected tensor, key, op, option or device.
    pub entity: String,
    /// The hash of code, entity and message, without lines, layers and numbers.
    pub fingerprint: String,
    /// The number of accepted occurrences.
    pub count: usize,
}

/// The findings that a user has accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline(BTreeSet<Accepted>);

/// An unusable file of accepted findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineError {
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub message: String,
}

fn entry(file: &str, f: &Finding) -> Accepted {
    let d = &f.diagnostic;
    Accepted {
        file: file.to_owned(),
        code: d.code.id.to_owned(),
        entity: d.entity.to_string(),
        fingerprint: f.fingerprint(),
        count: f.count,
    }
}

impl Baseline {
    /// Parses the file.
    ///
    /// # Errors
    /// Returns the line of the first invalid entry.
    pub fn parse(text: &str) -> Result<Baseline, BaselineError> {
        let mut lines = text.lines().enumerate();
        let wrong = |line: usize, message: String| BaselineError {
            line: line + 1,
            message,
        };
        let head = lines.next().map_or("", |(_, l)| l);
        let head: Head = serde_json::from_str(head)
            .map_err(|e| wrong(0, format!("not a file of accepted findings: {e}")))?;
        if head.tpc_baseline != VERSION {
            let found = head.tpc_baseline;
            return Err(wrong(0, format!("version {found}, expected {VERSION}")));
        }
        let filled = lines.filter(|(_, l)| !l.trim().is_empty());
        let entries =
            filled.map(|(i, l)| serde_json::from_str(l).map_err(|e| wrong(i, e.to_string())));
        Ok(Baseline(entries.collect::<Result<_, _>>()?))
    }

    /// Returns the content of the file.
    ///
    /// # Errors
    /// Returns the serialiser's error.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let head = Head {
            tpc_baseline: VERSION,
        };
        let mut out = serde_json::to_string(&head)?;
        out.push('\n');
        for entry in &self.0 {
            let _ = writeln!(out, "{}", serde_json::to_string(entry)?);
        }
        Ok(out)
    }

    /// Replaces the entries of these files by their findings. Entries of other files stay.
    pub fn replace<'f>(&mut self, files: impl IntoIterator<Item = (&'f str, &'f [Finding])>) {
        let mut named = BTreeSet::new();
        let mut all: BTreeMap<(String, String), Accepted> = BTreeMap::new();
        for (file, findings) in files {
            named.insert(file);
            for f in findings {
                let new = entry(file, f);
                let key = (file.to_owned(), new.fingerprint.clone());
                all.entry(key)
                    .and_modify(|known| known.count += new.count)
                    .or_insert(new);
            }
        }
        self.0.retain(|e| !named.contains(e.file.as_str()));
        self.0.extend(all.into_values());
    }

    /// Sets the state of each finding in a file. A finding is accepted if it occurs at most as often as its entry says.
    /// Returns the file's entries without a finding.
    pub fn judge(&self, file: &str, findings: &mut [Finding]) -> Vec<Accepted> {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for f in findings.iter() {
            *found.entry(f.fingerprint()).or_default() += f.count;
        }
        let of_file = || self.0.iter().filter(|e| e.file == file);
        for f in findings {
            let print = f.fingerprint();
            let entry = of_file().find(|e| e.fingerprint == print);
            let accepted = entry.is_some_and(|e| found.get(&print).is_some_and(|n| *n <= e.count));
            f.baseline = Some(match accepted {
                true => BaselineState::Unchanged,
                false => BaselineState::New,
            });
        }
        let stale = of_file().filter(|e| !found.contains_key(&e.fingerprint));
        stale.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge;
    use tpc_diag::{Diagnostic, message};
    use tpc_ir::Code;

    static SAMPLE: Code = Code::warning("TPC0301", "a sample", "A sample.");

    fn found(entities: &[&str], line: u64) -> Vec<Finding> {
        let all = entities.iter();
        merge(
            all.map(|e| Diagnostic::new(&SAMPLE, *e, message!("line {}: odd", line)))
                .collect(),
        )
    }

    fn states(findings: &[Finding]) -> Vec<&'static str> {
        let states = findings.iter().filter_map(|f| f.baseline);
        states.map(BaselineState::word).collect()
    }

    #[test]
    fn a_finding_at_another_line_stays_accepted() {
        let mut baseline = Baseline::default();
        baseline.replace([("a", &*found(&["x", "y"], 3))]);
        let read = Baseline::parse(&baseline.to_text().expect("a text")).expect("a baseline");
        assert_eq!(read, baseline);
        let mut now = found(&["y", "z"], 40);
        let stale = read.judge("a", &mut now);
        assert_eq!(states(&now), ["unchanged", "new"]);
        assert_eq!(
            stale.iter().map(|e| e.entity.as_str()).collect::<Vec<_>>(),
            ["x"]
        );
        let mut elsewhere = found(&["x"], 3);
        assert!(read.judge("b", &mut elsewhere).is_empty());
        assert_eq!(states(&elsewhere), ["new"]);
    }

    #[test]
    fn more_occurrences_are_new() {
        let mut baseline = Baseline::default();
        baseline.replace([("a", &*found(&["x"], 1))]);
        let mut twice = found(&["x", "x"], 1);
        baseline.judge("a", &mut twice);
        assert_eq!(states(&twice), ["new"]);
    }

    #[test]
    fn entries_of_other_files_stay() {
        let mut baseline = Baseline::default();
        baseline.replace([("a", &*found(&["x"], 1)), ("b", &*found(&["x"], 1))]);
        baseline.replace([("a", &*found(&[], 1))]);
        let files: Vec<&str> = baseline.0.iter().map(|e| e.file.as_str()).collect();
        assert_eq!(files, ["b"]);
    }

    #[test]
    fn a_defect_has_a_line() {
        for (text, line) in [
            ("", 1),
            ("{}", 1),
            ("{\"tpc_baseline\":2}", 1),
            ("{\"tpc_baseline\":1}\n\n{\"code\":1}", 3),
        ] {
            assert_eq!(Baseline::parse(text).expect_err(text).line, line, "{text}");
        }
    }
}
