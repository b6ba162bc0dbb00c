use super::super::error::CaptureError;
use super::super::record::{self, Record};
use super::super::trace::RecordResult;
use super::super::{Packed, account, codes, lower};
use tpc_ir::text;

const CAPTURE: &str = include_str!("lost.jsonl");

fn records() -> Vec<Record> {
    record::parse(CAPTURE).expect("a capture")
}

fn code(e: &CaptureError) -> &'static str {
    e.code().id
}

#[test]
fn the_translation_accounts_for_all() {
    let records = records();
    let m = lower(&records, "lost", Packed::Apart)
        .expect("nothing is lost")
        .memory;
    assert_eq!(
        m.traces.len(),
        records.iter().filter(|t| !t.is_pure_view()).count()
    );
}

#[test]
fn every_change_of_an_attribute_is_noticed() {
    let records = records();
    let m = lower(&records, "lost", Packed::Apart)
        .expect("nothing is lost")
        .memory;
    let printed = m.graph.to_string();
    let mut tried = 0;
    for (i, line) in printed.lines().enumerate() {
        for (from, to) in changes(line) {
            let changed = line.replacen(&from, &to, 1);
            if changed == line {
                continue;
            }
            let mut lines: Vec<&str> = printed.lines().collect();
            lines[i] = &changed;
            let Ok(parsed) = text::parse(&lines.join("\n")) else {
                continue;
            };
            tried += 1;
            let e = account::check(&records, &parsed.graph, &m.lines, &m.traces);
            let e = e.expect_err(&changed);
            assert_eq!(code(&e), codes::LOST.id, "{e}");
        }
    }
    assert!(tried >= 15, "{tried} changes");
}

fn changes(line: &str) -> Vec<(String, String)> {
    let Some((_, attrs)) = line.split_once('{') else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for part in attrs.trim_end_matches('}').split(", ") {
        let Some((key, value)) = part.split_once(" = ") else {
            continue;
        };
        let other = match (key, value) {
            // Names, and parameters that follow from sizes.
            ("name" | "tensor" | "kind" | "len" | "dims" | "k" | "n", _) => continue,
            ("axes", "[0, 2, 1, 3]") => "[2, 0, 1, 3]".to_owned(),
            (_, v) if v.starts_with('"') => v.replace(|c: char| c.is_ascii_digit(), "9"),
            (_, v) => match v.parse::<f32>() {
                Ok(x) if v.contains('.') => format!("{:?}", x + 0.5),
                Ok(x) => format!("{}", x + 1.0),
                Err(_) => continue,
            },
        };
        out.push((part.to_owned(), format!("{key} = {other}")));
    }
    out
}

#[test]
fn every_wrong_claim_is_noticed() {
    let records = records();
    let m = lower(&records, "lost", Packed::Apart)
        .expect("nothing is lost")
        .memory;
    let refused = |traces: &[super::super::trace::Trace]| {
        let e = account::check(&records, &m.graph, &m.lines, traces);
        assert_eq!(e.as_ref().err().map(code), Some(codes::LOST.id));
    };
    for i in 0..m.traces.len() {
        for k in 0..m.traces[i].reads.len() {
            let mut traces = m.traces.clone();
            let other = m.graph.outputs[0].value();
            if std::mem::replace(&mut traces[i].reads[k].1, other) != other {
                refused(&traces);
            }
            let mut traces = m.traces.clone();
            traces[i].reads[k].0 += 7;
            refused(&traces);
        }
        let mut traces = m.traces.clone();
        if let RecordResult::Written { old, after, .. } = &mut traces[i].made {
            std::mem::swap(old, after);
            refused(&traces);
        }
    }
}
