//! Formats a plan as tables for a terminal.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};

use super::answer::{answer, percent};
use super::columns::{Align, Columns};
use super::kinds::{layer_kinds, shape, split};
use super::plan::{CandidateReport, DeviceReport, DraftsReport, PlanReport, PoolReport, Ranges};
use super::{copies, rewriting, step, why};
use crate::beside::Part;
use crate::format::{bytes, equal, lens, printable, span, speed, wrapped};

/// The level of detail of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Answer, memory, transfers and candidates.
    Brief,
    /// The brief tables, and tensors by kind of layer, search and rewriting.
    Full,
    /// The full tables, and every tensor with its ranges.
    EveryTensor,
}

/// Formats the report in lines of at most `width` columns.
pub fn render(report: &PlanReport, width: u16, detail: Detail) -> String {
    let columns = usize::from(width);
    let mut out = answer(report, columns);
    out.push('\n');
    out.push_str(&places(report, detail).render(columns));
    let beside = extra_files(report);
    if !beside.is_empty() {
        out.push_str(&wrapped(&beside, columns, 2));
    }
    out.push_str(&wrapped(&transfers(report), columns, 2));
    if !report.considered.is_empty() || !report.left_out.is_empty() {
        out.push('\n');
        out.push_str(&candidates(report).render(columns));
    }
    if detail >= Detail::Full {
        out.push('\n');
        out.push_str(&match detail {
            Detail::EveryTensor => every_tensor(report, width),
            Detail::Brief | Detail::Full => kinds(report).render(columns),
        });
        let figures = [
            times(report),
            mirrored_bytes(report),
            search(report),
            report.bits.details(),
            rewriting::summary(&report.rewriting),
        ];
        out.push_str(&wrapped(&format!("\n{}", figures.concat()), columns, 2));
        if let Some(step) = &report.step {
            out.push_str(&step::render(step, columns));
        }
    }
    out.push_str(&why::render(&report.why, width));
    out
}

/// Maximum number of groups of places to list. Otherwise only the fullest and the emptiest are listed.
const PLACES: usize = 4;

struct Alike {
    first: usize,
    count: usize,
    total: u64,
    cells: Vec<String>,
}

fn group_equal_devices(report: &PlanReport) -> Vec<Alike> {
    let mut out: Vec<(String, Alike)> = Vec::new();
    for (i, d) in report.devices.iter().enumerate() {
        let profile = report.machine.devices.get(i).map(|p| p.name.clone());
        let profile = profile.unwrap_or_default();
        let cells = place_cells(d, report.usable_bytes(i));
        match out
            .iter_mut()
            .find(|(p, a)| *p == profile && a.cells == cells)
        {
            Some((_, a)) => a.count += 1,
            None => out.push((
                profile,
                Alike {
                    first: i,
                    count: 1,
                    total: d.total_bytes,
                    cells,
                },
            )),
        }
    }
    out.into_iter().map(|(_, a)| a).collect()
}

fn places(report: &PlanReport, detail: Detail) -> Columns {
    use Align::{Left, Right};
    let mut t = Columns::new(&[
        ("place", Left),
        ("weights", Right),
        ("kv cache", Right),
        ("state", Right),
        ("layout", Right),
        ("compute", Right),
        ("other files", Right),
        ("total", Right),
        ("usable", Right),
        ("used", Right),
    ]);
    let groups = group_equal_devices(report);
    let mut shown: Vec<&Alike> = groups.iter().collect();
    if detail == Detail::Brief && groups.len() > PLACES {
        let most = groups
            .iter()
            .max_by_key(|a| (a.total, std::cmp::Reverse(a.first)));
        let least = groups.iter().min_by_key(|a| (a.total, a.first));
        shown = most.into_iter().chain(least).collect();
    }
    let listed: usize = shown.iter().map(|a| a.count).sum();
    for a in shown {
        let name = match a.count {
            1 => report.devices[a.first].name.clone(),
            n => format!("{n} × {}", kind_of(report, a.first)),
        };
        t.row([vec![printable(&name)], a.cells.clone()].concat());
    }
    let rest = report.devices.len() - listed;
    if rest > 0 {
        t.heading(format!(
            " and {rest} devices between these two; -v lists all"
        ));
    }
    let host = place_cells(&report.host, report.usable_host_bytes());
    t.row([vec!["host".to_owned()], host].concat());
    if let Some(pool) = &report.pool {
        t.row([vec!["together".to_owned()], pool_cells(pool)].concat());
    }
    t.without_columns(&["kv cache", "state", "other files"], |cell| {
        cell == "0 B" || cell.is_empty()
    });
    t.without_columns(&["layout", "usable", "used"], |cell| cell == UNKNOWN);
    t
}

