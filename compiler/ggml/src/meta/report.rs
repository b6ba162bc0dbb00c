//! What the engine would make of a graph, as diagnostics.

use std::collections::BTreeMap;

use super::codes;
use super::fault::Verdict;
use super::infer::{Fault, Setup};
use super::repair::{EQUATIONS, Limits, Repair, RepairedGraph, repair};
use crate::capture::Record;
use tpc_diag::Diagnostic;

/// What goes wrong in a graph, and its equivalents that are taken.
pub fn diagnose(records: &[Record], setup: &Setup) -> Vec<Diagnostic> {
    let repaired = repair(records, setup, EQUATIONS, Limits::default());
    let mut out: Vec<Diagnostic> = Vec::new();
    for c in &repaired.repairs {
        out.push(told(&c.fault, Some(&c.record)));
    }
    for f in &repaired.inference.faults {
        out.push(told(f, f.record.map(|i| &repaired.records[i])));
    }
    out.extend(changes(&repaired.repairs));
    out.extend(failure(&repaired));
    out
}

fn told(f: &Fault, record: Option<&Record>) -> Diagnostic {
    let says = match f.kind.verdict() {
        Verdict::Refused => "the engine refuses the graph",
        Verdict::Crash => "the engine aborts here",
        Verdict::Wrong => "the engine goes on, and the result is wrong",
        Verdict::Ok => "the engine takes it",
    };
    let (entity, place) = match record {
        Some(t) if t.line > 0 => (t.name.as_str(), format!("line {}: {}: ", t.line, t.op)),
        Some(t) => (t.name.as_str(), format!("{}: ", t.op)),
        None => ("graph", String::new()),
    };
    let message = format!("{place}{says}: {}", f.why);
    let d = Diagnostic::new(f.kind.code(), entity, message).help(f.kind.code().cure);
    match record {
        Some(t) if t.line > 0 => d.line(t.line),
        _ => d,
    }
}

/// A change with stars for numbers: what it has in common in all layers.
fn pattern(diff: &str) -> String {
    let mut out = String::new();
    for c in diff.chars() {
        match c {
            '0'..='9' if out.ends_with('*') => {}
            '0'..='9' => out.push('*'),
            c => out.push(c),
        }
    }
    out
}

/// One note per change, however many layers need it.
fn changes(repairs: &[Repair]) -> Vec<Diagnostic> {
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    for c in repairs {
        *alike.entry(pattern(&c.diff)).or_insert(0) += 1;
    }
    let mut out = Vec::new();
    for c in repairs {
        let Some(n) = alike.remove(&pattern(&c.diff)) else {
            continue;
        };
        let times = match n {
            1 => String::new(),
            2 => ", as in 1 more place".to_owned(),
            n => format!(", as in {} more places", n - 1),
        };
        let message = format!(
            "line {}: {}: this equivalent is taken{times} ({} terms, {})",
            c.record.line, c.record.op, c.search.terms, c.search.stop
        );
        let note = Diagnostic::new(&codes::EQUIVALENT, &c.record.name, message).line(c.record.line);
        out.push(note.help(c.diff.trim_end()));
    }
    out
}

/// That no equivalent was found, and how the search ended.
fn failure(repaired: &RepairedGraph) -> Option<Diagnostic> {
    let search = repaired.failed.as_ref()?;
    let record = repaired.inference.refused()?.record?;
    let t = &repaired.records[record];
    let message = format!(
        "line {}: {}: no equivalent is found that is taken ({} terms, {})",
        t.line, t.op, search.terms, search.stop
    );
    let help = "no law of these ops makes it one that this engine splits; build the layer otherwise, or use tpc";
    Some(
        Diagnostic::new(&codes::EQUIVALENT, &t.name, message)
            .line(t.line)
            .help(help),
    )
}
