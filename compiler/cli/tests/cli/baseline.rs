//! `tpc lint --baseline` and `--source`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::support::{Ran, Scratch, refuses, tpc};

fn capture(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    root.join(name)
}

const META: &str = "ggml-meta/flattened-rotation.jsonl";

/// Lints a capture with errors by ggml's rules.
fn lint(scratch: &Scratch, options: &[&str]) -> Ran {
    let graph = scratch.path("graph.jsonl");
    if !graph.exists() {
        fs::copy(capture(META), &graph).unwrap();
    }
    let graph = graph.display().to_string();
    let words = [
        "lint",
        "--graph",
        &graph,
        "--target",
        "ggml-meta",
        "--devices",
        "2",
    ];
    tpc(words.iter().chain(options))
}

#[test]
fn accepted_findings_are_no_errors_and_new_ones_are() {
    let scratch = Scratch::new();
    let file = scratch.path("accepted.jsonl").display().to_string();
    let with = ["--baseline", &file];
    let before = lint(&scratch, &[]);
    assert_eq!(before.status, 1, "{}", before.stderr);
    refuses(&lint(&scratch, &with), 2, "TPC0455");
    let updated = lint(&scratch, &["--baseline", &file, "--update-baseline"]);
    assert_eq!(updated.status, 0, "{}", updated.stderr);
    let written = fs::read_to_string(&file).unwrap();
    let entries: Vec<Json> = written
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(entries[0]["tpc_baseline"], 1);
    assert!(
        entries.len() > 1 && entries[1]["code"].is_string(),
        "{written}"
    );
    // The same findings at other lines are accepted.
    let graph = scratch.path("graph.jsonl");
    let shifted = format!("\n\n{}", fs::read_to_string(&graph).unwrap());
    fs::write(&graph, shifted).unwrap();
    let again = lint(&scratch, &with);
    assert_eq!(
        (again.status, again.stderr.as_str()),
        (0, ""),
        "{}",
        again.stdout
    );
    let accepted = format!("{} accepted by {file}\n", entries.len() - 1);
    assert!(again.stdout.ends_with(&accepted), "{}", again.stdout);
    // Without an entry, its finding is new.
    let kept: Vec<&str> = written.lines().filter(|l| !l.contains("TPC0710")).collect();
    fs::write(&file, kept.join("\n")).unwrap();
    let new = lint(&scratch, &with);
    assert_eq!(new.status, 1, "{}", new.stdout);
    assert!(
        new.stderr.starts_with("TPC0710\n") && !new.stderr.contains("\nTPC0720\n"),
        "{}",
        new.stderr
    );
    let twice = lint(&scratch, &["--baseline", &file, "--update-baseline"]);
    assert_eq!(twice.status, 0, "{}", twice.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
}

#[test]
fn stale_entries_are_told_and_removed() {
    let scratch = Scratch::new();
    let file = scratch.path("accepted.jsonl").display().to_string();
    let update = ["--baseline", &file, "--update-baseline"];
    assert_eq!(lint(&scratch, &update).status, 0);
    let written = fs::read_to_string(&file).unwrap();
    let line = written.lines().last().unwrap();
    let mut gone: Json = serde_json::from_str(line).unwrap();
    gone["fingerprint"] = "0000000000000000".into();
    gone["entity"] = "old_tensor".into();
    fs::write(&file, format!("{written}{gone}\n")).unwrap();
    let ran = lint(&scratch, &["--baseline", &file]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("TPC0456") && ran.stderr.contains("old_tensor"),
        "{}",
        ran.stderr
    );
    let json = lint(&scratch, &["--baseline", &file, "--format", "json"]);
    let report: Json = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(report["stale"][0]["entity"], "old_tensor");
    assert_eq!(report["findings"][0]["baseline"], "unchanged");
    assert_eq!(report["verdict"], "ok");
    let sarif = lint(&scratch, &["--baseline", &file, "--format", "sarif"]);
    let log: Json = serde_json::from_str(&sarif.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let states: Vec<&str> = results
        .iter()
        .map(|r| r["baselineState"].as_str().unwrap())
        .collect();
    assert!(
        states.contains(&"unchanged") && states.contains(&"absent"),
        "{states:?}"
    );
    let github = lint(&scratch, &["--baseline", &file, "--format", "github"]);
    assert_eq!((github.status, github.stdout.as_str()), (0, ""));
    assert_eq!(lint(&scratch, &update).status, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
}

#[test]
fn unusable_lists_are_refused() {
    let scratch = Scratch::new();
    for (text, line) in [("", "line 1"), ("{\"tpc_baseline\":1}\n{}", "line 2")] {
        let file = scratch.file("wrong.jsonl", text).display().to_string();
        let ran = lint(&scratch, &["--baseline", &file]);
        refuses(&ran, 2, "TPC0455");
        assert!(ran.stderr.contains(line), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    refuses(&lint(&scratch, &["--update-baseline"]), 2, "TPC0400");
}

/// Sources that make the tensor of the finding.
fn sources(scratch: &Scratch, tensor: &str, call: &str) -> String {
    let folder = scratch.path("engine/src/models");
    fs::create_dir_all(&folder).unwrap();
    let text = format!("void build() {{\n    cur = {call};\n    cb(cur, \"{tensor}\", il);\n}}\n");
    fs::write(folder.join("new.cpp"), text).unwrap();
    scratch.path("engine").display().to_string()
}

#[test]
fn findings_point_at_the_line_that_makes_the_op() {
    let scratch = Scratch::new();
    let found = lint(&scratch, &["--format", "json"]);
    let report: Json = serde_json::from_str(&found.stdout).unwrap();
    let error = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["code"] == "TPC0710")
        .unwrap();
    let name = error["entity"].as_str().unwrap();
    let graph = fs::read_to_string(capture(META)).unwrap();
    let record = graph
        .lines()
        .map(|l| serde_json::from_str::<Json>(l).unwrap())
        .find(|r| r["name"] == name)
        .unwrap();
    let op = record["op"].as_str().unwrap().to_lowercase();
    let stem = name.rsplit_once('-').map_or(name, |(stem, _)| stem);
    let folder = sources(&scratch, stem, &format!("ggml_{op}_2d(ctx0, cur)"));
    let sarif = lint(
        &scratch,
        &[
            "--source",
            &folder,
            "--architecture",
            "new",
            "--format",
            "sarif",
        ],
    );
    let log: Json = serde_json::from_str(&sarif.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|r| r["ruleId"] == "TPC0710").unwrap();
    let physical = &result["locations"][0]["physicalLocation"];
    assert_eq!(physical["artifactLocation"]["uri"], "src/models/new.cpp");
    assert_eq!(physical["region"]["startLine"], 2);
    let captured = &result["relatedLocations"][0]["physicalLocation"]["artifactLocation"];
    assert!(captured["uri"].as_str().unwrap().ends_with("graph.jsonl"));
    let named = ["--source", &folder, "--architecture", "new"];
    let github = lint(&scratch, &[&named[..], &["--format", "github"]].concat());
    assert!(
        github.stdout.contains("file=src/models/new.cpp,line=2,"),
        "{}",
        github.stdout
    );
    // Without the architecture, the file of any model could be the one.
    let github = lint(&scratch, &["--source", &folder, "--format", "github"]);
    assert!(!github.stdout.contains("new.cpp"), "{}", github.stdout);
    // Another op with this name is not the one.
    sources(&scratch, stem, "ggml_frobnicate(ctx0, cur)");
    let github = lint(&scratch, &[&named[..], &["--format", "github"]].concat());
    assert!(!github.stdout.contains("new.cpp"), "{}", github.stdout);
    let empty = scratch.path("engine/src/models/none");
    fs::create_dir_all(&empty).unwrap();
    refuses(
        &lint(&scratch, &["--source", empty.to_str().unwrap()]),
        2,
        "TPC0400",
    );
    refuses(&lint(&scratch, &["--source", "nowhere"]), 2, "TPC0402");
}
