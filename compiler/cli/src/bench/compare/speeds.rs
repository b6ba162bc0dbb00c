//! Reads speeds in llama-bench's output formats.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::bench::measure::Test;

/// Tokens per second by test name: `pp512`, `tg128 @ d4096`.
pub(super) type Speeds = BTreeMap<String, f64>;

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    n_prompt: usize,
    #[serde(default)]
    n_gen: usize,
    #[serde(default)]
    n_depth: usize,
    avg_ts: f64,
}

impl Row {
    /// Returns the name and the speed, or `None` for a test without tokens.
    fn named(&self) -> Option<(String, f64)> {
        let depth = self.n_depth;
        let test = match (self.n_prompt, self.n_gen) {
            (0, 0) => return None,
            (n, 0) => Test::Prompt { n, depth },
            (0, n) => Test::Generation { n, depth },
            (prompt, n) => Test::Both { prompt, n, depth },
        };
        Some((test.name(), self.avg_ts))
    }
}

/// Reads speeds from an array of objects, from one object per line, or from a Markdown table.
pub(super) fn read(text: &str) -> Speeds {
    let rows: Vec<Row> = serde_json::from_str(text.trim()).unwrap_or_else(|_| {
        let lines = text.lines().filter_map(|l| serde_json::from_str(l).ok());
        lines.collect()
    });
    let mut out: Speeds = match rows.is_empty() {
        true => table(text),
        false => rows.iter().filter_map(Row::named).collect(),
    };
    out.retain(|_, speed| speed.is_finite() && *speed > 0.0);
    out
}

/// Reads a table with the columns `test` and `t/s`. In a cell, the mean precedes `±`.
fn table(text: &str) -> Speeds {
    let mut columns = None;
    let mut out = Speeds::new();
    for line in text.lines().map(str::trim).filter(|l| l.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let at = |name: &str| cells.iter().position(|c| *c == name);
        if let (Some(test), Some(speed)) = (at("test"), at("t/s")) {
            columns = Some((test, speed));
            continue;
        }
        let Some((test, speed)) = columns else {
            continue;
        };
        let (Some(test), Some(cell)) = (cells.get(test), cells.get(speed)) else {
            continue;
        };
        let mean = cell.split('±').next().unwrap_or(cell).trim();
        if let Ok(mean) = mean.parse() {
            out.insert((*test).to_owned(), mean);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> Speeds {
        let speeds = [("pp512", 186.5), ("tg128", 21.25), ("tg128 @ d4096", 7.0)];
        speeds.map(|(n, s)| (n.to_owned(), s)).into()
    }

    #[test]
    fn the_table_is_read() {
        let text = "load_backend: loaded CPU\n\
            | model         | size | params | backend | threads |  test |          t/s |\n\
            | ------------- | ---: | -----: | ------- | ------: | ----: | -----------: |\n\
            | llama 1B Q4_K | 1 GiB | 1.1 B | CPU     |       2 | pp512 | 186.50 ± 3.1 |\n\
            | llama 1B Q4_K | 1 GiB | 1.1 B | CPU     |       2 | tg128 |  21.25 ± 0.1 |\n\
            | llama 1B Q4_K | 1 GiB | 1.1 B | CPU     |       2 | tg128 @ d4096 | 7.00 ± 0.0 |\n\
            build: 0000 (1)\n";
        assert_eq!(read(text), expected());
    }

    #[test]
    fn objects_are_read() {
        let rows = [
            r#"{"n_prompt": 512, "n_gen": 0, "avg_ts": 186.5, "test_time": "x"}"#,
            r#"{"n_prompt": 0, "n_gen": 128, "n_depth": 0, "avg_ts": 21.25}"#,
            r#"{"n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ts": 7.0}"#,
            r#"{"n_prompt": 0, "n_gen": 0, "avg_ts": 1.0}"#,
            r#"{"n_prompt": 8, "n_gen": 0, "avg_ts": 0.0}"#,
        ];
        assert_eq!(read(&rows.join("\n")), expected());
        assert_eq!(read(&format!("[{}]\n", rows.join(","))), expected());
    }

    #[test]
    fn other_texts_have_no_speeds() {
        for text in [
            "",
            "[]",
            "{",
            "| test | t/s |",
            "| pp4 | 3 |",
            "hello | world",
        ] {
            assert!(read(text).is_empty(), "{text}");
        }
    }
}
