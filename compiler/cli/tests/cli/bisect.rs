//! `tpc bisect`.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::support::{Ran, Scratch, path, refuses, tpc};

fn capture(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs");
    root.join(format!("{name}.jsonl")).display().to_string()
}

fn text(name: &str) -> String {
    fs::read_to_string(capture(name)).unwrap()
}

/// Runs the command on a capture and its changed text.
fn bisect(name: &str, changed: &str, options: &[&str]) -> Ran {
    let scratch = Scratch::new();
    let other = scratch.file("changed.jsonl", changed);
    let first = capture(name);
    let mut words = vec!["bisect", &first, other.to_str().unwrap()];
    words.extend(options);
    tpc(words)
}

/// The parameters of the first norm, with another epsilon.
fn with_epsilon(text: &str, op: &str, to: f32) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = lines.iter_mut().find(|l| l.contains(op)).unwrap();
    let mut json: Json = serde_json::from_str(line).unwrap();
    json["params"][0] = to.to_bits().into();
    *line = json.to_string();
    lines.join("\n")
}

#[test]
fn equal_graphs_have_no_difference() {
    for name in ["llama-dense", "gpt-oss-moe", "qwen35-dense"] {
        let ran = bisect(name, &text(name), &[]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
        assert!(ran.stdout.starts_with("no difference"), "{}", ran.stdout);
    }
}

#[test]
fn the_first_op_that_differs_is_named_with_its_operands() {
    let changed = with_epsilon(&text("llama-dense"), "RMS_NORM", 1e-4);
    let ran = bisect("llama-dense", &changed, &[]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let first = ran.stdout.lines().next().unwrap();
    assert!(
        first.contains("`norm-0`, RMS_NORM") && first.contains("NMSE"),
        "{first}"
    );
    for part in [
        "eps: 1e-5 → 0.0001",
        "0: `embd`, GET_ROWS: equal",
        "results differ",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(
        ran.stderr.contains("TPC0397") && ran.stderr.contains("help: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn json_has_the_same_facts() {
    let changed = with_epsilon(&text("llama-dense"), "RMS_NORM", 1e-4);
    let ran = bisect("llama-dense", &changed, &["--format", "json"]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&json["tpc"], &json["verdict"]),
        (&1.into(), &"differ".into())
    );
    let first = &json["first"];
    assert_eq!(first["relation"], "changed");
    assert_eq!(first["b"]["tensor"], "norm-0");
    assert_eq!(first["b"]["line"], 4);
    assert_eq!(first["inputs"][0]["agrees"], true);
    assert!(first["nmse"].as_f64().unwrap() > 1e-15);
    let same = bisect("llama-dense", &text("llama-dense"), &["--format", "json"]);
    let json: Json = serde_json::from_str(&same.stdout).unwrap();
    assert_eq!((same.status, &json["verdict"]), (0, &"same".into()));
    assert!(json["first"].is_null());
    assert_eq!(json["counts"]["results_differ"], 0);
}

#[test]
fn other_names_and_numbers_are_no_difference() {
    let original = text("llama-dense");
    let renamed = original
        .replace("\"Kcur-0\"", "\"keys-0\"")
        .replace("\"attn_out-1\"", "\"node_99\"")
        .replace("\"inp_pos\"", "\"positions\"");
    let ran = bisect("llama-dense", &renamed, &[]);
    assert_eq!(ran.status, 0, "{}\n{}", ran.stdout, ran.stderr);
}

#[test]
fn the_tolerance_decides() {
    let changed = with_epsilon(&text("llama-dense"), "RMS_NORM", 1e-4);
    let ran = bisect("llama-dense", &changed, &["--tolerance", "0.5"]);
    assert_eq!(ran.status, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("values agree"), "{}", ran.stdout);
    let wrong = bisect("llama-dense", &changed, &["--tolerance", "-1"]);
    refuses(&wrong, 2, "TPC0400");
}

#[test]
fn graphs_of_other_models_differ() {
    let ran = bisect("llama-dense", &text("gpt2-dense"), &[]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("TPC0397"), "{}", ran.stderr);
}

#[test]
fn unusable_captures_are_refused() {
    let good = capture("llama-dense");
    refuses(&tpc(["bisect", &good]), 2, "TPC0400");
    refuses(&tpc(["bisect", &good, "nowhere.jsonl"]), 2, "TPC0402");
    refuses(&tpc(["bisect", &good, &path("qwen3-0.6b")]), 2, "TPC0180");
    let ran = bisect("llama-dense", "{}", &[]);
    refuses(&ran, 2, "TPC018");
}
