//! The results as llama-bench's table, which is Markdown.

use super::Subject;
use super::measure::Measured;
use tpc_core::format::{bytes, count};

/// A column of a table.
pub(super) struct Column {
    head: String,
    /// Whether its cells stand to the right.
    right: bool,
}

impl Column {
    pub(super) fn left(head: impl Into<String>) -> Column {
        Column {
            head: head.into(),
            right: false,
        }
    }

    pub(super) fn right(head: impl Into<String>) -> Column {
        Column {
            head: head.into(),
            right: true,
        }
    }

    fn cell(&self, text: &str, width: usize) -> String {
        match self.right {
            true => format!(" {text:>width$} |"),
            false => format!(" {text:<width$} |"),
        }
    }

    /// The cell below the head.
    fn rule(&self, width: usize) -> String {
        let rule = "-".repeat(width - usize::from(self.right));
        if self.right { rule + ":" } else { rule }
    }
}

/// A Markdown table, each row with a cell per column.
pub(super) fn markdown(columns: &[Column], rows: &[Vec<String>]) -> String {
    let width = |(i, c): (usize, &Column)| {
        let cells = rows.iter().map(|r| r[i].chars().count());
        cells.chain([c.head.chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(width).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).zip(columns);
        let cells = cells.map(|((cell, &w), c)| c.cell(cell, w));
        format!("|{}\n", cells.collect::<String>())
    };
    let heads: Vec<String> = columns.iter().map(|c| c.head.clone()).collect();
    let rules: Vec<String> = columns
        .iter()
        .zip(&widths)
        .map(|(c, &w)| c.rule(w))
        .collect();
    let mut out = line(&heads) + &line(&rules);
    rows.iter().for_each(|r| out += &line(r));
    out
}

/// The table.
pub(super) fn report(subject: &Subject, measured: &[Measured]) -> String {
    let columns = [
        Column::left("model"),
        Column::right("size"),
        Column::right("params"),
        Column::left("backend"),
        Column::right("threads"),
        Column::right("test"),
        Column::right("t/s"),
    ];
    let rows: Vec<Vec<String>> = measured.iter().map(|m| row(subject, m)).collect();
    markdown(&columns, &rows)
}

fn row(subject: &Subject, m: &Measured) -> Vec<String> {
    let (mean, deviation) = m.speed();
    let backend = match subject.devices.as_str() {
        "cpu" => subject.backend.to_owned(),
        devices => format!("{} {devices} {}", subject.backend, subject.split_mode),
    };
    vec![
        subject.model.clone(),
        bytes(subject.size.bytes),
        count(subject.size.params),
        backend,
        subject.threads.to_string(),
        m.name(),
        format!("{mean:.2} ± {deviation:.2}"),
    ]
}
