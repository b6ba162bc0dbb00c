//! Several models or configurations in one call.

use serde_json::Value as Json;

use super::contract::documented;
use super::support::{SMALL, Scratch, path, tpc};

fn several(words: &[&str]) -> super::support::Ran {
    tpc(["plan"].iter().chain(words))
}

#[test]
fn every_model_is_planned_on_all_devices_with_every_context() {
    let (a, b) = (path(SMALL), path("llama-3.1-8b"));
    let words = [
        &a,
        &b,
        "--devices",
        "2",
        "--devices",
        "cpu,cpu,cpu",
        "-c",
        "4096",
        "-c",
        "8k",
    ];
    let ran = several(&words);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for part in [
        "qwen3-0.6b",
        "llama-3.1-8b",
        "cpu,cpu,cpu",
        "4096",
        "8192",
        " 8  ",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert_eq!(
        ran.stdout.matches("  tpc run ").count(),
        2,
        "{}",
        ran.stdout
    );
    let ran = several(&[&words[..], &["--format", "json"]].concat());
    let all: Json = serde_json::from_str(&ran.stdout).unwrap();
    let all = all.as_array().unwrap();
    all.iter().for_each(documented);
    let found: Vec<(usize, u64, bool)> = all
        .iter()
        .map(|p| {
            let devices = p["devices"].as_array().unwrap().len();
            let n_ctx = p["model"]["n_ctx"].as_u64().unwrap();
            (devices, n_ctx, p["model"]["path"] == a.as_str())
        })
        .collect();
    let expected: Vec<(usize, u64, bool)> = [true, false]
        .into_iter()
        .flat_map(|first| [2, 3].map(|d| [4096, 8192].map(|c| (d, c, first))))
        .flatten()
        .collect();
    assert_eq!(found, expected);
    let alone = tpc([
        "plan",
        &a,
        "--devices",
        "2",
        "-c",
        "8192",
        "--format",
        "json",
    ]);
    let alone: Json = serde_json::from_str(&alone.stdout).unwrap();
    assert_eq!(all[1], alone);
}

#[test]
fn a_range_of_counts_is_compared() {
    let ran = several(&[
        &path(SMALL),
        "--devices",
        "2..4",
        "-c",
        "4096",
        "--format",
        "json",
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let all: Json = serde_json::from_str(&ran.stdout).unwrap();
    let counts: Vec<usize> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["devices"].as_array().unwrap().len())
        .collect();
    assert_eq!(counts, [2, 3, 4]);
    let command = all[2]["commands"]["tpc"].as_str().unwrap();
    assert!(command.contains("--devices 4 "), "{command}");
}

#[test]
fn a_failure_hides_no_other_plan() {
    let scratch = Scratch::new();
    let missing = scratch.path("missing.gguf");
    let missing = missing.to_str().unwrap();
    let words = [missing, &path(SMALL), "--devices", "2", "-c", "4096"];
    let ran = several(&words);
    assert_eq!(ran.status, 2);
    assert!(ran.stdout.contains("no plan"), "{}", ran.stdout);
    assert!(ran.stdout.contains("run 2:"), "{}", ran.stdout);
    assert!(ran.stderr.contains("plan 1: "), "{}", ran.stderr);
    let ran = several(&[&words[..], &["--format", "json"]].concat());
    assert_eq!(ran.status, 2);
    let all: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&all[0]["verdict"], &all[1]["verdict"]),
        (&"error".into(), &"ok".into())
    );
    let ran = several(&[&words[..], &["--format", "ron"]].concat());
    assert!(
        ron::from_str::<ron::Value>(&ran.stdout).is_ok(),
        "{}",
        ran.stdout
    );
    // A plan that does not fit has status 1, a missing file 2. The highest status counts.
    let topology =
        "Topology(devices: [(name: \"a\", memory: Some(1e8), bandwidth: 1e12, flops: 1e14)])";
    let topology = scratch.file("small.ron", topology);
    let small = [
        "--topology",
        topology.to_str().unwrap(),
        "--devices",
        "1..2",
    ];
    let ran = several(&[&[&path(SMALL), "-c", "4096"][..], &small].concat());
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("  no  "), "{}", ran.stdout);
    let ran = several(&[&[missing, &path(SMALL), "-c", "4096"][..], &small].concat());
    assert_eq!(ran.status, 2, "{}", ran.stderr);
}

#[test]
fn what_is_for_one_plan_is_refused() {
    let scratch = Scratch::new();
    let model = path(SMALL);
    let html = scratch.path("plan.html");
    for (option, value) in [
        ("--html", html.to_str().unwrap()),
        ("--why", "attn_q"),
        ("--diff", "old.json"),
    ] {
        let ran = several(&[&model, "--devices", "1..2", option, value]);
        assert_eq!(ran.status, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(option), "{}", ran.stderr);
    }
    assert!(!html.exists());
    // Other commands use the last value.
    for option in [["--devices", "2"], ["-c", "64"]] {
        let words = [&["lint", &model][..], &[option[0], "1"], &option].concat();
        let ran = tpc(words);
        assert_eq!(ran.status, 0, "{}", ran.stdout);
        assert!(ran.stderr.contains("overrides"), "{}", ran.stderr);
    }
}
