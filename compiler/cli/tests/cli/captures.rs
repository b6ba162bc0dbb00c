//! Captured graphs.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::support::{Scratch, json, path, refuses, tpc};

#[test]
fn ops_without_a_rule_are_planned_around_and_named_with_what_they_cost() {
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs/llama-dense.jsonl");
    let text = fs::read_to_string(capture).unwrap();
    let scratch = Scratch::new();
    for (op, code, severity) in [
        ("CONV_2D", "TPC0190", "note"),
        ("FROBNICATE", "TPC0194", "warning"),
    ] {
        let file = scratch.file(
            "capture.jsonl",
            text.replacen("\"SWIGLU\"", &format!("\"{op}\""), 1),
        );
        let file = file.to_str().unwrap();
        let words = [
            "plan",
            "--graph",
            file,
            "--devices",
            "2",
            "--format",
            "json",
        ];
        let report = json(&words);
        assert_eq!(report["verdict"], "ok");
        let all = report["diagnostics"].as_array().unwrap();
        let of = |code: &str| all.iter().find(|d| d["code"] == code).unwrap();
        assert_eq!(of(code)["severity"], severity);
        let message = of(code)["message"].as_str().unwrap();
        assert!(
            message.contains(op) && message.contains("ffn_swiglu-0"),
            "{message}"
        );
        let cost = of("TPC0305")["message"].as_str().unwrap();
        for part in [
            "ffn_swiglu-0 (layer 0)",
            "blk.0.ffn_gate.weight",
            "blk.0.ffn_down.weight",
            "stay whole on every device",
        ] {
            assert!(cost.contains(part), "{part}: {cost}");
        }
    }
}

#[test]
fn a_captured_graph_is_planned_like_a_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs");
    let capture = folder.join("llama-dense.jsonl").display().to_string();
    let ran = tpc([
        "plan",
        "--graph",
        &capture,
        "--devices",
        "2",
        "--format",
        "json",
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["verdict"], "ok");
    assert_eq!(json["model"]["arch"], "capture");
    let split = |t: &&Json| t["sharding"]["kind"] == "split";
    let tensors = json["tensors"].as_array().unwrap();
    assert!(tensors.iter().filter(split).count() * 2 > tensors.len());
    let dumped = tpc([
        "dump",
        "--graph",
        &capture,
        "--devices",
        "2",
        "--stage",
        "programs",
    ]);
    let graph = tpc_ir::text::parse(&dumped.stdout).unwrap().graph;
    tpc_ir::verify::verify(&graph).unwrap();
    refuses(&tpc(["plan", &capture, "--graph", &capture]), 2, "TPC0400");
    refuses(&tpc(["plan", "--devices", "2"]), 2, "TPC0400");
    let header = path("llama-3.1-8b");
    refuses(&tpc(["plan", "--graph", &header]), 2, "TPC0180");
}

#[test]
fn long_names_are_cut_in_messages() {
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs/llama-dense.jsonl");
    let text = fs::read_to_string(capture).unwrap();
    let scratch = Scratch::new();
    let long = "N".repeat(1_000_000);
    for word in ["\"SWIGLU\"", "\"f32\"", "\"ffn_swiglu-0\""] {
        let file = scratch.file(
            "capture.jsonl",
            text.replacen(word, &format!("\"{long}\""), 1),
        );
        let ran = tpc(["lint", "--graph", file.to_str().unwrap()]);
        let told = ran.stdout.len() + ran.stderr.len();
        assert!(told < 20_000, "{word}: {told} bytes");
    }
}
