//! The selection of findings and severities.

use std::collections::BTreeSet;

use super::Finding;
use tpc_diag::suggest::nearest_code;
use tpc_diag::{Code, Diagnostic, Severity, codes};

/// The settings of `--deny` and `--allow`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The least severity of errors.
    pub deny_from: DenyFrom,
    /// The codes whose findings are errors.
    pub deny: BTreeSet<&'static Code>,
    /// The codes whose findings are dropped.
    pub allow: BTreeSet<&'static Code>,
}

/// The least severity of findings that are errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DenyFrom {
    /// Only errors.
    #[default]
    Errors,
    /// Warnings and errors.
    Warnings,
    /// All findings.
    Notes,
}

impl DenyFrom {
    fn parse(word: &str) -> Option<DenyFrom> {
        match word.to_ascii_lowercase().as_str() {
            "warnings" => Some(DenyFrom::Warnings),
            "notes" => Some(DenyFrom::Notes),
            _ => None,
        }
    }

    fn denies(self, severity: Severity) -> bool {
        match severity {
            Severity::Error => true,
            Severity::Warning => self >= DenyFrom::Warnings,
            Severity::Note => self >= DenyFrom::Notes,
        }
    }
}

impl Policy {
    /// Parses lists of codes, ignoring case.
    ///
    /// # Errors
    /// Returns TPC0407 for an unknown code, and TPC0400 for a code that is both denied and allowed.
    pub fn parse(
        deny: &[String],
        allow: &[String],
        known: &[&'static Code],
    ) -> Result<Policy, Diagnostic> {
        let mut out = Policy::default();
        for (option, given, set) in [
            ("--deny", deny, &mut out.deny),
            ("--allow", allow, &mut out.allow),
        ] {
            let words = given.iter().flat_map(|g| g.split(',')).map(str::trim);
            for word in words {
                if let Some(from) = DenyFrom::parse(word).filter(|_| option == "--deny") {
                    out.deny_from = out.deny_from.max(from);
                    continue;
                }
                let code = word.to_ascii_uppercase();
                if let Some(known) = known.iter().find(|c| ***c == *code) {
                    set.insert(*known);
                    continue;
                }
                let near = nearest_code(&code, known.iter().map(|c| c.id));
                let near = near.map_or_else(String::new, |n| format!("did you mean {n}? "));
                let also = if option == "--deny" {
                    "`warnings`, `notes`, or "
                } else {
                    ""
                };
                let d = Diagnostic::new(
                    &codes::UNKNOWN_CODE,
                    option,
                    format!("unknown diagnostic code `{word}`"),
                );
                return Err(d.help(format!(
                    "{near}{option} takes {also}codes separated by commas; see `tpc explain`"
                )));
            }
        }
        if let Some(both) = out.deny.intersection(&out.allow).next() {
            let message = format!("{both} is both denied and allowed");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--allow", message);
            return Err(d.help(format!("leave out {both} in --deny or --allow")));
        }
        Ok(out)
    }

    /// Drops allowed findings, and raises denied ones to errors.
    pub fn apply(&self, found: Vec<Finding>) -> Vec<Finding> {
        let kept = found
            .into_iter()
            .filter(|f| !self.allow.contains(f.diagnostic.code));
        let judged = kept.map(|mut f| {
            let severity = &mut f.diagnostic.severity;
            let denied = self.deny_from.denies(*severity) || self.deny.contains(f.diagnostic.code);
            if denied && *severity != Severity::Error {
                *severity = Severity::Error;
                f.denied = true;
            }
            f
        });
        judged.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::merge;
    use super::*;

    static WARNING: Code = Code::warning("TPC0301", "a warning", "A sample.");
    static NOTE: Code = Code::note("TPC0302", "a note", "A sample.");

    fn policy(deny: &str, allow: &str) -> Result<Policy, Diagnostic> {
        let list = |text: &str| match text {
            "" => Vec::new(),
            text => vec![text.to_owned()],
        };
        Policy::parse(&list(deny), &list(allow), &[&WARNING, &NOTE])
    }

    #[test]
    fn unknown_codes_name_the_nearest() {
        let d = policy("TPC0310", "").expect_err("unknown");
        assert_eq!(d.code, "TPC0407");
        assert!(d.help.expect("a cure").contains("TPC030"));
        assert_eq!(policy("", "x").expect_err("unknown").code, "TPC0407");
        assert_eq!(policy("", "warnings").expect_err("no code").code, "TPC0407");
        let both = policy("tpc0301", "TPC0301").expect_err("both");
        assert_eq!(both.code, "TPC0400");
    }

    #[test]
    fn denied_and_allowed() {
        let found = || {
            merge(vec![
                Diagnostic::new(&WARNING, "a", "a"),
                Diagnostic::new(&NOTE, "b", "b"),
            ])
        };
        let severities = |p: Policy| -> Vec<Severity> {
            let kept = p.apply(found());
            kept.iter().map(|f| f.diagnostic.severity).collect()
        };
        use Severity::{Error, Note, Warning};
        let of = |deny, allow| severities(policy(deny, allow).expect("a policy"));
        assert_eq!(of("", ""), [Warning, Note]);
        assert_eq!(of("warnings", ""), [Error, Note]);
        assert_eq!(of("notes", ""), [Error, Error]);
        assert_eq!(of("Notes,warnings", ""), [Error, Error]);
        assert_eq!(of("TPC0302", ""), [Warning, Error]);
        assert_eq!(of("warnings, tpc0302", "TPC0301"), [Error]);
    }
}
