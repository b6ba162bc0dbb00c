//! The results as llama-bench's table, which is Markdown.

use super::Subject;
use super::measure::Measured;
use tpc_core::format::{bytes, count};

/// A column: its head, and whether its cells stand to the right.
const COLUMNS: [(&str, bool); 7] = [
    ("model", false),
    ("size", true),
    ("params", true),
    ("backend", false),
    ("threads", true),
    ("test", true),
    ("t/s", true),
];

/// The table.
pub(super) fn report(subject: &Subject, measured: &[Measured]) -> String {
    let rows: Vec<[String; 7]> = measured.iter().map(|m| row(subject, m)).collect();
    let width = |i: usize| {
        let cells = rows.iter().map(|r| r[i].chars().count());
        cells.chain([COLUMNS[i].0.len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).zip(&COLUMNS);
        let cells = cells.map(|((cell, &w), (_, right))| match right {
            true => format!(" {cell:>w$} |"),
            false => format!(" {cell:<w$} |"),
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let heads: Vec<String> = COLUMNS.iter().map(|(h, _)| (*h).to_owned()).collect();
    let rules = widths.iter().zip(&COLUMNS).map(|(&w, (_, right))| {
        let rule = "-".repeat(w - usize::from(*right));
        if *right { format!("{rule}:") } else { rule }
    });
    let mut out = line(&heads) + &line(&rules.collect::<Vec<_>>());
    rows.iter().for_each(|r| out += &line(r));
    out
}

fn row(subject: &Subject, m: &Measured) -> [String; 7] {
    let (mean, deviation) = m.speed();
    let backend = match subject.devices.as_str() {
        "cpu" => subject.backend.to_owned(),
        devices => format!("{} {devices} {}", subject.backend, subject.split_mode),
    };
    [
        subject.model.clone(),
        bytes(subject.size.bytes),
        count(subject.size.params),
        backend,
        subject.threads.to_string(),
        m.name(),
        format!("{mean:.2} ± {deviation:.2}"),
    ]
}
