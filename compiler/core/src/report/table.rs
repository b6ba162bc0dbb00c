//! The plan as tables that fit a terminal.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::kinds::{layer_kinds, shape, split};
use super::plan::{DeviceReport, DraftsReport, PlanReport, Ranges};
use super::{rewriting, why};
use crate::format::{bytes, count, equal, lens, span};

/// How much the tables tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The tensors of each kind of layer.
    Brief,
    /// Every tensor with its ranges, and how rewriting went.
    Full,
}

/// The report for a terminal of `width` columns.
pub fn render(report: &PlanReport, width: u16, detail: Detail) -> String {
    let mut out = head(report);
    out.push_str(&places(report, width));
    out.push('\n');
    out.push_str(&match detail {
        Detail::Brief => kinds(report, width),
        Detail::Full => every_tensor(report, width),
    });
    out.push_str(&transfers(report));
    let e = &report.estimate;
    let _ = writeln!(
        out,
        "estimate: {:.2} ms per token, {:.1} ms per prompt batch; {:.2} ms per token on one device",
        e.decode_us / 1e3,
        e.prefill_us / 1e3,
        e.baseline_single_us / 1e3
    );
    out.push_str(&mirrored(report));
    out.push_str(&search(report));
    if detail == Detail::Full {
        out.push_str(&rewriting::summary(&report.rewriting));
    }
    out.push_str(&why::render(&report.why, width));
    out
}

/// The model, and what it is planned for.
fn head(report: &PlanReport) -> String {
    let m = &report.model;
    let drafts = match report.drafts.as_ref().map(|d| d.blocks) {
        None => String::new(),
        Some(1) => " and 1 block that drafts".to_owned(),
        Some(n) => format!(" and {n} blocks that draft"),
    };
    format!(
        "{}: {}, {} layers{drafts}, {} parameters, {}\nsplit mode {}, {} devices, context {}\n\n",
        m.name,
        m.arch,
        m.n_layer,
        count(m.n_params),
        bytes(m.bytes),
        report.split_mode,
        report.devices.len(),
        m.n_ctx
    )
}

/// The bytes of every device and of the host.
fn places(report: &PlanReport, width: u16) -> String {
    let header = [
        "device", "weights", "kv cache", "state", "compute", "total", "memory",
    ];
    let mut t = table(width, &header);
    for d in report.devices.iter().chain([&report.host]) {
        t.add_row(place_row(d));
    }
    for column in t.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    trimmed(&t)
}

fn place_row(d: &DeviceReport) -> Vec<String> {
    let capacity = d.capacity_bytes.map(bytes);
    vec![
        d.name.clone(),
        bytes(d.weights_bytes),
        bytes(d.kv_bytes),
        bytes(d.state_bytes),
        bytes(d.compute_bytes),
        bytes(d.total_bytes),
        capacity.unwrap_or_else(|| "not given".to_owned()),
    ]
}

/// Every tensor with its ranges.
fn every_tensor(report: &PlanReport, width: u16) -> String {
    let header = [
        "tensor",
        "type",
        "shape",
        "split",
        "start+length per device",
    ];
    let mut t = table(width, &header);
    for x in &report.tensors {
        let ranges: Vec<String> = match &x.sharding.ranges {
            Ranges::Single(r) => r.iter().map(range).collect(),
            Ranges::Segments(s) => s.iter().map(|s| segments(s)).collect(),
        };
        t.add_row(vec![
            x.name.clone(),
            x.dtype.to_owned(),
            shape(&x.ne),
            split(x),
            ranges.join(" "),
        ]);
    }
    trimmed(&t)
}

fn range([start, len]: &[u64; 2]) -> String {
    format!("{start}+{len}")
}

/// The first few segments of a device, and how many more there are; JSON has them all.
fn segments(all: &[[u64; 2]]) -> String {
    const SHOWN: usize = 6;
    let mut parts: Vec<String> = all.iter().take(SHOWN).map(range).collect();
    if all.len() > SHOWN {
        parts.push(format!("{} more", all.len() - SHOWN));
    }
    parts.join(",")
}

/// The tensors of each kind of layer.
fn kinds(report: &PlanReport, width: u16) -> String {
    let header = ["layers", "tensor", "type", "shape", "split", "per device"];
    let mut t = table(width, &header);
    for kind in layer_kinds(report) {
        let mut name = match kind.layers.as_slice() {
            [] => "outside".to_owned(),
            l => format!("{} ({}×)", span(l), l.len()),
        };
        for r in &kind.rows {
            t.add_row(vec![
                std::mem::take(&mut name),
                r.name.clone(),
                r.dtype.to_owned(),
                r.shape.clone(),
                r.split.clone(),
                lens(&r.lens),
            ]);
        }
    }
    trimmed(&t)
}

/// The transfers per batch, and the part of the drafts in them.
fn transfers(report: &PlanReport) -> String {
    let (d, p) = (&report.collectives.decode, &report.collectives.prefill);
    let mut out = format!(
        "\nper token: {} all-reduces, {} all-gathers, {} copies, {}; per prompt batch: {}\n",
        d.all_reduce,
        d.all_gather,
        d.copies,
        bytes(d.bytes),
        bytes(p.bytes)
    );
    if let Some(d) = &report.drafts {
        out.push_str(&drafts(d));
    }
    out
}

/// The bytes and transfers that drafts add, in a line.
fn drafts(drafts: &DraftsReport) -> String {
    let d = &drafts.collectives.decode;
    let plural = if drafts.blocks == 1 { "" } else { "s" };
    let places = drafts.devices.iter().chain([&drafts.host]);
    let (mut weights, mut kv) = (Vec::new(), Vec::new());
    for p in places.filter(|p| p.weights_bytes + p.kv_bytes > 0) {
        weights.push(bytes(p.weights_bytes));
        kv.push(bytes(p.kv_bytes));
    }
    format!(
        "of these for {} drafted token{plural}: weights {}; kv cache {}; per token {} all-reduces, {} copies, {}\n",
        drafts.blocks,
        equal(&weights),
        equal(&kv),
        d.all_reduce,
        d.copies,
        bytes(d.bytes)
    )
}

/// The bytes that devices hold more than once, by cause.
fn mirrored(report: &PlanReport) -> String {
    let share = report.mirrored_bytes as f64 / (report.model.bytes as f64).max(1.0) * 100.0;
    let mut out = format!(
        "held more than once: {} ({share:.2} % of the model)",
        bytes(report.mirrored_bytes)
    );
    let m = &report.mirrored;
    for (cause, n) in [
        ("whole tensors", m.whole_bytes),
        ("shared edge blocks", m.edge_block_bytes),
        ("shared KV heads", m.shared_head_bytes),
    ] {
        if n > 0 {
            let _ = write!(out, ", {cause} {}", bytes(n));
        }
    }
    out.push('\n');
    out
}

/// The search, and how good its choice is by the cost model.
fn search(report: &PlanReport) -> String {
    let s = &report.search;
    let bound = if s.optimal {
        "cheapest by the cost model".to_owned()
    } else {
        format!(
            "at most {:.0} % above the cheapest by the cost model",
            (100.0 * s.at_most_above).ceil()
        )
    };
    format!(
        "search: {} distinct parts, {} sets of splits priced, {bound}\n",
        s.distinct, s.priced
    )
}

fn table(width: u16, header: &[&str]) -> Table {
    let mut t = Table::new();
    t.load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    t.set_header(header);
    t
}

fn trimmed(t: &Table) -> String {
    let mut out = String::new();
    for line in t.to_string().lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
