//! llama-bench's `-o csv`.

use super::fields::{BOTH, field};
use super::measured::{Measurement, Test};
use super::reading::Reading;

/// Splits a line into fields without quotes. A doubled quote is one quote.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let (mut quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                push(&mut out, '"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => push(&mut out, c),
        }
    }
    out
}

fn push(fields: &mut [String], c: char) {
    if let Some(last) = fields.last_mut() {
        last.push(c);
    }
}

/// Finds the first header. Returns its line and columns.
pub(super) fn header(text: &str) -> Option<(usize, Vec<String>)> {
    let lines = text.lines().enumerate();
    let mut headers = lines.filter(|(_, l)| l.contains("avg_ts") && l.contains("n_gen"));
    let (i, line) = headers.next()?;
    (!line.contains(['|', '{', ':'])).then(|| (i, fields(line)))
}

pub(super) fn read(file: &str, text: &str, header: usize, columns: &[String], out: &mut Reading) {
    for (i, line) in text.lines().enumerate().skip(header + 1) {
        if line.trim().is_empty() {
            continue;
        }
        let cells = fields(line);
        if cells == columns {
            continue;
        }
        if cells.len() != columns.len() {
            let wrong = format!("{} fields, the header has {}", cells.len(), columns.len());
            out.complain(file, i + 1, &wrong, "copy the whole line");
            continue;
        }
        row(
            file,
            i + 1,
            columns
                .iter()
                .zip(&cells)
                .map(|(c, v)| (c.as_str(), v.as_str())),
            out,
        );
    }
}

pub(super) fn row<'a>(
    file: &str,
    line: usize,
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
    out: &mut Reading,
) {
    let mut found = Measurement::new(line, Test::Generation(0), 0.0);
    let (mut prompt, mut generated, mut speed) = (None, None, None);
    for (name, value) in pairs {
        let number = || value.trim().parse::<u64>().ok();
        match name {
            "n_prompt" => prompt = number(),
            "n_gen" => generated = number(),
            "n_depth" => found.depth = number().unwrap_or(0),
            "avg_ts" => speed = value.trim().parse::<f64>().ok(),
            _ => field(&mut found, name, value),
        }
    }
    let Some(speed) = speed else {
        let cure = "give the tokens per second in `avg_ts`";
        return out.complain(file, line, "the speed is missing or not a number", cure);
    };
    found.speed = speed;
    found.test = match (prompt.unwrap_or(0), generated.unwrap_or(0)) {
        (0, 0) => {
            let cure = "give a number above 0 in one of the two columns";
            return out.complain(
                file,
                line,
                "the row has no positive `n_prompt` or `n_gen`",
                cure,
            );
        }
        (n, 0) => Test::Prompt(n),
        (0, n) => Test::Generation(n),
        _ => return out.complain(file, line, BOTH, "measure them separately: -p 512 -n 128"),
    };
    out.row(file, found);
}
