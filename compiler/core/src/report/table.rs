//! The plan as tables that fit a terminal.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::kinds::{layer_kinds, shape, split};
use super::{DeviceReport, DraftsReport, PlanReport};

/// `4.58 GiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut x = n as f64;
    let mut unit = "";
    for u in UNITS {
        x /= 1024.0;
        unit = u;
        if x < 1024.0 {
            break;
        }
    }
    if x < 10.0 {
        format!("{x:.2} {unit}")
    } else if x < 100.0 {
        format!("{x:.1} {unit}")
    } else {
        format!("{x:.0} {unit}")
    }
}

fn count(n: u64) -> String {
    match n {
        1_000_000_000.. => format!("{:.2} B", n as f64 / 1e9),
        1_000_000.. => format!("{:.1} M", n as f64 / 1e6),
        _ => n.to_string(),
    }
}

/// `0-31`, `0, 2, 5-7`.
pub(super) fn span(layers: &[u32]) -> String {
    let mut out = String::new();
    let mut i = 0;
    while i < layers.len() {
        let mut j = i;
        while j + 1 < layers.len() && layers[j + 1] == layers[j] + 1 {
            j += 1;
        }
        if !out.is_empty() {
            out.push_str(", ");
        }
        let _ = if i == j {
            write!(out, "{}", layers[i])
        } else {
            write!(out, "{}-{}", layers[i], layers[j])
        };
        i = j + 1;
    }
    out
}

/// `8 × 512`, `640 · 768 · 640`; for many devices `352 to 384`.
pub(super) fn lens(lens: &[u64]) -> String {
    match lens {
        [] => String::new(),
        [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|l| l == first) => {
            format!("{} × {first}", lens.len())
        }
        _ if lens.len() > 4 => {
            let (min, max) = (
                lens.iter().min().unwrap_or(&0),
                lens.iter().max().unwrap_or(&0),
            );
            format!("{min} to {max}")
        }
        _ => lens
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" · "),
    }
}

