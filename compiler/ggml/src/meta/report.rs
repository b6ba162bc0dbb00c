use std::collections::BTreeMap;

use super::codes;
use super::fault::Verdict;
use super::infer::{Fault, Setup};
use super::repair::{EQUATIONS, Limits, Repair, RepairedGraph, Stop, repair};
use crate::capture::Record;
use tpc_diag::{Diagnostic, Line, Message, Name, Quantity, message};
use tpc_gguf::TensorName;

/// Returns diagnostics for the faults of a graph and for the repairs.
pub fn diagnose(records: &[Record], setup: &Setup) -> Vec<Diagnostic> {
    let repaired = repair(records, setup, EQUATIONS, Limits::default());
    let mut out: Vec<Diagnostic> = Vec::new();
    for r in &repaired.repairs {
        out.push(of_fault(&r.fault, Some(&r.record)));
    }
    for f in &repaired.inference.faults {
        out.push(of_fault(f, f.record.map(|i| &repaired.records[i])));
    }
    out.extend(of_repairs(&repaired.repairs));
    out.extend(no_repair_note(&repaired));
    out
}

fn of_fault(f: &Fault, record: Option<&Record>) -> Diagnostic {
    let consequence = match f.kind.verdict() {
        Verdict::Refused => "ggml refuses the graph",
        Verdict::Crash => "ggml aborts here",
        Verdict::Wrong => "ggml silently computes a wrong result",
        Verdict::Ok => "ggml accepts the graph",
    };
    let (entity, place) = match record {
        Some(t) => (name(t), place(t)),
        None => (Name::plain("graph"), Message::default()),
    };
    let message = message!("{}{}: {}", place, consequence, Quantity(&f.why));
    let d = Diagnostic::new(f.kind.code(), entity, message).help(f.kind.code().cure);
    match record {
        Some(t) if t.line > 0 => d.line(t.line),
        _ => d,
    }
}

fn name(t: &Record) -> Name {
    TensorName::parse(&t.name).into()
}

/// Returns the line and the op of a record. Records of a repair have no line.
fn place(t: &Record) -> Message {
    match t.line {
        0 => message!("{}: ", t.op.to_string()),
        line => message!("line {}: {}: ", Line(line), t.op.to_string()),
    }
}

/// Returns a change with a star for each number, which repairs of several layers share.
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

/// Returns one note per pattern, with the number of repairs.
fn of_repairs(repairs: &[Repair]) -> Vec<Diagnostic> {
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    for r in repairs {
        *alike.entry(pattern(&r.diff)).or_insert(0) += 1;
    }
    let mut out = Vec::new();
    for r in repairs {
        let Some(n) = alike.remove(&pattern(&r.diff)) else {
            continue;
        };
        let times = match n {
            1 => Message::default(),
            2 => ", as in 1 more place".into(),
            n => message!(", as in {} more places", n - 1),
        };
        let message = message!("{}ggml accepts this equivalent{}", place(&r.record), times);
        let note =
            Diagnostic::new(&codes::EQUIVALENT, name(&r.record), message).line(r.record.line);
        out.push(note.help(r.diff.trim_end()));
    }
    out
}

fn no_repair_note(repaired: &RepairedGraph) -> Option<Diagnostic> {
    let search = repaired.failed.as_ref()?;
    let record = repaired.inference.refused()?.record?;
    let t = &repaired.records[record];
    let end = match search.stop {
        Stop::Saturated => "the search is complete".into(),
        Stop::Rounds(n) => message!("the search stopped after {} rounds", n),
        Stop::Terms(n) => message!("the search stopped at {} terms", n),
    };
    let message = message!("{}no equivalent found that ggml accepts; {}", place(t), end);
    Some(
        Diagnostic::new(&codes::EQUIVALENT, name(t), message)
            .line(t.line)
            .help("build the layer differently, or use tpc"),
    )
}
