//! The options for drafts.

use std::path::PathBuf;

use tpc_diag::{Diagnostic, codes};
use tpc_engine::generate::NgramSizes;

use crate::args::PlacementArgs;
use crate::output::Failure;

/// The most tokens that any source drafts at once.
const MOST: u64 = 256;

/// The tokens that a second model drafts at once, unless given.
const MODEL: usize = 8;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Drafts")]
pub(crate) struct DraftArgs {
    /// Smaller model with the same vocabulary that drafts tokens [-md].
    #[arg(long, alias = "spec-draft-model", value_name = "FILE")]
    pub(crate) model_draft: Option<PathBuf>,
    /// Minimum number of drafted tokens, even if they make generation slower.
    #[arg(
        long,
        aliases = ["draft-min", "draft-n-min"],
        value_name = "N",
        default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(0..=MOST)
    )]
    spec_draft_n_min: u64,
    /// Minimum number of repeated tokens before ngram-simple drafts.
    #[arg(
        long,
        value_name = "N",
        default_value_t = NgramSizes::default().lookup as u64,
        value_parser = clap::value_parser!(u64).range(1..=1024)
    )]
    spec_ngram_simple_size_n: u64,
    /// Maximum number of tokens that ngram-simple drafts at once.
    #[arg(
        long,
        value_name = "N",
        default_value_t = NgramSizes::default().drafts as u64,
        value_parser = clap::value_parser!(u64).range(1..=MOST)
    )]
    spec_ngram_simple_size_m: u64,
}

/// The sources of drafts besides the model's own blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The lookup of repeated text.
    pub(crate) ngram: Option<NgramSizes>,
    /// Maximum number of drafts of a second model, if there is one.
    pub(crate) model: Option<usize>,
    /// Minimum number of drafts.
    pub(crate) least: usize,
}

impl Wanted {
    /// Returns the maximum number of drafts.
    pub(crate) fn most(&self) -> usize {
        let ngram = self.ngram.map_or(0, |sizes| sizes.drafts);
        ngram.max(self.model.unwrap_or(0))
    }

    /// Limits the number of drafts.
    pub(crate) fn at_most(self, n: usize) -> Wanted {
        Wanted {
            ngram: self.ngram.map(|sizes| NgramSizes {
                drafts: sizes.drafts.min(n),
                ..sizes
            }),
            model: self.model.map(|most| most.min(n)),
            ..self
        }
    }
}

impl DraftArgs {
    pub(crate) fn wanted(&self, placement: &PlacementArgs) -> Result<Wanted, Failure> {
        let sources = placement.draft_sources()?;
        if sources.model && self.model_draft.is_none() {
            let message = "--spec-type draft-simple needs a draft model";
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--spec-type", message);
            return Err(Failure::usage(d.help(
                "add --model-draft FILE, or use ngram-simple, which needs no second model",
            )));
        }
        let small = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let most = placement.drafted_tokens()?.map(|n| small(n.min(MOST)));
        let wanted = Wanted {
            ngram: sources.ngram.then_some(NgramSizes {
                lookup: small(self.spec_ngram_simple_size_n),
                drafts: small(self.spec_ngram_simple_size_m),
            }),
            model: self.model_draft.as_ref().map(|_| most.unwrap_or(MODEL)),
            least: small(self.spec_draft_n_min),
        };
        Ok(wanted.at_most(most.unwrap_or(usize::MAX)))
    }
}
