//! The arguments of `tpc lint`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::args::PlacementArgs;

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
pub(crate) struct Args {
    /// GGUF files, captures, folders, patterns in quotes such as 'models/*.gguf', or addresses [default: from
    /// tpc.toml].
    #[arg(value_name = "MODEL", conflicts_with = "graph")]
    pub(super) models: Vec<PathBuf>,
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
    #[arg(long, value_enum, value_name = "ENGINE", conflicts_with = "command")]
    pub(super) target: Option<Target>,
    /// Architecture of the graph; the engine of --target may refuse this architecture.
    #[arg(long, value_name = "NAME", requires = "target")]
    pub(super) architecture: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: Format,
    /// Turn findings with these codes, or all `warnings`, into errors; repeatable.
    #[arg(long, value_name = "warnings|CODE")]
    pub(super) deny: Vec<String>,
    /// Drop findings with these codes; repeatable.
    #[arg(long, value_name = "CODE")]
    pub(super) allow: Vec<String>,
    /// Settings file: files, devices, denied and allowed codes [default: tpc.toml here or above].
    #[arg(long, value_name = "FILE.toml")]
    pub(super) config: Option<PathBuf>,
    /// A llama.cpp command; environment variables may precede it.
    #[arg(last = true, value_name = "llama-server …")]
    pub(super) command: Vec<String>,
    #[command(flatten)]
    pub(super) placement: PlacementArgs,
}
