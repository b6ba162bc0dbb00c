use std::fmt::Write as _;

use tpc_ir::op::OpCategory;
use tpc_ir::{Device, Place, Value};
use tpc_passes::prove::{self, Proof};

use super::NumericCheck;
use tpc_core::pipeline::CompiledModel;
use tpc_core::shrink::ResizedAxis;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// The result with shortened lists.
    Brief,
    /// The result with every rule of the proof and every changed size.
    Full,
}

impl Detail {
    pub(super) fn from_verbose(verbose: bool) -> Detail {
        if verbose { Detail::Full } else { Detail::Brief }
    }
}

pub(super) fn proof(compiled: &CompiledModel, proof: &Proof, detail: Detail) -> String {
    let mut out = format!(
        "proved: the programs of {} compute the model\n\n",
        compiled.model.summary.name
    );
    let devices = compiled.programs.devices.iter().enumerate();
    let devices = devices.map(|(i, d)| (Place::Device(Device::new(i)), d.name.as_str()));
    for (place, name) in [(Place::Host, "host")].into_iter().chain(devices) {
        let (ops, moves) = program_size(compiled, place);
        let _ = writeln!(
            out,
            "  {name:<12} {ops} ops, {moves} copies and collectives"
        );
    }
    let _ = writeln!(
        out,
        "\n{} sections, {} of them different; the largest took {} terms",
        proof.sections, proof.distinct, proof.terms
    );
    if detail == Detail::Full {
        out.push_str("\nrules\n");
        for (name, equation) in prove::rules() {
            let times = proof.rules.get(name).copied().unwrap_or(0);
            let _ = writeln!(out, "  {name:<20} {times:>6} ×  {equation}");
        }
    }
    out
}

fn program_size(compiled: &CompiledModel, place: Place) -> (usize, usize) {
    let programs = &compiled.programs;
    let here = |v: &Value| programs.value(*v).place == place;
    let (mut ops, mut moves) = (0, 0);
    for (_, data) in programs.insts() {
        if !data.results.iter().any(here) {
            continue;
        }
        match data.op.category() {
            OpCategory::Copy | OpCategory::Collective(_) => moves += 1,
            OpCategory::Stored | OpCategory::Input => {}
            OpCategory::Constant
            | OpCategory::Layout
            | OpCategory::Selection
            | OpCategory::Repetition
            | OpCategory::Assembly
            | OpCategory::Update
            | OpCategory::Product
            | OpCategory::Heavy
            | OpCategory::Light => ops += 1,
        }
    }
    (ops, moves)
}

/// Formats the small model: layers, types, sizes, and the comparison with its programs.
pub(super) fn check(check: &NumericCheck, detail: Detail) -> String {
    let NumericCheck { shrunk, agreement } = check;
    let mut out = String::new();
    if let Some(a) = agreement {
        let _ = writeln!(
            out,
            "compared: a small model and its programs agree (NMSE {:.1e} in {} numbers of {} batches)\n",
            a.nmse, a.numbers, a.batches
        );
        for op in &a.stand_ins {
            let _ = writeln!(
                out,
                "  a stand-in ran for `{op}`, which tpc does not know: a fixed linear function of its operands\n"
            );
        }
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
    out.push_str(&size_table(&shrunk.sizes, detail));
    out
}

/// A changed size: old and new value, parts, and axes.
struct SizeRow {
    change: String,
    parts: String,
    axes: Vec<String>,
}

/// Formats the changed sizes. Axes with equal sizes and parts share a line.
fn size_table(sizes: &[ResizedAxis], detail: Detail) -> String {
    let mut rows: Vec<SizeRow> = Vec::new();
    for r in sizes {
        let change = format!("{} -> {}", r.from, r.to);
        let parts = parts(&r.parts);
        let axis = format!("{}[{}]", r.tensor.trim_end_matches(".weight"), r.axis);
        let same = |row: &&mut SizeRow| row.change == change && row.parts == parts;
        match rows.iter_mut().find(same) {
            Some(row) => row.axes.push(axis),
            None => rows.push(SizeRow {
                change,
                parts,
                axes: vec![axis],
            }),
        }
    }
    let wide = rows.iter().map(|r| r.change.len()).max().unwrap_or(0);
    let wider = rows.iter().map(|r| r.parts.len()).max().unwrap_or(0);
    let mut out = String::new();
    for SizeRow {
        change,
        parts,
        axes,
    } in &rows
    {
        let names = names(axes, detail);
        let _ = writeln!(out, "  {change:<wide$}  {parts:<wider$}  {names}");
    }
    out
}

/// Formats the names of a size's axes: all, or a few and the number of the others.
fn names(axes: &[String], detail: Detail) -> String {
    const NAMED: usize = 3;
    let shown = match detail {
        Detail::Full => axes.len(),
        Detail::Brief => NAMED.min(axes.len()),
    };
    let mut names = axes[..shown].join(" ");
    if axes.len() > shown {
        let _ = write!(names, " and {} more", axes.len() - shown);
    }
    names
}

/// Formats the sizes of parts, grouping equal neighbours: `= 2 × 13 + 14`.
fn parts(sizes: &[u64]) -> String {
    if sizes.is_empty() {
        return String::new();
    }
    let runs = sizes.chunk_by(|a, b| a == b).map(|run| match run {
        [one] => one.to_string(),
        many => format!("{} × {}", many.len(), many[0]),
    });
    format!("= {}", runs.collect::<Vec<_>>().join(" + "))
}
