//! `tpc bisect`: names the first op whose value differs between two graphs of a model, or between two engines.

mod engines;
mod graphs;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::{Failure, Format};
use crate::values::tolerance;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A captured ggml graph (JSON lines), the reference.
    #[arg(value_name = "A.jsonl")]
    first: PathBuf,
    /// A captured ggml graph of the same model and batch.
    #[arg(
        value_name = "B.jsonl",
        required_unless_present = "rpc",
        conflicts_with = "rpc"
    )]
    second: Option<PathBuf>,
    /// Run each op of A on this RPC server, such as llama.cpp's `ggml-rpc-server`, and compare it with tpc's reference; give
    /// two servers to compare them with each other.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    rpc: Vec<String>,
    /// Largest error of values that agree (NMSE) [default: 1e-15 for graphs; 1e-7 or 5e-4 per op for servers].
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true)]
    tolerance: Option<f64>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// List all ops that differ, not only the first 20.
    #[arg(long, short)]
    verbose: bool,
}

/// The output of `tpc bisect --format json`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "BisectOutput")]
pub(crate) enum Output<'a> {
    /// The comparison of two graphs.
    Graphs(graphs::Report<'a>),
    /// The comparison of two engines.
    Engines(engines::Report<'a>),
}

/// The number of ops that a report lists without `-v`.
const LISTED: usize = 20;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    match &args.second {
        Some(second) => graphs::run(args, second),
        None => engines::run(args),
    }
}
