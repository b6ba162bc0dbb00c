//! llama-bench's default table (`-o md`).

use tpc_diag::suggest::shorten;

use super::fields::{BOTH, field, test};
use super::measured::{Measurement, Test};
use super::reading::Reading;

/// Splits a table row into cells; `None` if the line is not a row.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn is_rule(cells: &[&str]) -> bool {
    let of_dashes = |c: &&str| !c.is_empty() && c.chars().all(|c| c == '-' || c == ':' || c == ' ');
    cells.iter().all(of_dashes)
}

/// Reads every table with the columns `test` and `t/s`. Ignores other lines.
pub(super) fn read(file: &str, text: &str, out: &mut Reading) {
    let mut columns: Option<Vec<String>> = None;
    for (i, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            if !line.trim().is_empty() {
                continue;
            }
            columns = None;
            continue;
        };
        let named = |name: &str| cells.contains(&name);
        if named("test") && named("t/s") {
            columns = Some(cells.iter().map(|c| (*c).to_owned()).collect());
        } else if let Some(columns) = columns.as_ref().filter(|_| !is_rule(&cells)) {
            row(file, i + 1, columns, &cells, out);
        }
    }
}

fn row(file: &str, line: usize, columns: &[String], cells: &[&str], out: &mut Reading) {
    if columns.len() != cells.len() {
        let wrong = format!("{} cells, the header has {}", cells.len(), columns.len());
        return out.complain(file, line, &wrong, "copy the whole row");
    }
    let mut found = Measurement::new(line, Test::Generation(0), 0.0);
    let (mut named, mut speed) = (None, None);
    for (column, cell) in columns.iter().zip(cells) {
        match column.as_str() {
            "test" => named = Some(*cell),
            "t/s" => speed = cell.split(['±', ' ']).next().and_then(|s| s.parse().ok()),
            "params" => found.params = count(cell),
            name => field(&mut found, name, cell),
        }
    }
    let name = named.unwrap_or_default();
    match (test(name), speed) {
        (Some((test, depth)), Some(speed)) => {
            (found.test, found.depth, found.speed) = (test, depth, speed);
            out.row(file, found);
        }
        (None, _) if name.starts_with("pp") && name.contains("+tg") => {
            out.complain(file, line, BOTH, "measure them separately: -p 512 -n 128");
        }
        (None, _) => {
            let wrong = format!("unknown test `{}`", shorten(name));
            out.complain(file, line, &wrong, "write pp512, tg128 or tg128 @ d4096");
        }
        (_, None) => {
            let wrong = "the speed is not a number".to_owned();
            out.complain(
                file,
                line,
                &wrong,
                "write a speed such as `2368.80 ± 93.24`",
            );
        }
    }
}

/// Parses a count such as `6.74 B`.
fn count(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit.trim() {
        "K" => 1e3,
        "M" => 1e6,
        "B" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}
