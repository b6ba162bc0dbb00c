//! What a plan's numbers say that its user should know.

use tpc_ir::{Bindings, Op, Place};
use tpc_passes::factors::{cut_reshape, through};
use tpc_passes::plan::{Refusal, refusal};
use tpc_passes::shard::Selection;

use super::{PlanReport, kinds, table, words};
use crate::diag::Diagnostic;
use crate::pipeline::Compiled;

/// The findings of a plan.
pub(super) fn findings(compiled: &Compiled, report: &PlanReport) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for d in report.devices.iter().chain([&report.host]) {
        if let Some(capacity) = d.capacity_bytes
            && d.total_bytes > capacity
        {
            let over = d.total_bytes - capacity;
            let message = format!(
                "needs {} but has {}: {} too many",
                table::bytes(d.total_bytes),
                table::bytes(capacity),
                table::bytes(over)
            );
            out.push(
                Diagnostic::error("TPC0300", &d.name, message)
                    .help("more devices, a smaller --ctx-size, smaller cache types, or another --tensor-split"),
            );
        }
    }
    if compiled.request.devices.len() > 1 {
        whole_weights(compiled, report, &mut out);
        ranges(compiled, &mut out);
    }
    let choice = compiled.choice();
    if !choice.optimal {
        let message = format!("{} sets of splits were priced, not all", choice.priced);
        out.push(Diagnostic::note("TPC0303", "plan", message));
    }
    cuts(compiled, &mut out);
    out
}

/// Ops that cut factors.
fn cuts(compiled: &Compiled, out: &mut Vec<Diagnostic>) {
    let planned = &compiled.planned;
    let (model, factors) = (&planned.graph, &planned.factors);
    for (inst, cut) in &factors.opaque {
        let data = model.inst(*inst);
        let name = data
            .results
            .first()
            .map_or_else(String::new, |&v| words::name(model, v));
        let Some(found) = cut_reshape(model, factors, *inst) else {
            let message = format!("`{}` {cut}", data.op.name());
            out.push(Diagnostic::warning("TPC0304", name, message));
            continue;
        };
        let at = through(&planned.analysis, found.factor);
        let at = at.first().map_or_else(String::new, |t| {
            format!(" ({} of {})", words::place(t), words::name(model, t.value))
        });
        let message = format!(
            "`reshape` of {} to {} cuts a factor of {}{at} at {}, so both stay whole on every device",
            words::name(model, data.operands[0]),
            words::sizes(&model.value(data.results[0]).ty.dims),
            factors.space.size(found.factor),
            found.at,
        );
        let warning = Diagnostic::warning("TPC0304", name, message);
        out.push(match &found.instead {
            Some(dims) => warning.help(format!(
                "reshape to {}: its axes end where the factors do",
                words::sizes(dims)
            )),
            None => warning,
        });
    }
}

