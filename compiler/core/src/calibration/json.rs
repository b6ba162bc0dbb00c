//! llama-bench's `-o json` and `-o jsonl`.

use serde_json::Value;

use super::csv;
use super::reading::Reading;

pub(super) fn read(file: &str, text: &str, out: &mut Reading) {
    if text.trim_start().starts_with('[') {
        match serde_json::from_str::<Vec<Value>>(text) {
            Ok(rows) => {
                // serde_json reports no lines, so search the text for each row's speed.
                let mut lines = text
                    .lines()
                    .enumerate()
                    .filter(|(_, l)| l.contains("\"avg_ts\""));
                for value in rows {
                    let line = lines.next().map_or(1, |(i, _)| i + 1);
                    row(file, line, &value, out);
                }
            }
            Err(e) => {
                let wrong = format!("invalid JSON: {}", reason(&e));
                let cure = "give the whole array that `llama-bench -o json` prints";
                out.complain(file, e.line(), &wrong, cure);
            }
        }
        return;
    }
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Value>(line) {
            Ok(value) => row(file, i + 1, &value, out),
            Err(e) => {
                let wrong = format!("invalid JSON: {}", reason(&e));
                out.complain(file, i + 1, &wrong, "write one object per line");
            }
        }
    }
}

/// Returns serde's error message without its position.
fn reason(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn row(file: &str, line: usize, value: &Value, out: &mut Reading) {
    let Some(object) = value.as_object() else {
        let cure = "write an object such as {\"n_prompt\": 512, \"n_gen\": 0, \"avg_ts\": 2368.8}";
        return out.complain(file, line, "the row is not an object", cure);
    };
    let pairs: Vec<(&str, String)> = object
        .iter()
        .filter_map(|(k, v)| {
            let text = match v {
                Value::String(s) => s.clone(),
                Value::Number(n) => n.to_string(),
                Value::Bool(b) => b.to_string(),
                _ => return None,
            };
            Some((k.as_str(), text))
        })
        .collect();
    csv::row(file, line, pairs.iter().map(|(k, v)| (*k, v.as_str())), out);
}