/// Shown for unknown or negligible numbers.
const UNKNOWN: &str = "–";

fn kind_of(report: &PlanReport, device: usize) -> String {
    let profile = report.machine.devices.get(device);
    let name = profile
        .filter(|_| !report.machine.assumed || report.machine.of_processors())
        .map(|p| p.name.clone());
    name.unwrap_or_else(|| "device".to_owned())
}

/// Formats the layout bytes if they exceed a thousandth of the total. Gaps between buffers are smaller.
fn layout(d: &DeviceReport) -> String {
    let size = d.layout_bytes.unsigned_abs();
    if size <= d.total_bytes / 1000 {
        return UNKNOWN.to_owned();
    }
    let sign = if d.layout_bytes < 0 { "−" } else { "" };
    format!("{sign}{}", bytes(size))
}

fn place_cells(d: &DeviceReport, usable: Option<u64>) -> Vec<String> {
    let share = usable.map(|u| d.total_bytes as f64 / (u as f64).max(1.0));
    vec![
        bytes(d.weights_bytes),
        bytes(d.kv_bytes),
        bytes(d.state_bytes),
        layout(d),
        bytes(d.compute_bytes),
        bytes(d.beside_bytes),
        bytes(d.total_bytes),
        usable.map_or_else(|| UNKNOWN.to_owned(), bytes),
        share.map_or_else(|| UNKNOWN.to_owned(), |s| format!("{} %", percent(s))),
    ]
}

fn pool_cells(pool: &PoolReport) -> Vec<String> {
    let usable = pool.usable_bytes();
    let share = pool.total_bytes as f64 / (usable as f64).max(1.0);
    let mut out = vec![String::new(); 6];
    out.extend([
        bytes(pool.total_bytes),
        bytes(usable),
        format!("{} %", percent(share)),
    ]);
    out
}

fn extra_files(report: &PlanReport) -> String {
    let mut out = String::new();
    for b in &report.beside {
        let place = |name: &str, part: &Part| {
            let kinds = [
                (part.weights, "weights"),
                (part.kv, "kv cache"),
                (part.compute, "compute"),
            ];
            let some = kinds.iter().filter(|(n, _)| *n > 0);
            let some: Vec<String> = some
                .map(|(n, what)| format!("{what} {}", bytes(*n)))
                .collect();
            (!some.is_empty()).then(|| format!("{} on {}", some.join(", "), printable(name)))
        };
        let names = report.devices.iter().map(|d| d.name.as_str());
        let devices = names.zip(&b.devices).filter_map(|(n, p)| place(n, p));
        let all: Vec<String> = devices.chain(place("the host", &b.host)).collect();
        let _ = writeln!(out, "{} {}: {}", b.what, printable(&b.file), all.join("; "));
    }
    if let Some(pool) = &report.pool {
        let names: Vec<String> = (pool.devices.iter())
            .filter_map(|&d| report.devices.get(d))
            .map(|d| printable(&d.name))
            .collect();
        let _ = writeln!(
            out,
            "{} and the host share one memory: moving weights between them does not free memory",
            names.join(", ")
        );
    }
    out
}

/// Formats the compared strategies: the chosen strategy, then fitting ones by speed.
fn candidates(report: &PlanReport) -> Columns {
    use Align::{Left, Right};
    let mut t = Columns::new(&[
        ("strategy", Left),
        ("tokens/s", Right),
        ("prompt t/s", Right),
        ("fullest", Right),
        ("fits", Left),
        ("", Left),
    ]);
    let mut all: Vec<_> = report.considered.iter().collect();
    let known = report.fits().is_some();
    all.sort_by(|a, b| {
        let rank = |c: &CandidateReport| (!c.chosen, !c.fits);
        rank(a)
            .cmp(&rank(b))
            .then(b.decode_tps.total_cmp(&a.decode_tps))
    });
    for c in all {
        let mark = match (c.chosen, c.within_error && c.fits) {
            (true, _) => "chosen",
            (false, true) => "within the model's error",
            (false, false) => "",
        };
        t.row(vec![
            c.name.clone(),
            speed(c.decode_tps),
            speed(c.prompt_tps),
            bytes(c.fullest_bytes),
            match (c.fits, known) {
                (true, true) => "yes".to_owned(),
                (true, false) => UNKNOWN.to_owned(),
                (false, _) => "no".to_owned(),
            },
            mark.to_owned(),
        ]);
    }
    for l in &report.left_out {
        let mark = format!("refused by {} ({})", l.engine, l.code);
        let unknown = || UNKNOWN.to_owned();
        t.row(vec![
            l.name.clone(),
            unknown(),
            unknown(),
            unknown(),
            unknown(),
            mark,
        ]);
    }
    t.without_columns(&["fits"], |cell| cell == UNKNOWN);
    t
}

