//! The report as text: the first op that differs, its operands, and the errors of each kind of op.

use std::fmt::Write;

use crate::bisect::LISTED;
use crate::bisect::graphs::{described, label};
use tpc_numeric::bisect::{
    EngineComparison, KindErrors, OpDifference, Unrun, UnrunReason, Verdict,
};

pub(super) fn report(
    found: &EngineComparison,
    path: &str,
    engines: [&str; 2],
    verbose: bool,
) -> String {
    let mut out = match found.differences.first() {
        Some(first) => context(first, path, engines),
        None if found.verdict() == Verdict::Unknown => {
            "no difference found, but some ops did not run\n".to_owned()
        }
        None => "no difference: all ops agree\n".to_owned(),
    };
    let _ = writeln!(out, "\nengines: {}, {}\n", engines[0], engines[1]);
    kinds(&found.kinds, &mut out);
    let others = found.differences.get(1..).unwrap_or_default();
    if !others.is_empty() {
        out.push_str("\nother ops that differ\n");
    }
    let listed = if verbose { usize::MAX } else { LISTED };
    for d in others.iter().take(listed) {
        let _ = writeln!(
            out,
            "  line {}: {} ({})",
            d.op.line,
            described(&d.op),
            result(d, engines)
        );
    }
    if others.len() > listed {
        let _ = writeln!(out, "  and {} more; -v lists all", others.len() - listed);
    }
    out
}

/// Returns the verdict without the path.
pub(super) fn verdict(d: &OpDifference, engines: [&str; 2]) -> String {
    let (op, result) = (label(&d.op), result(d, engines));
    format!("the first op that differs is {op} ({result})")
}

fn result(d: &OpDifference, engines: [&str; 2]) -> String {
    match (d.nmse, d.max_abs, d.failed) {
        (Some(nmse), Some(max), _) => format!(
            "NMSE {nmse:.1e}, max abs {max:.1e}, tolerance {:.0e}",
            d.tolerance
        ),
        (_, _, Some(side)) => {
            let why = d.why.as_deref().unwrap_or_default();
            format!("{} failed: {why}", engines[side.min(1)])
        }
        _ => "not compared".to_owned(),
    }
}

fn context(first: &OpDifference, path: &str, engines: [&str; 2]) -> String {
    let mut out = format!("{}\n\n", verdict(first, engines));
    let _ = writeln!(out, "  {path}:{}: {}", first.op.line, described(&first.op));
    if first.ops > 1 {
        let _ = writeln!(
            out,
            "  the graph has {} ops with the same parameters, types and sizes",
            first.ops
        );
    }
    if !first.operands.is_empty() {
        out.push_str("\n  operands (random numbers, the same for both engines)\n");
    }
    for (i, operand) in first.operands.iter().enumerate() {
        let _ = writeln!(out, "    {i}: {}", described(operand));
    }
    out
}

fn kinds(kinds: &[KindErrors], out: &mut String) {
    let width = kinds.iter().map(|k| k.op.len()).max().unwrap_or(0).max(2);
    let _ = writeln!(
        out,
        "{:width$}  {:>5}  {:>8}  {:>12}  {:>9}",
        "op", "ops", "distinct", "largest NMSE", "tolerance"
    );
    for k in kinds {
        let nmse = k
            .nmse
            .map_or_else(|| "-".to_owned(), |n| format!("{n:.1e}"));
        let mut line = format!(
            "{:width$}  {:>5}  {:>8}  {nmse:>12}  {:>9}",
            k.op,
            k.ops,
            k.distinct,
            format!("{:.0e}", k.tolerance)
        );
        if k.differ > 0 {
            let _ = write!(line, "  {} differ", k.differ);
        }
        if let Some(first) = k.unrun.first() {
            let _ = write!(line, "  {} not run: {}", k.unrun.len(), why(first));
        }
        let _ = writeln!(out, "{line}");
    }
}

fn why(unrun: &Unrun) -> &str {
    match (&unrun.why, unrun.reason) {
        (Some(why), _) => why,
        (None, UnrunReason::TooLarge) => "too large",
        (None, UnrunReason::EngineStopped) => "an engine had stopped",
        (None, UnrunReason::NoOperands) => "no operands",
        (None, UnrunReason::Unsupported) => "unsupported",
    }
}
