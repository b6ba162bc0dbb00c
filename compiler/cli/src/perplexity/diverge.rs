//! Compares predictions with a saved base.

use std::io::Read;

use tpc_diag::FormatVersion;
use tpc_engine::perplexity::{BaseReader, Divergence, Mean, Rows, Statistics};

use super::evaluate::Task;
use super::report;
use crate::output::{self, Failure, Format};

pub(super) struct Diverge<R> {
    base: BaseReader<R>,
    pub(super) divergence: Divergence,
    format: Format,
}

impl<R: Read> Diverge<R> {
    pub(super) fn new(base: BaseReader<R>, format: Format) -> Diverge<R> {
        Diverge {
            base,
            divergence: Divergence::default(),
            format,
        }
    }
}

const HEAD: &str = "chunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence              Δp RMS            Same top p\n";

fn percent(m: Mean) -> String {
    format!("{:6.3} ± {:6.3} %", 100.0 * m.value, 100.0 * m.error)
}

impl<R: Read + Sync> Task for Diverge<R> {
    fn batch(&mut self, rows: &[Rows<'_>], targets: &[u32]) -> Result<(), Failure> {
        for rows in rows {
            self.base.read(targets.len())?;
            let base = &self.base;
            self.divergence.add(rows, |i| base.row(i), targets)?;
        }
        Ok(())
    }

    fn window(&mut self, i: usize) -> Result<(), Failure> {
        if self.format == Format::Json {
            return Ok(());
        }
        let s = Statistics::of(&self.divergence.tokens);
        let head = if i == 0 { HEAD } else { "" };
        output::result(&format!(
            "{head}{:4}    {:9.4} ± {:9.4}    {:10.5} ± {:10.5}    {:10.5} ± {:10.5}    {}    {}\n",
            i + 1,
            s.perplexity.value,
            s.perplexity.error,
            s.log_ratio.value,
            s.log_ratio.error,
            s.kld.value,
            s.kld.error,
            percent(s.p_diff_rms),
            percent(s.same_top)
        ))
    }
}

impl<R> Diverge<R> {
    /// Prints the result.
    pub(super) fn print(&self, model: &str) -> Result<(), Failure> {
        match self.format {
            Format::Json => output::json(&report::FromBase {
                tpc: FormatVersion,
                divergence: report::Divergence::of(model, &self.divergence),
            }),
            Format::Text => output::result(&format!("\n{}", report::text(&self.divergence))),
        }
    }
}