fn times(report: &PlanReport) -> String {
    let e = &report.estimate;
    let b = &e.breakdown;
    let parts = [
        ("weights", b.weights_us),
        ("attention", b.attention_us),
        ("other ops", b.other_us),
        ("launches", b.launches_us),
        ("collectives", b.collectives_us),
        ("host", b.host_us),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, us)| *us > 0.0)
        .map(|(what, us)| format!("{what} {:.2} ms", us / 1e3))
        .collect();
    let parts = match parts.as_slice() {
        [] => String::new(),
        some => format!(" ({})", some.join(", ")),
    };
    format!(
        "estimate: {:.2} ms per token{parts}, {:.1} ms per prompt batch; {:.2} ms per token on one device\n",
        e.decode_us / 1e3,
        e.prefill_us / 1e3,
        e.baseline_single_us / 1e3
    )
}

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
            printable(&x.name),
            x.dtype.to_owned(),
            shape(&x.ne),
            split(x),
            ranges.join(" "),
        ]);
    }
    trim(&t)
}

fn range([start, len]: &[u64; 2]) -> String {
    format!("{start}+{len}")
}

/// Formats the first segments of a device and the number of others. JSON has all segments.
fn segments(all: &[[u64; 2]]) -> String {
    const SHOWN: usize = 6;
    let mut parts: Vec<String> = all.iter().take(SHOWN).map(range).collect();
    if all.len() > SHOWN {
        parts.push(format!("{} more", all.len() - SHOWN));
    }
    parts.join(",")
}

fn kinds(report: &PlanReport) -> Columns {
    use Align::Left;
    let mut t = Columns::new(&[
        ("tensor", Left),
        ("type", Left),
        ("shape", Left),
        ("split", Left),
        ("per device", Left),
    ]);
    for kind in layer_kinds(report) {
        t.heading(match kind.layers.as_slice() {
            [] => "outside layers:".to_owned(),
            [one] => format!("layer {one}:"),
            l => format!("layers {} ({}×):", span(l), l.len()),
        });
        for r in &kind.rows {
            t.row(vec![
                printable(&r.name),
                r.dtypes.join("/"),
                r.shape.clone(),
                r.split.clone(),
                lens(&r.lens),
            ]);
        }
    }
    t
}

fn counted(n: u64, plural: &str) -> &str {
    match (n, plural) {
        (1, "copies") => "copy",
        (1, _) => plural.strip_suffix('s').unwrap_or(plural),
        _ => plural,
    }
}

fn transfers(report: &PlanReport) -> String {
    let (d, p) = (&report.collectives.decode, &report.collectives.prefill);
    let kinds = [
        (d.all_reduce, "all-reduces"),
        (d.all_gather, "all-gathers"),
        (d.reduce_scatter, "reduce-scatters"),
        (d.all_to_all, "all-to-alls"),
        (d.copies, "copies"),
    ];
    let kinds: String = (kinds.iter())
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {}, ", counted(*n, what)))
        .collect();
    let mut out = format!(
        "per token: {kinds}{}; per prompt batch: {}\n",
        bytes(d.bytes),
        bytes(p.bytes)
    );
    if let Some(cluster) = &report.cluster {
        out.push_str(&cluster.lines());
    }
    if let Some(caches) = &report.caches {
        out.push_str(&caches.line());
    }
    if let Some(d) = &report.drafts {
        out.push_str(&drafts(d));
    }
    out
}

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
        "included for {} drafted token{plural}: weights {}; kv cache {}; per token {} all-reduces, {} copies, {}\n",
        drafts.blocks,
        equal(&weights),
        equal(&kv),
        d.all_reduce,
        d.copies,
        bytes(d.bytes)
    )
}

fn mirrored_bytes(report: &PlanReport) -> String {
    let share = report.mirrored_bytes as f64 / (report.model.bytes as f64).max(1.0) * 100.0;
    let mut out = format!(
        "stored more than once: {} ({share:.2} % of the model)",
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
    out + &copies::lines(report)
}

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
    t.load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    t.set_header(header);
    t
}

fn trim(t: &Table) -> String {
    let mut out = String::new();
    for line in t.to_string().lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