/// The first few segments of a device, and how many more there are; JSON has them all.
fn segments(all: &[[u64; 2]], show: impl Fn(&[u64; 2]) -> String) -> String {
    const SHOWN: usize = 6;
    let mut parts: Vec<String> = all.iter().take(SHOWN).map(show).collect();
    if all.len() > SHOWN {
        parts.push(format!("{} more", all.len() - SHOWN));
    }
    parts.join(",")
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

fn device_row(d: &DeviceReport) -> Vec<String> {
    vec![
        d.name.clone(),
        bytes(d.weights_bytes),
        bytes(d.kv_bytes),
        bytes(d.state_bytes),
        bytes(d.compute_bytes),
        bytes(d.total_bytes),
        d.capacity_bytes
            .map_or_else(|| "not given".to_owned(), bytes),
    ]
}

/// What drafts add, in a line.
fn drafted(drafts: &DraftsReport) -> String {
    let d = &drafts.collectives.decode;
    let many = if drafts.blocks == 1 { "" } else { "s" };
    let places = drafts.devices.iter().chain([&drafts.host]);
    let (mut weights, mut kv) = (Vec::new(), Vec::new());
    for p in places.filter(|p| p.weights_bytes + p.kv_bytes > 0) {
        weights.push(bytes(p.weights_bytes));
        kv.push(bytes(p.kv_bytes));
    }
    format!(
        "of these for {} drafted token{many}: weights {}; kv cache {}; per token {} all-reduces, {} copies, {}\n",
        drafts.blocks,
        alike(&weights),
        alike(&kv),
        d.all_reduce,
        d.copies,
        bytes(d.bytes)
    )
}

/// `4 × 25 MiB`, `30 MiB · 20 MiB`.
fn alike(shown: &[String]) -> String {
    match shown {
        [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|x| x == first) => {
            format!("{} × {first}", shown.len())
        }
        _ => shown.join(" · "),
    }
}

/// The report for a terminal of `width` columns; with `verbose`, every tensor.
pub fn render(report: &PlanReport, width: u16, verbose: bool) -> String {
    let m = &report.model;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {}, {} layers{}, {} parameters, {}",
        m.name,
        m.arch,
        m.n_layer,
        match report.drafts.as_ref().map(|d| d.blocks) {
            None => String::new(),
            Some(1) => " and 1 block that drafts".to_owned(),
            Some(n) => format!(" and {n} blocks that draft"),
        },
        count(m.n_params),
        bytes(m.bytes)
    );
    let _ = writeln!(
        out,
        "split mode {}, {} devices, context {}\n",
        report.split_mode,
        report.devices.len(),
        m.n_ctx
    );
    let mut t = table(
        width,
        &[
            "device", "weights", "kv cache", "state", "compute", "total", "memory",
        ],
    );
    for d in report.devices.iter().chain([&report.host]) {
        t.add_row(device_row(d));
    }
    for column in t.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    out.push_str(&trimmed(&t));
    out.push('\n');
    if verbose {
        let mut t = table(
            width,
            &[
                "tensor",
                "type",
                "shape",
                "split",
                "start+length per device",
            ],
        );
        for x in &report.tensors {
            let show = |r: &[u64; 2]| format!("{}+{}", r[0], r[1]);
            let ranges = match &x.sharding.ranges {
                super::Ranges::Single(r) => r.iter().map(show).collect::<Vec<_>>().join(" "),
                super::Ranges::Segments(s) => s
                    .iter()
                    .map(|s| segments(s, show))
                    .collect::<Vec<_>>()
                    .join(" "),
            };
            t.add_row(vec![
                x.name.clone(),
                x.dtype.to_owned(),
                shape(&x.ne),
                split(x),
                ranges,
            ]);
        }
        out.push_str(&trimmed(&t));
    } else {
        let mut t = table(
            width,
            &["layers", "tensor", "type", "shape", "split", "per device"],
        );
        for kind in layer_kinds(report) {
            let name = match kind.layers.as_slice() {
                [] => "outside".to_owned(),
                l => format!("{} ({}×)", span(l), l.len()),
            };
            for (i, r) in kind.rows.iter().enumerate() {
                let first = if i == 0 { name.clone() } else { String::new() };
                let cells = vec![
                    first,
                    r.name.clone(),
                    r.dtype.to_owned(),
                    r.shape.clone(),
                    r.split.clone(),
                    lens(&r.lens),
                ];
                t.add_row(cells);
            }
        }
        out.push_str(&trimmed(&t));
    }
    let (d, p) = (&report.collectives.decode, &report.collectives.prefill);
    let _ = writeln!(
        out,
        "\nper token: {} all-reduces, {} all-gathers, {} copies, {}; per prompt batch: {}",
        d.all_reduce,
        d.all_gather,
        d.copies,
        bytes(d.bytes),
        bytes(p.bytes)
    );
    if let Some(drafts) = &report.drafts {
        out.push_str(&drafted(drafts));
    }
    let e = &report.estimate;
    let _ = writeln!(
        out,
        "estimate: {:.2} ms per token, {:.1} ms per prompt batch; {:.2} ms per token on one device",
        e.decode_us / 1e3,
        e.prefill_us / 1e3,
        e.baseline_single_us / 1e3
    );
    let share = report.mirrored_bytes as f64 / (report.model.bytes as f64).max(1.0) * 100.0;
    let _ = write!(
        out,
        "held more than once: {} ({share:.2} % of the model)",
        bytes(report.mirrored_bytes)
    );
    let m = &report.mirrored;
    for (what, n) in [
        ("whole tensors", m.whole_bytes),
        ("shared edge blocks", m.edge_block_bytes),
        ("shared KV heads", m.shared_head_bytes),
    ] {
        if n > 0 {
            let _ = write!(out, ", {what} {}", bytes(n));
        }
    }
    out.push('\n');
    let s = &report.search;
    let proof = if s.optimal {
        "cheapest by the cost model".to_owned()
    } else {
        format!(
            "at most {:.0} % above the cheapest by the cost model",
            (100.0 * s.at_most_above).ceil()
        )
    };
    let _ = writeln!(
        out,
        "search: {} distinct parts, {} sets of splits priced, {proof}",
        s.distinct, s.priced
    );
    if verbose {
        out.push_str(&super::rewriting::summary(&report.rewriting));
    }
    out.push_str(&super::why::render(&report.why, width));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(4_912_898_304), "4.58 GiB");
        assert_eq!(span(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(lens(&[512; 8]), "8 × 512");
        assert_eq!(lens(&[3, 5]), "3 · 5");
    }
}
