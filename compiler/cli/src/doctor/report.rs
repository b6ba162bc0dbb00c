//! Checks as text and as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::{self, Failure, Format};
use tpc_core::format::wrapped;
use tpc_diag::visible;
use tpc_engine::doctor::{Checked, Section, Status};

/// A check of the machine.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Check")]
pub(crate) struct JsonCheck<'a> {
    /// The group of checks.
    #[schemars(extend("enum" = Section::ALL.map(Section::name)))]
    section: &'static str,
    /// The name.
    name: &'a str,
    /// The status.
    #[schemars(extend("enum" = Status::ALL.map(Status::word)))]
    status: &'static str,
    /// The result in words.
    finding: &'a str,
    /// The cure of a warning or failure.
    cure: Option<&'a str>,
    /// Measured numbers by name.
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

/// Prints each check as it ends.
pub(crate) struct Printer {
    format: Format,
    section: Option<&'static str>,
    width: usize,
    pub(crate) written: Result<(), Failure>,
}

impl Printer {
    pub(crate) fn new(format: Format) -> Printer {
        Printer {
            format,
            section: None,
            width: output::width().into(),
            written: Ok(()),
        }
    }

    pub(crate) fn print(&mut self, checked: &Checked) {
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
