//! Scores a text, and saves the log-probabilities if asked.

use std::fmt::Write as _;
use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_diag::FormatVersion;
use tpc_engine::perplexity::{BaseWriter, Estimate, Rows, Window};

use super::evaluate::Task;
use crate::output::{self, Failure, Format};

/// The printed form of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `[1]12.3,[2]…` in one line.
    Line,
    /// A line per window.
    Table,
    /// Only the result, as JSON.
    Json,
}

impl Form {
    pub(super) const fn of(format: Format, output_type: u8) -> Form {
        match (format, output_type) {
            (Format::Json, _) => Form::Json,
            (Format::Text, 0) => Form::Line,
            (Format::Text, _) => Form::Table,
        }
    }
}

/// The scores of a text.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TextScore")]
pub(crate) struct Report<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// The model.
    model: &'a str,
    /// Tokens per window.
    context: usize,
    /// The number of tokens.
    tokens: usize,
    /// The number of scored tokens.
    scored: usize,
    /// The perplexity.
    #[schemars(with = "Option<f64>")]
    perplexity: f64,
    /// The standard error of the perplexity.
    #[schemars(with = "Option<f64>")]
    error: f64,
    /// The perplexity after each window.
    #[schemars(with = "Vec<Option<f64>>")]
    by_chunk: &'a [f64],
}

pub(super) struct Score<'t, 'w> {
    windows: &'t [Window],
    form: Form,
    estimate: Estimate,
    by_chunk: Vec<f64>,
    base: Option<BaseWriter<&'w mut dyn Write>>,
}

impl<'t, 'w> Score<'t, 'w> {
    pub(super) fn new(
        windows: &'t [Window],
        form: Form,
        base: Option<BaseWriter<&'w mut dyn Write>>,
    ) -> Score<'t, 'w> {
        Score {
            windows,
            form,
            estimate: Estimate::default(),
            by_chunk: Vec::new(),
            base,
        }
    }

    /// Prints the result.
    pub(super) fn print(&self, model: &str) -> Result<(), Failure> {
        let e = &self.estimate;
        if self.form == Form::Json {
            return output::json(&Report {
                tpc: FormatVersion,
                model,
                context: self.windows.first().map_or(0, |w| w.len),
                tokens: self.windows.iter().map(|w| w.len).sum(),
                scored: e.count(),
                perplexity: e.perplexity(),
                error: e.error(),
                by_chunk: &self.by_chunk,
            });
        }
        output::result(&format!(
            "\nFinal estimate: PPL = {:.4} +/- {:.5}\n",
            e.perplexity(),
            e.error()
        ))
    }
}

impl Task for Score<'_, '_> {
    fn batch(&mut self, rows: &[Rows<'_>], targets: &[u32]) -> Result<(), Failure> {
        for rows in rows {
            let nlls = rows.nlls(targets)?;
            nlls.iter().for_each(|&nll| self.estimate.add(nll));
            if let Some(base) = &mut self.base {
                let written = base.write(rows);
                written.map_err(|e| Failure::write("--save-all-logits", &e))?;
            }
        }
        Ok(())
    }

    fn window(&mut self, i: usize) -> Result<(), Failure> {
        let e = &self.estimate;
        self.by_chunk.push(e.perplexity());
        let mut out = String::new();
        let _ = match self.form {
            Form::Json => return Ok(()),
            Form::Line => write!(out, "[{}]{:.4},", i + 1, e.perplexity()),
            Form::Table => writeln!(
                out,
                "{:8}  {:.4}  {:4.6}  {:4.6}",
                self.windows[i].start,
                e.perplexity(),
                e.mean(),
                e.deviation()
            ),
        };
        output::result(&out)
    }
}
