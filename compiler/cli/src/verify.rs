//! `tpc verify`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum;
use serde::Serialize;
use tpc_ir::{Op, Place};
use tpc_passes::prove::{self, Proof};

use super::args::PlacementArgs;
use super::output::{self, Failure};
use super::source::{Source, SourceArgs};
use tpc_core::pipeline::Compiled;
use tpc_core::shrink::{Resized, Shrunk};
use tpc_diag::{Diagnostic, Severity};
use tpc_lint::plan_report;
use tpc_numeric::{self as numeric, Agreement, Feed};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    placement: PlacementArgs,
    /// Also make the model small, divided as it is, run it whole and as programs, and compare the answers.
    #[arg(long)]
    numeric: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// How often each rule of the proof was used, with what it says; with --numeric, every size that changed.
    #[arg(long, short)]
    verbose: bool,
}

/// What JSON readers get.
#[derive(Serialize)]
struct Verdict<'a> {
    tpc: u32,
    model: Model<'a>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<Proved>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numeric: Option<Numeric<'a>>,
    diagnostics: &'a [Diagnostic],
}

#[derive(Serialize)]
struct Model<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct Proved {
    regions: usize,
    distinct: usize,
    terms: usize,
}

#[derive(Serialize)]
struct Numeric<'a> {
    layers: Vec<Layer<'a>>,
    sizes: Vec<Size<'a>>,
    types: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agreement: Option<&'a Agreement>,
}

#[derive(Serialize)]
struct Layer<'a> {
    layer: u32,
    stands_for: &'a [u32],
}

#[derive(Serialize)]
struct Size<'a> {
    tensor: &'a str,
    axis: usize,
    from: u64,
    to: u64,
    parts: &'a [u64],
}

impl<'a> Numeric<'a> {
    fn of(checked: &'a Checked) -> Numeric<'a> {
        let Shrunk {
            layers,
            sizes,
            types,
            ..
        } = &checked.shrunk;
        let layer = |(layer, all): &'a (u32, Vec<u32>)| Layer {
            layer: *layer,
            stands_for: all,
        };
        let size = |r: &'a Resized| Size {
            tensor: &r.tensor,
            axis: r.axis,
            from: r.from,
            to: r.to,
            parts: &r.parts,
        };
        Numeric {
            layers: layers.iter().map(layer).collect(),
            sizes: sizes.iter().map(size).collect(),
            types: types.iter().map(|(a, b)| (a.name(), b.name())).collect(),
            agreement: checked.agreement.as_ref(),
        }
    }
}

/// A small model, and how its programs did.
struct Checked {
    shrunk: Shrunk,
    agreement: Option<Agreement>,
}

/// Runs a small model of the plan; diagnostics go to `found`.
fn check(source: &Source, found: &mut Vec<Diagnostic>) -> Option<Checked> {
    let shrunk = match numeric::shrink(&source.compiled) {
        Ok(shrunk) => shrunk,
        Err(d) => {
            found.push(d);
            return None;
        }
    };
    found.extend(shrunk.notes());
    let feed = match &source.batch {
        Some(batch) => Feed::Captured(batch.clone()),
        None => Feed::Tokens(shrunk.window),
    };
    let agreement = match numeric::compare(&shrunk, &feed) {
        Ok(agreement) => Some(agreement),
        Err(d) => {
            found.push(*d);
            None
        }
    };
    Some(Checked { shrunk, agreement })
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let planned = args
        .placement
        .placement(args.source.defaults())
        .and_then(|placement| Ok((args.source.compile(&placement)?, placement)));
    let path = args.source.path();
    let (source, placement) = match planned {
        Ok(planned) => planned,
        Err(failure) => {
            if args.format == Format::Json {
                output::json(&Verdict {
                    tpc: 1,
                    model: Model {
                        path: &path,
                        name: None,
                    },
                    verdict: "error",
                    proof: None,
                    numeric: None,
                    diagnostics: &failure.diagnostics,
                })?;
            }
            return Err(failure);
        }
    };
    let compiled = &source.compiled;
    let mut found: Vec<Diagnostic> = Vec::new();
    found.extend(compiled.unproved());
    // What was asked for and has no effect is not in what was proved.
    let of_plan = plan_report(&path, &placement, compiled).diagnostics;
    found.extend(
        of_plan
            .into_iter()
            .filter(|d| d.severity == Severity::Warning),
    );
    let checked = args.numeric.then(|| check(&source, &mut found)).flatten();
    let failed = found.iter().any(|d| d.severity == Severity::Error);
    match args.format {
        Format::Text => {
            let mut out = String::new();
            if let Ok(proof) = &compiled.proof {
                out += &said(compiled, proof, args.verbose);
            }
            if let Some(checked) = &checked {
                if !out.is_empty() {
                    out.push('\n');
                }
                out += &compared(checked, args.verbose);
            }
            output::result(&out)?;
        }
        Format::Json => output::json(&Verdict {
            tpc: 1,
            model: Model {
                path: &path,
                name: Some(&compiled.model.summary.name),
            },
            verdict: if failed { "error" } else { "ok" },
            proof: compiled.proof.as_ref().ok().map(|p| Proved {
                regions: p.sections,
                distinct: p.distinct,
                terms: p.terms,
            }),
            numeric: checked.as_ref().map(Numeric::of),
            diagnostics: &found,
        })?,
    }
    if failed {
        return Err(Failure::of(found));
    }
    found.iter().for_each(output::diagnostic);
    Ok(())
}

