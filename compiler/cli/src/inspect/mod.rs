//! `tpc inspect`: shows the content of a GGUF file or an artefact.

mod artefact;
mod json;
mod text;

use std::path::PathBuf;

use crate::artefact::is_artefact;
use crate::input::{self, HubArgs, Model, Need};
use crate::output::{self, Failure, Format};
use crate::values::{self, Parsed, Pattern};
pub(crate) use json::Output;
use tpc_gguf::{Endianness, Entry, Header, TensorInfo};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file, any shard of one, its folder, its address, or a name of `tpc models`; or an artefact (.tpc). `-hf
    /// USER/NAME[:QUANT]` names a repository.
    model: PathBuf,
    #[command(flatten)]
    hub: HubArgs,
    /// List every tensor with its offset.
    #[arg(long, short)]
    verbose: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// List tensors whose names match a regular expression.
    #[arg(long, value_name = "REGEX", value_parser = values::tensors())]
    tensors: Option<Parsed<Pattern>>,
    /// Show metadata whose keys match a regular expression.
    #[arg(long, value_name = "REGEX", value_parser = values::keys())]
    keys: Option<Parsed<Pattern>>,
}

struct Selection<'h> {
    header: &'h Header,
    entries: Vec<&'h Entry>,
    tensors: Vec<&'h TensorInfo>,
}

fn order(endianness: Endianness) -> &'static str {
    match endianness {
        Endianness::Little => "little-endian",
        Endianness::Big => "big-endian",
    }
}

/// Returns the items with matching names, or all items without a pattern.
fn matching<'a, T>(
    all: &'a [T],
    pattern: &Option<Parsed<Pattern>>,
    name: impl Fn(&T) -> &str,
) -> Result<Vec<&'a T>, Failure> {
    let pattern = pattern.clone().transpose().map_err(Failure::usage)?;
    let mut out = Vec::new();
    for item in all {
        let found = match &pattern {
            Some(p) => p.found_in(name(item)).map_err(Failure::usage)?,
            None => true,
        };
        if found {
            out.push(item);
        }
    }
    Ok(out)
}

impl Args {
    /// Replaces the name of a model by its file or address.
    pub(super) fn resolve(&mut self) -> Result<(), Failure> {
        self.hub.resolve(&mut self.model, Need::Header)
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if is_artefact(&args.model) {
        return artefact::run(args);
    }
    let Model { file, notes } = input::open(&args.model)?;
    let header = file.header();
    let selection = Selection {
        header,
        entries: matching(header.metadata().entries(), &args.keys, |e| &e.key)?,
        tensors: matching(header.tensors(), &args.tensors, |t| &t.name)?,
    };
    match args.format {
        Format::Text => {
            let listed = args.verbose || args.tensors.is_some();
            output::result(&text::render(&file, &selection, listed))?;
        }
        Format::Json => output::json(&json::Output::Model(json::Report::new(&file, &selection)))?,
    }
    notes.iter().for_each(output::diagnostic);
    Ok(())
}