/// Matrices that stay whole, one finding per kind of layer tensor.
fn whole_weights(compiled: &Compiled, report: &PlanReport, out: &mut Vec<Diagnostic>) {
    let model = &compiled.planned.graph;
    let planned = &compiled.planned;
    let mut groups: Vec<(String, String, String, u64, u64)> = Vec::new();
    for (_, inst) in model.insts() {
        let Op::Weight(w) = &inst.op else { continue };
        let v = inst.results[0];
        let ty = &model.value(v).ty;
        let bytes = ty.bytes(&Bindings::default()).unwrap_or(0);
        let Place::Group(group) = model.value(v).place else {
            continue;
        };
        let split = planned.analysis.terms[v.index()].iter().any(|t| {
            t.leaves()
                .any(|l| compiled.choice().class_of(group, l).is_some())
        });
        if split || ty.dims[1].is_one() || bytes.saturating_mul(1000) < report.model.bytes {
            continue;
        }
        let mut reasons = Vec::new();
        for (axis, leaves) in planned.analysis.terms[v.index()][0].axes.iter().enumerate() {
            for &leaf in leaves {
                let size = planned.factors.space.size(leaf);
                let why = match refusal(&planned.factors, &planned.analysis, leaf) {
                    Some(Refusal::Whole(i)) => {
                        let op = model.inst(i);
                        let name = op
                            .results
                            .first()
                            .map_or("", |&v| model.value(v).name.as_str());
                        format!("`{}` of {name} needs it whole", op.op.name())
                    }
                    Some(Refusal::Kept(_)) => "an override wants it whole".to_owned(),
                    Some(Refusal::Twice(_)) => "it meets itself in one value".to_owned(),
                    Some(Refusal::Indexed(_)) => "an index counts along more than it".to_owned(),
                    Some(Refusal::Symbolic) => "its size is known only at run time".to_owned(),
                    Some(Refusal::NotStored | Refusal::Granule(_)) | None => {
                        "splitting it costs more than it gains".to_owned()
                    }
                };
                reasons.push(format!("axis {axis} factor {size}: {why}"));
            }
        }
        let suffix = kinds::suffix(&w.tensor);
        let reason = reasons.join("; ");
        // Layers differ in the numbers behind names only.
        let alike = |a: &str, b: &str| {
            let plain = |s: &str| {
                s.split_whitespace()
                    .map(|w| w.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-'))
                    .collect::<String>()
            };
            a == b || plain(a) == plain(b)
        };
        match groups
            .iter_mut()
            .find(|g| g.0 == suffix && alike(&g.2, &reason))
        {
            Some(g) => {
                g.3 += 1;
                g.4 += bytes;
            }
            None => groups.push((suffix, w.tensor.clone(), reason, 1, bytes)),
        }
    }
    for (_, name, reason, count, bytes) in groups {
        let many = if count > 1 {
            format!(" and {} alike", count - 1)
        } else {
            String::new()
        };
        let message = format!(
            "{name}{many} ({}) stays whole on every device: {reason}",
            table::bytes(bytes)
        );
        out.push(Diagnostic::warning("TPC0301", name, message));
    }
}

/// Empty and overlapping ranges, one finding per kind of class.
fn ranges(compiled: &Compiled, out: &mut Vec<Diagnostic>) {
    let shares = compiled.request.shares();
    let mut empty: Vec<(String, String, u64)> = Vec::new();
    let mut shared: Vec<(String, String, u64)> = Vec::new();
    for c in &compiled.sharded.classes {
        let kind = c
            .name
            .split_once(' ')
            .map_or(c.name.as_str(), |(_, k)| k)
            .to_owned();
        let idle: Vec<&str> = (0..c.ranges.len())
            .filter(|&r| c.ranges[r].len == 0 && shares[r] > 0.0)
            .map(|r| compiled.request.devices[r].as_str())
            .collect();
        let count = |list: &mut Vec<(String, String, u64)>, text: String| match list
            .iter_mut()
            .find(|(k, t, _)| *k == kind && *t == text)
        {
            Some(x) => x.2 += 1,
            None => list.push((kind.clone(), text, 1)),
        };
        if !idle.is_empty() {
            count(
                &mut empty,
                format!("{} of {}: nothing for {}", kind, c.size, idle.join(", ")),
            );
        }
    }
    let mut seen = Vec::new();
    for (_, v) in compiled.sharded.values() {
        let mut refs = Vec::new();
        v.sharding
            .axes
            .iter()
            .flatten()
            .for_each(|t| t.classes(&mut refs));
        for r in refs.into_iter().filter(|r| r.div > 1) {
            let c = compiled.sharded.class(r.class);
            if c.overlaps(r.div) && !seen.contains(&r) {
                seen.push(r);
                let kv = c.size / r.div;
                let held: u64 = (0..c.ranges.len())
                    .filter_map(|d| c.range(d, r.div))
                    .map(|x| x.len)
                    .sum();
                let text = format!(
                    "{kv} KV heads are shared: {held} copies over {} devices",
                    c.ranges.len()
                );
                match shared.iter_mut().find(|(_, t, _)| *t == text) {
                    Some(x) => x.2 += 1,
                    None => shared.push((String::new(), text, 1)),
                }
            }
        }
    }
    for (_, text, n) in empty {
        out.push(
            Diagnostic::warning("TPC0302", "", format!("{text} ({n} times)"))
                .help("fewer devices, or other proportions in --tensor-split"),
        );
    }
    for (_, text, n) in shared {
        out.push(Diagnostic::note(
            "TPC0306",
            "",
            format!("{text} ({n} layers)"),
        ));
    }
}
