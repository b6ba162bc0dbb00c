//! The arguments of `tpc lint`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::args::PlacementArgs;
use crate::input::{HubArgs, Need};
use crate::output::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
    Sarif,
    Github,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Target {
    /// ggml's multi-device back end.
    GgmlMeta,
}

#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("reader").multiple(true))]
pub(crate) struct Args {
    /// GGUF files, captures, folders, patterns in quotes such as 'models/*.gguf', addresses, or names of `tpc models`
    /// [default: from tpc.toml]. `-hf USER/NAME[:QUANT]` names a repository.
    #[arg(value_name = "MODEL", conflicts_with = "graph")]
    pub(super) models: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) hub: HubArgs,
    /// A captured ggml graph (JSON lines), instead of a model.
    #[arg(long, value_name = "CAPTURE.jsonl", conflicts_with = "command")]
    pub(super) graph: Option<PathBuf>,
    /// Run a llama.cpp program on a device that captures its graphs, and check them.
    #[arg(long, value_name = "llama-bench …", conflicts_with_all = ["models", "graph", "command", "target"])]
    pub(super) rpc_command: Option<String>,
    /// Folder that keeps the graphs of --rpc-command.
    #[arg(long, value_name = "DIR", requires = "rpc_command")]
    pub(super) capture: Option<PathBuf>,
    /// Check the graph against another engine's rules.
    #[arg(
        long,
        value_enum,
        value_name = "ENGINE",
        conflicts_with = "command",
        group = "reader"
    )]
    pub(super) target: Option<Target>,
    /// Architecture of the graph: for --target, whose engine may refuse it, and for --source.
    #[arg(long, value_name = "NAME", requires = "reader")]
    pub(super) architecture: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: Format,
    /// Turn findings with these codes, all `warnings`, or all `notes` and warnings, into errors; repeatable.
    #[arg(long, value_name = "warnings|notes|CODE")]
    pub(super) deny: Vec<String>,
    /// Drop findings with these codes; repeatable.
    #[arg(long, value_name = "CODE")]
    pub(super) allow: Vec<String>,
    /// File of accepted findings: they are not errors, and only new findings are shown.
    #[arg(long, value_name = "FILE.jsonl")]
    pub(super) baseline: Option<PathBuf>,
    /// Accept all findings: write them to the file of --baseline, and drop its stale entries.
    #[arg(long, requires = "baseline")]
    pub(super) update_baseline: bool,
    /// Sources of llama.cpp or a fork: findings in a captured graph show the line that makes the op.
    #[arg(long, value_name = "DIR", conflicts_with = "command", group = "reader")]
    pub(super) source: Option<PathBuf>,
    /// Settings file: files, devices, denied and allowed codes [default: tpc.toml here or above].
    #[arg(long, value_name = "FILE.toml")]
    pub(super) config: Option<PathBuf>,
    /// A llama.cpp command; environment variables may precede it.
    #[arg(last = true, value_name = "llama-server …")]
    pub(super) command: Vec<String>,
    #[command(flatten)]
    pub(super) placement: PlacementArgs,
}

impl Args {
    /// Replaces names of models by their files or addresses.
    pub(crate) fn resolve(&mut self) -> Result<(), Failure> {
        let Args { models, hub, .. } = self;
        models
            .iter_mut()
            .try_for_each(|word| hub.resolve(word, Need::Header))
    }
}