/// Tensors that are named for a size without --verbose.
const NAMED: usize = 3;

/// What was run, and how it agreed.
fn compared(checked: &Checked, verbose: bool) -> String {
    let Checked { shrunk, agreement } = checked;
    let mut out = String::new();
    if let Some(a) = agreement {
        let _ = writeln!(
            out,
            "compared: a small model and its programs agree (NMSE {:.1e} in {} numbers of {} batches)\n",
            a.nmse, a.numbers, a.batches
        );
    }
    let all: usize = shrunk.layers.iter().map(|(_, all)| all.len()).sum();
    if all > 0 {
        let kept: Vec<String> = shrunk.layers.iter().map(|(l, _)| l.to_string()).collect();
        let _ = writeln!(
            out,
            "  {} of {all} layers stand for all: {}",
            kept.len(),
            kept.join(" ")
        );
    }
    for (from, to) in &shrunk.types {
        let _ = writeln!(out, "  weights of type {from} are {to}");
    }
    let mut sizes: Vec<(String, String, Vec<String>)> = Vec::new();
    for r in &shrunk.sizes {
        let change = format!("{} -> {}", r.from, r.to);
        let parts = parts(&r.parts);
        let axis = format!("{}[{}]", r.tensor.trim_end_matches(".weight"), r.axis);
        match sizes
            .iter_mut()
            .find(|(c, p, _)| *c == change && *p == parts)
        {
            Some((_, _, axes)) => axes.push(axis),
            None => sizes.push((change, parts, vec![axis])),
        }
    }
    let width = |of: fn(&(String, String, Vec<String>)) -> usize| sizes.iter().map(of).max();
    let wide = width(|s| s.0.len()).unwrap_or(0);
    let wider = width(|s| s.1.len()).unwrap_or(0);
    for (change, parts, axes) in &sizes {
        let shown = if verbose { axes.len() } else { NAMED };
        let mut names = axes[..shown.min(axes.len())].join(" ");
        if axes.len() > shown {
            let _ = write!(names, " and {} more", axes.len() - shown);
        }
        let _ = writeln!(out, "  {change:<wide$}  {parts:<wider$}  {names}");
    }
    out
}

/// The sizes of parts, those that follow one another and are equal together: `2 × 13 + 14`.
fn parts(sizes: &[u64]) -> String {
    let runs: Vec<String> = sizes
        .chunk_by(|a, b| a == b)
        .map(|run| match run.len() {
            1 => run[0].to_string(),
            n => format!("{n} × {}", run[0]),
        })
        .collect();
    match runs.is_empty() {
        true => String::new(),
        false => format!("= {}", runs.join(" + ")),
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
        proof.sections, proof.distinct, proof.terms
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
