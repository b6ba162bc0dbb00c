//! The report as text: the verdict, the op with its operands, and the other differences.

use std::fmt::Write;

use crate::bisect::LISTED;
use tpc_numeric::bisect::{Bisection, FirstDifference, InputOf, OpOf, Relation, Verdict};

pub(super) fn report(found: &Bisection, paths: [&str; 2], verbose: bool) -> String {
    let mut out = match (&found.first, found.verdict()) {
        (Some(first), _) => context(first, paths),
        (None, Verdict::Unknown) => {
            "no difference found, but tpc could not compute some results\n".to_owned()
        }
        (None, _) => "no difference: all results agree\n".to_owned(),
    };
    let _ = writeln!(out, "\n{}", counts(found));
    if !found.stand_ins.is_empty() {
        let names = found.stand_ins.join(", ");
        let _ = writeln!(
            out,
            "unknown ops: {names}; a linear function of their operands ran instead"
        );
    }
    structure(found, verbose, &mut out);
    out
}

/// Returns the verdict without the paths.
pub(super) fn verdict(first: &FirstDifference) -> String {
    let error = match (first.nmse, first.max_abs) {
        (Some(nmse), Some(max)) => format!("NMSE {nmse:.1e}, max abs {max:.1e}"),
        _ => "values unknown".to_owned(),
    };
    let name = |op: &Option<OpOf>| op.as_ref().map_or_else(String::new, label);
    match first.relation {
        Relation::Changed => format!("the first op that differs is {} ({error})", name(&first.b)),
        Relation::Missing => format!("{} is missing ({error})", name(&first.a)),
        Relation::Added => format!("{} is added ({error})", name(&first.b)),
    }
}

pub(in crate::bisect) fn label(op: &OpOf) -> String {
    match op.op.as_str() {
        "NONE" => format!("`{}`", op.tensor),
        kind => format!("`{}`, {kind}", op.tensor),
    }
}

fn context(first: &FirstDifference, paths: [&str; 2]) -> String {
    let mut out = format!("{}\n\n", verdict(first));
    for (op, path) in [&first.a, &first.b].into_iter().zip(paths) {
        let _ = match op {
            Some(op) => writeln!(out, "  {path}:{}: {}", op.line, described(op)),
            None => writeln!(out, "  {path}: no such op"),
        };
    }
    for c in &first.changes {
        let _ = writeln!(out, "  {}: {} → {}", c.what, c.a, c.b);
    }
    if let Some(reader) = &first.reader {
        let _ = writeln!(
            out,
            "  the first op of both graphs with another value: {} at line {}",
            label(reader),
            reader.line
        );
    }
    if !first.inputs.is_empty() {
        out.push_str("\n  operands\n");
    }
    for input in &first.inputs {
        let _ = writeln!(out, "    {}", operand(input));
    }
    out
}

pub(in crate::bisect) fn described(op: &OpOf) -> String {
    let [a, b, c, d] = op.ne;
    let parameters = op.parameters.iter().map(|(name, x)| format!("{name} {x}"));
    let parameters: Vec<String> = parameters.collect();
    let sizes = format!("{} {} [{a}, {b}, {c}, {d}]", label(op), op.dtype);
    match parameters.is_empty() {
        true => sizes,
        false => format!("{sizes}, {}", parameters.join(", ")),
    }
}

fn operand(input: &InputOf) -> String {
    let judged = match (input.agrees, input.nmse) {
        (Some(true), Some(0.0)) => "equal".to_owned(),
        (Some(true), _) => "agrees".to_owned(),
        (Some(false), Some(nmse)) => format!("differs (NMSE {nmse:.1e})"),
        (Some(false), None) => "differs".to_owned(),
        (None, _) => "not compared".to_owned(),
    };
    let names = match (&input.a, &input.b) {
        (Some(a), Some(b)) if a.tensor == b.tensor && a.op == b.op => label(b),
        (Some(a), Some(b)) => format!("{} → {}", label(a), label(b)),
        (Some(one), None) | (None, Some(one)) => label(one),
        (None, None) => String::new(),
    };
    format!("{}: {names}: {judged}", input.source)
}

fn counts(found: &Bisection) -> String {
    let c = found.counts;
    let mut parts = vec![format!("{} ops are equal", c.equal)];
    for (n, what) in [
        (c.agree, "differ in structure, but agree in value"),
        (c.differ, "differ in value"),
        (c.unknown, "differ in structure and were not computed"),
        (c.only_a, "are only in the first graph"),
        (c.only_b, "are only in the second graph"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    let results = match (c.results_differ, found.results_nmse) {
        (0, _) => format!(
            "{} of {} results agree",
            c.results - c.results_unknown,
            c.results
        ),
        (n, Some(nmse)) => format!(
            "{n} of {} results differ (NMSE up to {nmse:.1e})",
            c.results
        ),
        (n, None) => format!("{n} of {} results differ", c.results),
    };
    let results = match c.results_unknown {
        0 => results,
        n => format!("{results}; {n} were not computed"),
    };
    let left_out = match c.left_out {
        0 => String::new(),
        n => format!("; {n} ops did not run, because they are too large"),
    };
    format!("{}; {results}{left_out}", parts.join(", "))
}

fn structure(found: &Bisection, verbose: bool, out: &mut String) {
    if found.structure.is_empty() {
        return;
    }
    out.push_str("\nops with another structure\n");
    let listed = match verbose {
        true => usize::MAX,
        false => LISTED,
    };
    for s in found.structure.iter().take(listed) {
        let changes: Vec<String> = s
            .changes
            .iter()
            .map(|c| format!("{}: {} → {}", c.what, c.a, c.b))
            .collect();
        let values = match s.agrees {
            Some(true) => " (values agree)",
            Some(false) => " (values differ)",
            None => "",
        };
        let _ = match (&s.a, &s.b) {
            (_, Some(b)) if !changes.is_empty() => {
                writeln!(
                    out,
                    "  line {}: {}: {}{values}",
                    b.line,
                    label(b),
                    changes.join("; ")
                )
            }
            (None, Some(b)) => writeln!(
                out,
                "  line {}: {}: only in the second graph",
                b.line,
                label(b)
            ),
            (Some(a), _) => writeln!(
                out,
                "  line {}: {}: only in the first graph",
                a.line,
                label(a)
            ),
            (None, None) => Ok(()),
        };
    }
    if found.structure.len() > listed {
        let _ = writeln!(
            out,
            "  and {} more; -v lists all",
            found.structure.len() - listed
        );
    }
}
