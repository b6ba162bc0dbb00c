//! Drafting blocks.

use serde_json::Value as Json;

use super::support::{SMALL, Scratch, plan, refuses, tpc};

const MODEL: &str = "glm4moe-tiny:drafts=1";

fn json(model: &str, options: &[&str]) -> Json {
    let words = [
        "plan",
        model,
        "--devices",
        "2",
        "-sm",
        "tensor",
        "--format",
        "json",
    ];
    let ran = tpc(words.iter().chain(options));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn drafts_are_planned_on_request_and_noted_otherwise() {
    let scratch = Scratch::new();
    let model = scratch.model(MODEL);
    let model = model.to_str().unwrap();
    let without = json(model, &[]);
    assert!(without.get("drafts").is_none());
    let mut notes = without["diagnostics"].as_array().unwrap().iter();
    let note = notes.find(|d| d["code"] == "TPC0330").unwrap();
    assert!(
        note["help"]
            .as_str()
            .unwrap()
            .contains("--spec-type draft-mtp")
    );
    let with = json(model, &["--spec-type", "draft-mtp"]);
    assert_eq!(with["model"]["unused_bytes"], 0);
    let drafts = &with["drafts"];
    assert_eq!(drafts["blocks"], 1);
    let sum = |report: &Json, key: &str| -> u64 {
        let devices = report["devices"].as_array().unwrap().iter();
        devices.map(|d| d[key].as_u64().unwrap()).sum()
    };
    let once =
        |report: &Json| sum(report, "weights_bytes") - report["mirrored_bytes"].as_u64().unwrap();
    let left_out = without["model"]["unused_bytes"].as_u64().unwrap();
    assert_eq!(once(&with), once(&without) + left_out);
    assert!(sum(drafts, "weights_bytes") >= left_out);
    let caches = sum(&with, "kv_bytes") - sum(&without, "kv_bytes");
    assert_eq!(sum(drafts, "kv_bytes"), caches);
    assert!(caches > 0 && drafts["host"]["kv_bytes"] == 0);
    for batch in ["decode", "prefill"] {
        let reduced = |c: &Json| c["collectives"][batch]["all_reduce"].as_u64().unwrap();
        assert!((1..=reduced(&with)).contains(&reduced(drafts)));
    }
    let table = tpc([
        "plan",
        model,
        "--devices",
        "2",
        "-sm",
        "tensor",
        "--spec-type",
        "draft-mtp",
        "-v",
    ]);
    let line = table.stdout.lines().find(|l| l.starts_with("included for"));
    let line = line.unwrap_or_else(|| panic!("{}", table.stdout));
    assert!(line.contains("1 drafted token: weights 2 × "), "{line}");
    assert!(table.stdout.contains("nextn.eh_proj.weight"));
}

#[test]
fn eval_compares_logits_and_counts_good_guesses() {
    let scratch = Scratch::new();
    let model = scratch.model("qwen35-tiny:drafts=1");
    let model = model.to_str().unwrap();
    let golden = scratch.path("golden.logits");
    let golden = golden.to_str().unwrap();
    let wrote = tpc([
        "eval",
        model,
        "--tokens",
        "3,1,4,1,5,9,2",
        "--logits",
        golden,
    ]);
    assert_eq!(wrote.status, 0, "{}", wrote.stderr);
    let words = [
        "eval",
        model,
        "--golden",
        golden,
        "--spec-type",
        "draft-mtp",
        "--devices",
        "2",
        "-ub",
        "3",
        "--tolerance",
        "1e-12",
    ];
    let ran = tpc(words);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with("draft 1: agrees with the model at "),
        "{}",
        lines[0]
    );
    assert!(lines[0].ends_with(" of 6 positions"), "{}", lines[0]);
    assert!(lines[1].starts_with("nmse="));
}

#[test]
fn a_model_or_a_capture_without_such_blocks_is_refused() {
    refuses(&plan(SMALL, "--spec-type draft-mtp"), 1, "TPC0163");
    let scratch = Scratch::new();
    let line = r#"{"id":0,"name":"w","op":"NONE","type":"f32","ne":[4,4,1,1],"nb":[4,16,64,64],"params":[],"src":[],"view":-1,"view_offs":0,"flags":0}"#;
    let x = line
        .replace("\"id\":0", "\"id\":1")
        .replace("\"w\"", "\"x\"");
    let y = line
        .replace("\"id\":0", "\"id\":2")
        .replace("\"w\"", "\"y\"")
        .replace("NONE", "MUL_MAT")
        .replace("\"src\":[]", "\"src\":[0,1]");
    let capture = scratch.file("c.jsonl", [line, &x, &y].join("\n"));
    let capture = capture.to_str().unwrap();
    let ran = tpc(["plan", "--graph", capture, "--spec-type", "draft-mtp"]);
    refuses(&ran, 1, "TPC0163");
}
