//! `tpc verify`.

use std::fmt::Write as _;

use tpc_ir::{DType, Op, Place};
use tpc_passes::prove::{self, Proof};

use super::args::PlacementArgs;
use super::output::{self, Failure};
use super::source::SourceArgs;
use crate::pipeline::{Compiled, refuted};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    placement: PlacementArgs,
    /// How often each rule of the proof was used, with what it says.
    #[arg(long, short)]
    verbose: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let placement = args
        .placement
        .placement(DType::F16, args.source.split_mode())?;
    let source = args.source.compile(&placement)?;
    match &source.compiled.proof {
        Ok(proof) => output::result(&said(&source.compiled, proof, args.verbose)),
        Err(r) => Err(Failure::of(vec![refuted(r)])),
    }
}

/// What was proved, and how.
fn said(compiled: &Compiled, proof: &Proof, verbose: bool) -> String {
    let programs = &compiled.programs;
    let mut out = format!(
        "proved: {} computes what the model says\n\n",
        compiled.model.summary.name
    );
    let places = std::iter::once((Place::Host, "host".to_owned())).chain(
        programs
            .devices
            .iter()
            .enumerate()
            .map(|(i, d)| (Place::Device(tpc_ir::Device::new(i)), d.name.clone())),
    );
    for (place, name) in places {
        let here = |v: &tpc_ir::Value| programs.value(*v).place == place;
        let own = programs.insts().filter(|(_, i)| i.results.iter().any(here));
        let (mut ops, mut moves) = (0, 0);
        for (_, data) in own {
            match &data.op {
                op if op.is_transfer() => moves += 1,
                Op::Weight(_) | Op::State(_) | Op::Input(_) => {}
                _ => ops += 1,
            }
        }
        let _ = writeln!(
            out,
            "  {name:<12} {ops} ops, {moves} copies and collectives"
        );
    }
    let _ = writeln!(
        out,
        "\n{} regions, {} of them different; the largest took {} terms",
        proof.regions, proof.distinct, proof.terms
    );
    if verbose {
        out.push_str("\nrules\n");
        for (name, equation) in prove::rules() {
            let times = proof.rules.get(name).copied().unwrap_or(0);
            let _ = writeln!(out, "  {name:<20} {times:>6} ×  {equation}");
        }
    }
    out
}
