//! The most frequently reported form: a rotation of flattened queries and keys in every layer.

use serde_json::{Value, json};
use tpc_diag::Severity;
use tpc_ggml::capture;
use tpc_ggml::meta::repair::{EQUATIONS, Limits, repair};
use tpc_ggml::meta::{Setup, Verdict, diagnose, infer};

use super::repairs::{is_close, run};

/// Returns the capture with a rotation by one matrix after every ROPE, on rows of all heads and tokens.
fn rotated(text: &str) -> String {
    let mut out: Vec<Value> = vec![json!({
        "id": 9999, "name": "rotation", "op": "NONE", "type": "f32", "ne": [128, 128, 1, 1],
        "nb": [4, 512, 65536, 65536], "params": [], "src": [], "view": -1, "view_offs": 0, "flags": 0,
    })];
    // Each tensor's replacement, as source and as owner of memory.
    let mut now: Vec<(i64, i64, i64)> = Vec::new();
    for line in text.lines() {
        let mut t: Value = serde_json::from_str(line).expect("a record");
        for (old, source, owner) in &now {
            for s in t["src"].as_array_mut().expect("a list") {
                if s == old {
                    *s = json!(source);
                }
            }
            if t["view"] == *old {
                t["view"] = json!(owner);
            }
        }
        out.push(t.clone());
        if t["op"] != "ROPE" {
            continue;
        }
        let id = t["id"].as_i64().expect("a number");
        let rows = t["ne"][1].as_u64().expect("heads") * t["ne"][2].as_u64().expect("tokens");
        let flat = json!([128, rows, 1, 1]);
        let nb = json!([4, 512, 512 * rows, 512 * rows]);
        let mut add = |k: i64, op: &str, like: (&Value, &Value), src: Value, view: i64| {
            let (ne, nb) = like;
            out.push(json!({
                "id": id + k, "name": t["name"], "op": op, "type": "f32", "ne": ne, "nb": nb, "params": [],
                "src": src, "view": view, "view_offs": 0, "flags": 0,
            }));
        };
        add(10_000, "RESHAPE", (&flat, &nb), json!([id]), id);
        add(
            20_000,
            "MUL_MAT",
            (&flat, &nb),
            json!([9999, id + 10_000]),
            -1,
        );
        add(
            30_000,
            "RESHAPE",
            (&t["ne"], &t["nb"]),
            json!([id + 20_000]),
            id + 20_000,
        );
        now.push((id, id + 30_000, id + 20_000));
    }
    let lines: Vec<String> = out.iter().map(Value::to_string).collect();
    lines.join("\n")
}

#[test]
fn rotations_of_every_layer_are_repaired() {
    let path = tpc_tests::data().join("graphs/llama-dense.jsonl");
    let text = rotated(&std::fs::read_to_string(path).expect("a capture"));
    let records = capture::records(&text).unwrap_or_else(|e| panic!("{e}"));
    let setup = Setup::new(2);
    assert_eq!(infer(&records, &setup).verdict(), Verdict::Crash);
    let repaired = repair(&records, &setup, EQUATIONS, Limits::default());
    assert_eq!(
        repaired.inference.verdict(),
        Verdict::Ok,
        "{:?}",
        repaired.failed
    );
    // Queries and keys are repaired together, in two layers.
    assert_eq!(repaired.repairs.len(), 2);
    let (before, after) = (run(&records), run(&repaired.records));
    assert_eq!(before.len(), after.len());
    for ((_, a), (_, b)) in before.iter().zip(&after) {
        assert!(is_close(a, b));
    }
    let told = diagnose(&records, &setup);
    let codes: Vec<(&str, Severity)> = told.iter().map(|d| (d.code.id, d.severity)).collect();
    let error = ("TPC0710", Severity::Error);
    let note = ("TPC0720", Severity::Note);
    assert_eq!(codes, [error, error, note]);
    assert!(
        told[2].message.contains("as in 1 more place"),
        "{}",
        told[2]
    );
    let diff = told[2].help.clone().unwrap_or_default().to_string();
    // The diff has one line per necessary op, and omits unaffected ops.
    let lines: Vec<&str> = diff.lines().collect();
    assert_eq!(lines.len(), 8, "{diff}");
    let new: Vec<&str> = diff.lines().filter(|l| l.starts_with('+')).collect();
    let of_heads = |l: &&str| l.contains("MUL_MAT(rotation, ") && l.contains(", 8]");
    assert!(new.iter().all(of_heads), "{diff}");
}
