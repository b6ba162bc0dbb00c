//! The arguments of `tpc run`.

use std::path::PathBuf;

use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, codes};
use tpc_engine::ExecutorKind;
use tpc_ir::DType;

use super::embedding_args::EmbeddingArgs;
use super::kept::KeptArgs;
use crate::args::{Defaults, PlacementArgs};
use crate::execution::{self, ExecutionArgs, FaultArgs, Opened, RankOptions, SubjectArgs};
use crate::generation::{DraftArgs, DraftOptions, SamplingArgs};
use crate::output::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) subject: SubjectArgs,
    /// Prompt; repeatable, each with its own answer [default: a chat, or standard input if it is not a terminal].
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) prompt: Vec<String>,
    /// File with a prompt per line, each with its own answer; `-np` of them run in parallel.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(super) prompts: Option<PathBuf>,
    /// File with the prompt.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["prompt", "prompts"])]
    pub(super) file: Option<PathBuf>,
    /// Replace the escapes \n, \t, \r, \\, \', \" and \xHH in -p [default: backslashes are ordinary].
    #[arg(long, short)]
    pub(super) escape: bool,
    /// Keep backslashes in -p (the default).
    #[arg(long, conflicts_with = "escape")]
    pub(super) no_escape: bool,
    /// Token ids to continue; the answer is printed as ids, too. Repeatable, each with its own answer.
    #[arg(
        long,
        value_name = "1,2,3",
        value_parser = token_ids,
        allow_hyphen_values = true,
        conflicts_with_all = ["prompt", "prompts", "file", "raw", "system_prompt"]
    )]
    pub(super) tokens: Vec<TokenIds>,
    /// Maximum tokens of an answer; -1 fills the context [default: 128; for an answer to a message, -1].
    #[arg(
        long,
        short = 'n',
        visible_alias = "predict",
        value_name = "N",
        value_parser = n_predict,
        allow_hyphen_values = true
    )]
    pub(super) n_predict: Option<MaxTokens>,
    /// System message before the first message.
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "raw"
    )]
    pub(super) system_prompt: Option<String>,
    /// Continue the text without the file's chat template.
    #[arg(long, visible_alias = "no-chat", alias = "no-conversation")]
    pub(super) raw: bool,
    /// Answer each line of standard input as a message of one chat, with the commands /clear and /exit.
    #[arg(long, conflicts_with_all = ["prompt", "prompts", "file", "tokens", "raw"])]
    pub(super) chat_lines: bool,
    /// Continue after a token that ends an answer.
    #[arg(long)]
    pub(super) ignore_eos: bool,
    /// If the context is full, drop the older half of the text and continue.
    #[arg(long)]
    pub(super) context_shift: bool,
    /// Number of initial tokens that a context shift keeps; -1: the prompt.
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        value_parser = keep,
        allow_hyphen_values = true
    )]
    pub(super) keep: Keep,
    #[command(flatten)]
    pub(super) embedding: EmbeddingArgs,
    #[command(flatten)]
    pub(super) kept: KeptArgs,
    #[command(flatten)]
    pub(super) drafts: DraftArgs,
    #[command(flatten)]
    pub(super) sampling: SamplingArgs,
    #[command(flatten)]
    pub(super) engine: ExecutionArgs,
    #[command(flatten)]
    pub(super) faults: FaultArgs,
    #[command(flatten)]
    pub(super) placement: PlacementArgs,
}

impl Args {
    /// Returns the options for draft models.
    pub(super) fn draft_options(&self) -> DraftOptions<'_> {
        DraftOptions {
            drafts: &self.drafts,
            placement: &self.placement,
            engine: &self.engine,
        }
    }

    /// Opens the model or artefact, and selects the executor.
    pub(super) fn opened(&self) -> Result<(Opened, ExecutorKind), Failure> {
        let defaults = Defaults {
            cache: DType::F16,
            split_mode: SplitMode::Auto,
        };
        let executor = self.engine.executor(&self.placement, ExecutorKind::Cpu);
        let opened = self.subject.open(&self.placement, || {
            execution::placement(&self.placement, defaults, executor)
        })?;
        let executor = opened.executor(&self.engine, executor);
        Ok((opened, executor))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenIds(pub(super) Vec<u32>);

fn token_ids(text: &str) -> Result<TokenIds, Diagnostic> {
    if text.is_empty() {
        return Ok(TokenIds(Vec::new()));
    }
    let ids: Result<Vec<u32>, _> = text.split(',').map(|id| id.trim().parse()).collect();
    ids.map(TokenIds).map_err(|_| {
        let message = format!("--tokens must be token ids, not `{text}`");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--tokens", message);
        d.help("separate ids by commas, such as 1,2,3")
    })
}

/// The maximum number of tokens of an answer; `None` fills the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MaxTokens(pub(super) Option<usize>);

fn n_predict(text: &str) -> Result<MaxTokens, Diagnostic> {
    match text.parse::<i64>() {
        Ok(-2 | -1) => Ok(MaxTokens(None)),
        Ok(n) if n >= 0 => Ok(MaxTokens(usize::try_from(n).ok())),
        _ => {
            let message = format!("--n-predict must be a number of tokens, not `{text}`");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--n-predict", message);
            Err(d.help("give a number such as 128; -1 fills the context"))
        }
    }
}

/// The number of initial tokens that a context shift keeps; `None`: the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keep(pub(super) Option<usize>);

fn keep(text: &str) -> Result<Keep, Diagnostic> {
    match text.parse::<i64>() {
        Ok(-1) => Ok(Keep(None)),
        Ok(n) if n >= 0 => Ok(Keep(usize::try_from(n).ok())),
        _ => {
            let message = format!("--keep must be a number of tokens, not `{text}`");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--keep", message);
            Err(d.help("give a number such as 4; -1 keeps the prompt"))
        }
    }
}

impl Args {
    /// Replaces names of models by their files or addresses.
    pub(crate) fn resolve(&mut self) -> Result<(), Failure> {
        self.subject.resolve()?;
        match &mut self.drafts.model_draft {
            Some(draft) => self.subject.resolve_other(draft),
            None => Ok(()),
        }
    }
}

impl Args {
    /// Returns the options that several processes need to run the model together.
    pub(crate) const fn of_ranks(&self) -> RankOptions<'_> {
        (&self.subject, &self.placement, &self.engine)
    }
}
