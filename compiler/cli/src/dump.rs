//! `tpc dump`: prints the IR after a compiler stage, as text or for Graphviz.

use std::path::Path;
use std::str::FromStr;

use clap::ValueEnum;
use tpc_ir::program::Target;
use tpc_ir::{Graph, Program};
use tpc_passes::assemble;

use super::args::PlacementArgs;
use super::artefact;
use super::output::{self, Failure};
use super::source::{Source, SourceArgs};
use tpc_core::pipeline::CompiledModel;
use tpc_core::report::{LayerRange, render_dot, render_factors, render_rewriting};
use tpc_diag::{Diagnostic, codes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The model on a single place.
    Model,
    /// Factors of each distinct layer: their tensors, and the reasons for not splitting.
    Factors,
    /// The model with places and copies.
    Placed,
    /// The placed model with shardings; partial sums are reduced immediately.
    Sharded,
    /// The sharded model with copies and collectives at their cheapest places.
    Rewrite,
    /// One program per place.
    Programs,
    /// The programs with addresses and order, for batches of one token and of the largest size (-c, -ub).
    Program,
}

impl Stage {
    fn graph(self, compiled: &CompiledModel) -> Option<&Graph> {
        match self {
            Stage::Model => Some(&compiled.model.graph),
            Stage::Placed => Some(&compiled.planned.graph),
            Stage::Sharded => Some(&compiled.eager),
            Stage::Rewrite => Some(&compiled.sharded),
            Stage::Programs => Some(&compiled.programs),
            Stage::Factors | Stage::Program => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The text form of the IR.
    Text,
    /// A drawing for Graphviz, with a cluster per layer and place.
    Dot,
}

#[derive(Clone, Copy, Debug)]
struct Layers(LayerRange);

impl FromStr for Layers {
    type Err = String;

    fn from_str(text: &str) -> Result<Layers, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Layers((first, last))),
            _ => Err("give a layer such as 3, or a range such as 3-5".to_owned()),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Stage to print.
    #[arg(long, value_enum)]
    stage: Stage,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Draw only these layers and the values they read, such as 3 or 3-5 (with --format dot).
    #[arg(long, value_name = "N|N-M")]
    layers: Option<Layers>,
    #[command(flatten)]
    placement: PlacementArgs,
}

/// Assembles programs for one-token batches and for the largest batches. `storage` is the weight layout; if the devices
/// are unknown, the file's layout.
fn program(compiled: &CompiledModel, storage: &dyn Target) -> Result<Program, Failure> {
    assemble(&compiled.programs, &compiled.batch_shapes(), storage).map_err(|e| {
        let help = "give a shorter context (-c) or smaller batches (-ub)";
        Failure::usage(Diagnostic::new(&codes::COMMAND_LINE, "program", e.to_string()).help(help))
    })
}

fn wrong(option: &str, message: String, help: &str) -> Failure {
    Failure::usage(Diagnostic::new(&codes::COMMAND_LINE, option, message).help(help))
}

fn of_artefact(args: &Args, path: &Path) -> Result<(), Failure> {
    if args.stage != Stage::Program {
        let message = "an artefact holds only the stage `program`".to_owned();
        return Err(wrong(
            "--stage",
            message,
            "use --stage program, or give the model",
        ));
    }
    let read = artefact::read(path)?;
    artefact::options_are_free((path, None), &read, &args.placement)?;
    output::result(&read.program().to_string())
}

impl Args {
    /// Replaces names of models by their files or addresses.
    pub(super) fn resolve(&mut self) -> Result<(), Failure> {
        self.source.resolve()
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let drawn = match args.stage {
        Stage::Factors => Err("the stage `factors` is a table, not a graph"),
        Stage::Program => Err("the stage `program` is more than a graph: it has memory and queues"),
        Stage::Model | Stage::Placed | Stage::Sharded | Stage::Rewrite | Stage::Programs => Ok(()),
    };
    if let (Format::Dot, Err(why)) = (args.format, drawn) {
        let message = why.to_owned();
        let help = "use --stage model, placed, sharded, rewrite or programs, or --format text";
        return Err(wrong("--format dot", message, help));
    }
    if args.format == Format::Text && args.layers.is_some() {
        let message = "--layers needs --format dot".to_owned();
        return Err(wrong("--layers", message, "add --format dot"));
    }
    if let Some(path) = args.source.given().filter(|p| artefact::is_artefact(p)) {
        return of_artefact(args, path);
    }
    let placement = args.placement.placement(args.source.defaults())?;
    let Source { compiled, .. } = args.source.compile(&placement)?;
    args.source.notes().iter().for_each(output::diagnostic);
    let Some(graph) = args.stage.graph(&compiled) else {
        return output::result(&match args.stage {
            Stage::Program => program(&compiled, placement.storage)?.to_string(),
            _ => render_factors(&compiled),
        });
    };
    let highest = graph.insts().filter_map(|(_, data)| data.layer).max();
    if let Some(Layers((_, last))) = args.layers
        && highest.is_none_or(|h| last > h)
    {
        let message = format!("unknown layer {last}");
        let help = match highest {
            Some(h) => format!("layers are 0 to {h}"),
            None => "leave out --layers: the graph is not divided into layers".to_owned(),
        };
        return Err(wrong("--layers", message, &help));
    }
    output::result(&match (args.format, args.stage) {
        (Format::Text, Stage::Rewrite) => render_rewriting(&compiled),
        (Format::Text, _) => graph.to_string(),
        (Format::Dot, _) => render_dot(graph, args.layers.map(|l| l.0)),
    })
}
