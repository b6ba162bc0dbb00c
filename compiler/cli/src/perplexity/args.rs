//! The arguments of `tpc perplexity`.

use std::num::NonZero;
use std::path::PathBuf;

use tpc_diag::{Diagnostic, codes};
use tpc_engine::perplexity::Form;

use crate::args::PlacementArgs;
use crate::execution::{ExecutionArgs, FaultArgs, RankOptions, SubjectArgs};
use crate::output::{Failure, Format};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) subject: SubjectArgs,
    /// File with the text [default: standard input].
    #[arg(long, short, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// The text itself.
    #[arg(
        long,
        short,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "file"
    )]
    pub(super) prompt: Option<String>,
    /// Maximum number of windows; -1: the whole text.
    #[arg(
        long,
        value_name = "N",
        default_value_t = -1,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(-1..)
    )]
    pub(super) chunks: i64,
    /// Distance of windows in tokens; 0: windows of -c tokens without overlap.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) ppl_stride: usize,
    /// Form of the results of windows: 0 in one line, 1 in a table.
    #[arg(
        long,
        value_name = "0|1",
        default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..=1)
    )]
    pub(super) ppl_output_type: u8,
    /// File of log-probabilities: written, or with --kl-divergence the base. llama-perplexity has the same format.
    #[arg(long, visible_alias = "kl-divergence-base", value_name = "FILE")]
    pub(super) save_all_logits: Option<PathBuf>,
    /// Compare the predictions with the base of --kl-divergence-base, whose text is used.
    #[arg(
        long,
        requires = "save_all_logits",
        conflicts_with_all = ["file", "prompt", "ppl_stride"]
    )]
    pub(super) kl_divergence: bool,
    /// Compare the command's options with these placement options, such as `-ctk q8_0 -ctv q8_0`; repeatable.
    #[arg(
        long,
        value_name = "OPTIONS",
        allow_hyphen_values = true,
        conflicts_with_all = ["save_all_logits", "kl_divergence"]
    )]
    pub(super) compare: Vec<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) engine: ExecutionArgs,
    #[command(flatten)]
    pub(super) faults: FaultArgs,
    #[command(flatten)]
    pub(super) placement: PlacementArgs,
}

/// The default context, as in llama-perplexity.
const CONTEXT: usize = 512;

/// llama.cpp rounds the context up to a multiple of this, which changes windows with a stride.
const STEP: usize = 256;

impl Args {
    pub(super) fn form(&self) -> Form {
        NonZero::new(self.ppl_stride).map_or(Form::Chunks, Form::Strided)
    }

    /// Returns the tokens per window: `-c`, or else `base`, or else 512.
    pub(super) fn context(&self, base: Option<usize>) -> Result<usize, Failure> {
        let given = self.given_context()?;
        let context = match (given, base) {
            (Some(given), Some(base)) if given != base => return Err(other_context(given, base)),
            (_, Some(base)) => base,
            (given, None) => given.unwrap_or(CONTEXT),
        };
        Ok(match self.form() {
            Form::Chunks => context,
            Form::Strided(stride) => (context.saturating_add(stride.get() / 2))
                .checked_next_multiple_of(STEP)
                .unwrap_or(context),
        })
    }

    pub(super) fn given_context(&self) -> Result<Option<usize>, Failure> {
        let given = self.placement.ctx_size()?;
        Ok(given.map(|n| usize::try_from(n).unwrap_or(usize::MAX)))
    }

    pub(super) fn most(&self) -> usize {
        usize::try_from(self.chunks).unwrap_or(usize::MAX)
    }
}

fn other_context(given: usize, base: usize) -> Failure {
    let message = format!("-c {given}, but the base has windows of {base} tokens");
    let d = Diagnostic::new(&codes::COMMAND_LINE, "--ctx-size", message);
    Failure::usage(d.help(format!("leave out -c, or write -c {base}")))
}

impl Args {
    /// Replaces names of models by their files or addresses.
    pub(crate) fn resolve(&mut self) -> Result<(), Failure> {
        self.subject.resolve()
    }
}

impl Args {
    /// Returns the options that several processes need to run the model together.
    pub(crate) const fn of_ranks(&self) -> RankOptions<'_> {
        (&self.subject, &self.placement, &self.engine)
    }
}
