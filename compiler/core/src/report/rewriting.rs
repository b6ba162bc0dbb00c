use std::fmt::Write;

use tpc_passes::rewrite::{Counts, Report, SectionReport};

use super::plan::RewritingReport;
use crate::format::span;
use crate::pipeline::CompiledModel;

pub(super) fn rewriting(report: &Report) -> RewritingReport {
    let (before, after) = (report.before(), report.after());
    RewritingReport {
        collectives_before: before.collectives(),
        collectives_after: after.collectives(),
        copies_before: before.copies,
        copies_after: after.copies,
        saturated: report.is_saturated(),
        rules: report.matches(),
    }
}

pub(super) fn summary(report: &RewritingReport) -> String {
    let rules: Vec<String> = (report.rules.iter())
        .map(|(rule, n)| format!("{rule} {n}×"))
        .collect();
    format!(
        "rewriting: {} -> {} collectives, {} -> {} copies; {}{}\n",
        report.collectives_before,
        report.collectives_after,
        report.copies_before,
        report.copies_after,
        if report.saturated {
            "saturated"
        } else {
            "stopped at a limit"
        },
        if rules.is_empty() {
            String::new()
        } else {
            format!(": {}", rules.join(", "))
        }
    )
}

/// Formats `dump --stage rewrite`: the rewriting of each distinct section as comments, then the graph.
pub fn render_rewriting(compiled: &CompiledModel) -> String {
    let report = &compiled.rewriting;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "; transfers: {} -> {}",
        transfers(report.before()),
        transfers(report.after())
    );
    for section in &report.sections {
        let _ = writeln!(out, "; {}", layers(section));
        let _ = writeln!(
            out,
            ";   {} after {} rounds: {} terms in {} classes; {} -> {}",
            section.stop,
            section.iterations,
            section.nodes,
            section.classes,
            transfers(section.before),
            transfers(section.after)
        );
        for (rule, n) in &section.matches {
            let _ = writeln!(out, ";   {rule}: {n}");
        }
    }
    out.push_str(&compiled.sharded.to_string());
    out
}

fn layers(section: &SectionReport) -> String {
    let numbers: Vec<u32> = section.layers.iter().flatten().copied().collect();
    if numbers.is_empty() {
        return "before the first layer".to_owned();
    }
    format!("layers {}", span(&numbers))
}

fn transfers(counts: Counts) -> String {
    let all = [
        ("all-reduces", counts.all_reduce),
        ("all-gathers", counts.all_gather),
        ("reduce-scatters", counts.reduce_scatter),
        ("all-to-alls", counts.all_to_all),
        ("copies", counts.copies),
    ];
    let some: Vec<String> = all
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(what, n)| format!("{n} {what}"))
        .collect();
    if some.is_empty() {
        "none".to_owned()
    } else {
        some.join(", ")
    }
}
