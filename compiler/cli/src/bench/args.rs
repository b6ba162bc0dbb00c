//! The arguments of `tpc bench`.

use clap::ValueEnum;
use tpc_diag::{Diagnostic, codes};

use crate::args::PlacementArgs;
use crate::execution::{ExecutionArgs, FaultArgs, RankOptions, SubjectArgs};
use crate::output::Failure;

const MAX_REPETITIONS: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A table.
    #[value(alias = "text", alias = "md")]
    Table,
    /// An array of objects.
    Json,
    /// An object per line.
    Jsonl,
    /// Comma-separated values.
    Csv,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) subject: SubjectArgs,
    /// Prompt lengths to time, in tokens; one test per length; 0 omits the test.
    #[arg(
        long,
        short = 'p',
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "512"
    )]
    pub(super) n_prompt: Vec<usize>,
    /// Generated lengths to time, in tokens; one test per length; 0 omits the test.
    #[arg(
        long,
        short = 'n',
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "128"
    )]
    pub(super) n_gen: Vec<usize>,
    /// Time a prompt and the tokens generated after it together; repeatable [-pg].
    #[arg(long = "pg", value_name = "PROMPT,N", value_parser = prompt_and_generation)]
    pub(super) n_both: Vec<[usize; 2]>,
    /// Cached tokens before a test; one test per number.
    #[arg(
        long,
        short = 'd',
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "0"
    )]
    pub(super) n_depth: Vec<usize>,
    /// Timed runs per test.
    #[arg(
        long,
        short,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=MAX_REPETITIONS)
    )]
    pub(super) repetitions: u64,
    /// Omit the untimed run before each test.
    #[arg(long)]
    pub(super) no_warmup: bool,
    /// Print the time of each kernel.
    #[arg(long)]
    pub(super) profile: bool,
    /// Compare with another program: each repetition runs tpc and COMMAND, which must print speeds as llama-bench does.
    #[arg(long, value_name = "COMMAND", conflicts_with = "profile")]
    pub(super) compare: Option<String>,
    /// Output format.
    #[arg(
        long,
        short = 'o',
        visible_alias = "output",
        value_enum,
        default_value = "table"
    )]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) engine: ExecutionArgs,
    #[command(flatten)]
    pub(super) faults: FaultArgs,
    #[command(flatten)]
    pub(super) placement: PlacementArgs,
}

fn prompt_and_generation(text: &str) -> Result<[usize; 2], Diagnostic> {
    let numbers: Option<Vec<usize>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
    numbers.and_then(|n| n.try_into().ok()).ok_or_else(|| {
        let message = format!("-pg must be two numbers of tokens, not `{text}`");
        Diagnostic::new(&codes::COMMAND_LINE, "-pg", message)
            .help("give two numbers, such as -pg 512,128")
    })
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
