//! `tpc dump`.

use clap::ValueEnum;
use tpc_ir::DType;

use super::args::PlacementArgs;
use super::output::{self, Failure};
use super::source::{Source, SourceArgs};
use crate::report::{render_factors, render_rewriting};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The model on one place, as its architecture describes it.
    Model,
    /// The factors of each distinct layer: the tensors that each runs through, and what forbids splitting it.
    Factors,
    /// The model with places and copies.
    Placed,
    /// The same with shardings, and every pending sum done where it arises.
    Sharded,
    /// The same with copies and collectives where they cost least, and how they got there.
    Rewrite,
    /// The programs of the host and of every device.
    Programs,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    placement: PlacementArgs,
    /// Which stage.
    #[arg(long, value_enum)]
    stage: Stage,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let placement = args
        .placement
        .placement(DType::F16, args.source.split_mode())?;
    let Source { compiled, .. } = args.source.compile(&placement)?;
    let text = match args.stage {
        Stage::Model => compiled.model.graph.to_string(),
        Stage::Placed => compiled.planned.graph.to_string(),
        Stage::Sharded => compiled.eager.to_string(),
        Stage::Rewrite => render_rewriting(&compiled),
        Stage::Programs => compiled.programs.to_string(),
        Stage::Factors => render_factors(&compiled),
    };
    output::result(&text)
}
