//! Compares several settings of a model with the first, in one run.

use schemars::JsonSchema;
use serde::Serialize;
use tpc_diag::FormatVersion;
use tpc_engine::perplexity::{BaseRow, Divergence, Mean, Rows, Statistics};

use super::evaluate::Task;
use super::report;
use crate::output::{self, Failure, Format};

/// The differences of each setting from the first. Every batch runs in all settings.
pub(super) struct Compare {
    /// The settings' options; the first is the command's own.
    names: Vec<String>,
    each: Vec<Divergence>,
}

const OWN: &str = "(the command's options)";

impl Compare {
    pub(super) fn new(names: Vec<String>) -> Compare {
        let each = names.iter().map(|_| Divergence::default()).collect();
        Compare { names, each }
    }
}

impl Task for Compare {
    fn batch(&mut self, rows: &[Rows<'_>], targets: &[u32]) -> Result<(), Failure> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        for (rows, divergence) in rows.iter().zip(&mut self.each) {
            divergence.add(rows, |i| BaseRow::Exact(first.row(i)), targets)?;
        }
        Ok(())
    }

    fn window(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }
}

/// The divergences of several settings from the first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SettingDivergences")]
pub(crate) struct Report<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// The model.
    model: &'a str,
    /// Tokens per window.
    context: usize,
    /// The settings; the first is the base.
    settings: Vec<report::Divergence>,
}

fn value(m: Mean) -> String {
    format!("{:.5} ± {:.5}", m.value, m.error)
}

impl Compare {
    /// Prints a row per setting.
    pub(super) fn print(
        &self,
        (model, context): (&str, usize),
        format: Format,
    ) -> Result<(), Failure> {
        let names = self.names.iter().zip(&self.each);
        if format == Format::Json {
            let settings = names.map(|(name, found)| report::Divergence::of(name, found));
            return output::json(&Report {
                tpc: FormatVersion,
                model,
                context,
                settings: settings.collect(),
            });
        }
        let heads = [
            "setting",
            "perplexity",
            "ln(PPL/first)",
            "mean KLD",
            "max KLD",
            "same top",
        ];
        let mut rows = vec![heads.map(str::to_owned)];
        for (name, found) in names {
            let s = Statistics::of(&found.tokens);
            let most = found.tokens.iter().map(|t| t.kld).fold(0.0, f64::max);
            rows.push([
                if name.is_empty() { OWN } else { name }.to_owned(),
                format!("{:.4} ± {:.4}", s.perplexity.value, s.perplexity.error),
                value(s.log_ratio),
                value(s.kld),
                format!("{most:.5}"),
                format!("{:.2} %", 100.0 * s.same_top.value),
            ]);
        }
        output::result(&table(&rows))
    }
}

/// Aligns columns: the first to the left, the others to the right.
fn table(rows: &[[String; 6]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|r| r[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut out = String::new();
    for row in rows {
        let [first, others @ ..] = row;
        out += &format!("{first:<0$}", widths[0]);
        for (cell, width) in others.iter().zip(&widths[1..]) {
            out += &format!("  {cell:>width$}");
        }
        out.push('\n');
    }
    out
}
