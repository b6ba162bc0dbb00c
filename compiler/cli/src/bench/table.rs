//! Formats results as llama-bench's Markdown table.

use super::measure::Measured;
use super::subject::Subject;
use tpc_core::format::{bytes, count};

pub(super) struct Column {
    head: String,
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

    fn rule(&self, width: usize) -> String {
        let rule = "-".repeat(width - usize::from(self.right));
        if self.right { rule + ":" } else { rule }
    }
}

pub(super) fn markdown(columns: &[Column], rows: &[Vec<String>]) -> String {
    let widths = widths(columns, rows);
    let mut out = head(columns, &widths);
    rows.iter().for_each(|r| out += &line(columns, &widths, r));
    out
}

fn widths(columns: &[Column], rows: &[Vec<String>]) -> Vec<usize> {
    let width = |(i, c): (usize, &Column)| {
        let cells = rows.iter().map(|r| r[i].chars().count());
        cells.chain([c.head.chars().count()]).max().unwrap_or(0)
    };
    columns.iter().enumerate().map(width).collect()
}

fn line(columns: &[Column], widths: &[usize], cells: &[String]) -> String {
    let cells = cells.iter().zip(widths).zip(columns);
    let cells = cells.map(|((cell, &w), c)| c.cell(cell, w));
    format!("|{}\n", cells.collect::<String>())
}

fn head(columns: &[Column], widths: &[usize]) -> String {
    let heads: Vec<String> = columns.iter().map(|c| c.head.clone()).collect();
    let rules: Vec<String> = columns
        .iter()
        .zip(widths)
        .map(|(c, &w)| c.rule(w))
        .collect();
    line(columns, widths, &heads) + &line(columns, widths, &rules)
}

pub(super) struct Growing {
    columns: Vec<Column>,
    widths: Vec<usize>,
}

/// The initial width of the speed column, in characters.
const SPEED: usize = 16;

impl Growing {
    pub(super) fn new(subject: &Subject, tests: &[String]) -> (Growing, String) {
        let columns = columns(subject);
        let widest = tests.iter().max_by_key(|t| t.chars().count());
        let row = row(subject, widest.map_or("", String::as_str), String::new());
        let mut widths = widths(&columns, &[row]);
        if let Some(speed) = widths.last_mut() {
            *speed = SPEED;
        }
        let out = Growing { columns, widths };
        let head = head(&out.columns, &out.widths);
        (out, head)
    }

    pub(super) fn row(&self, subject: &Subject, m: &Measured) -> String {
        line(&self.columns, &self.widths, &row_of(subject, m))
    }
}

pub(super) fn report(subject: &Subject, measured: &[Measured]) -> String {
    let rows: Vec<Vec<String>> = measured.iter().map(|m| row_of(subject, m)).collect();
    markdown(&columns(subject), &rows)
}

/// Returns the columns. Cache types have a column unless both are `f16`.
fn columns(subject: &Subject) -> Vec<Column> {
    let mut out = vec![
        Column::left("model"),
        Column::right("size"),
        Column::right("params"),
        Column::left("backend"),
        Column::right("threads"),
    ];
    let types = ["type_k", "type_v"].map(Column::right);
    out.extend(
        types
            .into_iter()
            .zip(&subject.cache_types)
            .filter(|(_, t)| *t != USUAL)
            .map(|(c, _)| c),
    );
    out.extend([Column::right("test"), Column::right("t/s")]);
    out
}

const USUAL: &str = "f16";

fn row_of(subject: &Subject, m: &Measured) -> Vec<String> {
    let (mean, deviation) = m.speed();
    row(subject, &m.name(), format!("{mean:.2} ± {deviation:.2}"))
}

fn row(subject: &Subject, test: &str, speed: String) -> Vec<String> {
    let Subject {
        devices, backend, ..
    } = subject;
    let backend = match subject.n_devices {
        1 if devices.parse::<usize>().is_ok() || devices == "cpu" => (*backend).to_owned(),
        1 => format!("{backend} {devices}"),
        _ => format!("{backend} {devices} {}", subject.split_mode),
    };
    let mut out = vec![
        subject.model.clone(),
        bytes(subject.size.bytes),
        count(subject.size.params),
        backend,
        subject.threads.to_string(),
    ];
    out.extend(subject.cache_types.iter().filter(|t| *t != USUAL).cloned());
    out.extend([test.to_owned(), speed]);
    out
}
