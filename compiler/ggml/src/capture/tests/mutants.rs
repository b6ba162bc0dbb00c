//! Captures of real models with one changed field: the graph changes, the capture is refused, or the field has no
//! effect.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::super::account::{Field, Use};
use super::super::record::{self, Record};
use super::super::{Packed, codes, lower, read, without_effect};
use crate::op::OpKind;
use tpc_ir::{Graph, Op, Output};

fn captures() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["../../tests/data/graphs", "../../../shared/graphs"];
    let mut out = BTreeMap::new();
    for folder in folders {
        for entry in std::fs::read_dir(root.join(folder)).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            out.insert(name, std::fs::read_to_string(path).expect("a capture"));
        }
    }
    out.into_iter().collect()
}

#[test]
fn nothing_of_the_captures_of_real_models_is_lost() {
    let all = captures();
    assert!(all.len() >= 6);
    for (name, text) in all {
        let captured = read(&text, &name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let codes: Vec<&str> = captured.notes.iter().map(|n| n.code.id).collect();
        assert!(codes.is_empty(), "{name}: {:?}", captured.notes);
    }
}

struct Base {
    lines: Vec<Json>,
    records: Vec<Record>,
    uses: Vec<Use>,
    graph: String,
}

fn graph(text: &str) -> Result<(String, Graph, Vec<Record>), super::super::CaptureError> {
    let records = record::parse(text)?;
    let m = lower(&records, "mutant", Packed::Apart)?.memory;
    let graph = m.graph;
    Ok((graph.to_string(), graph, records))
}

impl Base {
    fn new(text: &str) -> Base {
        let lines = text.lines().map(|l| serde_json::from_str(l).expect("JSON"));
        let (printed, graph, records) = graph(text).expect("a capture");
        let uses = (0..records.len())
            .map(|i| uses(&records, &graph, i))
            .collect();
        Base {
            lines: lines.collect(),
            records,
            uses,
            graph: printed,
        }
    }
}

fn uses(records: &[Record], graph: &Graph, i: usize) -> Use {
    let t = &records[i];
    let reads = |u: &Record| {
        !u.is_pure_view()
            && u.src
                .iter()
                .flatten()
                .any(|&s| s == i || (!t.is_view && records[s].root == i))
    };
    let result =
        |o: &Output| matches!(o, Output::Named(name, _) if name.split('#').next() == Some(&t.name));
    let input = |op: &Op| match op {
        Op::Input(op) => format!("{:?}", op.kind).contains(&t.name),
        _ => false,
    };
    Use {
        is_read: records.iter().any(reads) || t.is_output,
        is_result: graph.outputs.iter().any(result),
        is_input: graph.insts().any(|(_, d)| input(&d.op)),
    }
}

fn mutants(base: &Base, i: usize) -> Vec<(Field, Json)> {
    let line = &base.lines[i];
    let mut out = Vec::new();
    let mut with = |field: Field, key: &str, at: Option<usize>, value: Json| {
        let mut changed = line.clone();
        match at {
            None => changed[key] = value,
            Some(at) => changed[key][at] = value,
        }
        if changed != *line {
            out.push((field, changed));
        }
    };
    let int = |j: &Json| j.as_i64().unwrap_or(0);
    for op in [
        "SILU", "MUL", "ADD", "CONT", "RESHAPE", "FOO", "NONE", "RMS_NORM",
    ] {
        with(Field::Op, "op", None, json!(op));
    }
    for dtype in ["f32", "f16", "i32", "bf16"] {
        with(Field::Type, "type", None, json!(dtype));
    }
    for axis in 0..4 {
        let (n, step) = (int(&line["ne"][axis]), int(&line["nb"][axis]));
        for other in [n + 1, n * 2, 1, n / 2] {
            with(Field::Size(axis), "ne", Some(axis), json!(other));
        }
        for other in [step + 4, step * 2, step / 2] {
            with(Field::Stride(axis), "nb", Some(axis), json!(other));
        }
    }
    for word in 0..17 {
        let given = line["params"].as_array().map_or(0, Vec::len);
        let now = line["params"].get(word).map_or(0, int);
        for other in [now ^ 1, 0x3f00_0000] {
            let mut params = line["params"].clone();
            let list = params.as_array_mut().expect("a list");
            list.resize(given.max(word + 1), json!(0));
            list[word] = json!(other);
            with(Field::Word(word), "params", None, params);
        }
    }
    let sources = line["src"].as_array().map_or(0, Vec::len);
    for k in 0..sources {
        for other in [-1, -2, i as i64 / 2, i as i64 - 1, int(&line["src"][0])] {
            with(Field::Source(k), "src", Some(k), json!(other));
        }
    }
    if sources > 0 {
        let mut fewer = line["src"].clone();
        fewer.as_array_mut().expect("a list").pop();
        with(Field::Source(sources - 1), "src", None, fewer);
    }
    for other in [-1, i as i64 / 2, i as i64 - 1] {
        with(Field::View, "view", None, json!(other));
    }
    let offset = int(&line["view_offs"]);
    for other in [offset + 4, offset + 64, 0] {
        with(Field::Offset, "view_offs", None, json!(other));
    }
    let flags = int(&line["flags"]);
    for (field, bit) in [
        (Field::InputFlag, 1),
        (Field::OutputFlag, 2),
        (Field::OtherFlag, 4),
    ] {
        with(field, "flags", None, json!(flags ^ bit));
    }
    out
}

/// True if the changed source has the same elements of the same memory, or a copy of them.
fn same_elements(base: &Base, i: usize, changed: &Json, k: usize) -> bool {
    let ids: BTreeMap<i64, usize> = (0..)
        .zip(&base.lines)
        .filter_map(|(i, l)| Some((l["id"].as_i64()?, i)))
        .collect();
    let now = changed["src"]
        .get(k)
        .and_then(Json::as_i64)
        .and_then(|id| ids.get(&id));
    let (Some(&now), Some(before)) = (now, base.records[i].src.get(k).copied().flatten()) else {
        return false;
    };
    let source = |mut s: usize| {
        while base.records[s].is(OpKind::Cont) {
            let Some(from) = base.records[s].src.first().copied().flatten() else {
                break;
            };
            s = from;
        }
        let t = &base.records[s];
        (t.root, t.layout.ne, t.layout.offset)
    };
    source(now) == source(before)
}

#[test]
fn no_change_of_a_field_is_lost_silently() {
    let full = std::env::var_os("TPC_FULL").is_some_and(|v| v == "1");
    let (mut tried, mut same, mut refused) = (0, BTreeMap::<&str, u64>::new(), 0);
    let mut lost = Vec::new();
    let all = captures();
    // Test about the same number of records for few and for many captures.
    let step = if full { 1 } else { all.len() * 3 / 2 };
    for (n, (name, text)) in all.iter().enumerate() {
        let base = Base::new(text);
        for i in (n % step..base.lines.len()).step_by(step) {
            for (field, changed) in mutants(&base, i) {
                let mut text = String::new();
                for (k, line) in base.lines.iter().enumerate() {
                    text += &if k == i {
                        changed.to_string()
                    } else {
                        line.to_string()
                    };
                    text.push('\n');
                }
                tried += 1;
                match graph(&text) {
                    Err(e) => {
                        if [&codes::INCONSISTENT, &codes::LOST].contains(&e.code()) {
                            lost.push(format!(
                                "{name}: {e}
  {changed}"
                            ));
                        }
                        refused += 1;
                    }
                    Ok((printed, ..)) if printed != base.graph => {}
                    Ok(_) => match without_effect(&base.records[i], field, base.uses[i]) {
                        Some(why) => *same.entry(why).or_default() += 1,
                        None => match field {
                            Field::Source(k) if same_elements(&base, i, &changed, k) => {}
                            _ => lost.push(format!(
                                "{name}: {field:?} of {}\n  {changed}",
                                base.lines[i]
                            )),
                        },
                    },
                }
            }
        }
    }
    assert!(
        lost.is_empty(),
        "of {tried} changes {} are lost ({refused} were refused, the same with a reason: {same:#?}): {:#?}",
        lost.len(),
        &lost[..lost.len().min(12)]
    );
    assert!(tried > 5_000, "{tried} changes of {} captures", all.len());
}
