//! Prints each result as soon as it is known, so that an interrupted run keeps its results.

use super::args::Format;
use super::measure::{Measured, Test};
use super::subject::Subject;
use super::table::Growing;
use super::{json, table};
use crate::output::{self, Failure};

pub(super) struct Printer<'s> {
    format: Format,
    subject: &'s Subject,
    table: Option<Growing>,
}

impl<'s> Printer<'s> {
    pub(super) const fn new(format: Format, subject: &'s Subject) -> Printer<'s> {
        Printer {
            format,
            subject,
            table: None,
        }
    }

    pub(super) fn begin(&mut self, tests: &[Test], sequences: usize) -> Result<(), Failure> {
        match self.format {
            Format::Json | Format::Jsonl => Ok(()),
            Format::Csv => output::result(json::CSV),
            Format::Table => {
                let names: Vec<String> = tests.iter().map(|t| t.name_of(sequences)).collect();
                let (table, head) = Growing::new(self.subject, &names);
                self.table = Some(table);
                output::result(&head)
            }
        }
    }

    pub(super) fn row(&self, m: &Measured) -> Result<(), Failure> {
        match (self.format, &self.table) {
            (Format::Jsonl, _) => {
                let line = serde_json::to_string(&json::row(self.subject, m));
                let line = line.map_err(|e| Failure::write("report", &e))?;
                output::result(&format!("{line}\n"))
            }
            (Format::Csv, _) => output::result(&json::csv(self.subject, m)),
            (Format::Table, Some(table)) => output::result(&table.row(self.subject, m)),
            (Format::Table, None) | (Format::Json, _) => Ok(()),
        }
    }

    pub(super) fn all(&mut self, measured: &[Measured]) -> Result<(), Failure> {
        match self.format {
            Format::Table => output::result(&table::report(self.subject, measured)),
            _ => {
                self.begin(&[], 1)?;
                measured.iter().try_for_each(|m| self.row(m))
            }
        }
    }
}
