//! `tpc dump`.

use clap::ValueEnum;
use tpc_ir::DType;
use tpc_passes::factors::describe_layer;

use super::args::PlacementArgs;
use super::output::{self, Failure};
use super::source::SourceArgs;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The model on one place, as its architecture describes it.
    Model,
    /// The factors of each distinct layer, and what forbids splitting each.
    Factors,
    /// The model with places and copies.
    Placed,
    /// The same with shardings and collectives.
    Sharded,
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
    let placement = args.placement.placement(DType::F16)?;
    let (compiled, _) = args.source.compile(&placement)?;
    let text = match args.stage {
        Stage::Model => compiled.model.graph.to_string(),
        Stage::Placed => compiled.planned.graph.to_string(),
        Stage::Sharded => compiled.sharded.to_string(),
        Stage::Programs => compiled.programs.to_string(),
        Stage::Factors => factors(&compiled),
    };
    output::result(&text)
}

fn factors(compiled: &crate::pipeline::Compiled) -> String {
    let (graph, planned) = (&compiled.planned.graph, &compiled.planned);
    let mut seen: Vec<String> = Vec::new();
    let mut out = String::new();
    for region in &planned.regions {
        // What stands before the first and after the last layer is told together.
        let key = region
            .layer
            .map_or_else(String::new, |_| region.signature.clone());
        if seen.contains(&key) {
            continue;
        }
        let name = region.layer.map_or_else(
            || "outside layers".to_owned(),
            |l| format!("layer {l} and those alike"),
        );
        out.push_str(&format!("{name}\n"));
        for line in describe_layer(graph, &planned.factors, &planned.analysis, region.layer).lines()
        {
            out.push_str(&format!("  {line}\n"));
        }
        seen.push(key);
    }
    out
}
