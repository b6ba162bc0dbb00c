//! `tpc lint`.

use serde_json::Value as Json;

use super::support::{SMALL, Scratch, path, refuses, tpc, words};

fn lint(header: &str, options: &str) -> super::support::Ran {
    let mut arguments = vec!["lint".to_owned(), path(header)];
    arguments.extend(options.split_whitespace().map(str::to_owned));
    tpc(arguments)
}

fn capture(name: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    format!("{root}/../../tests/data/graphs/{name}.jsonl")
}

#[test]
fn what_is_found_goes_to_standard_error_and_its_sum_to_standard_output() {
    let ran = lint("phi-4", "--devices 8 -sm tensor");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("TPC0306"), "{}", ran.stderr);
    assert!(ran.stdout.contains("0 errors, "), "{}", ran.stdout);
}

#[test]
fn warnings_may_be_denied_and_findings_left_out() {
    let options = "--devices 2 -ot ffn_dwn=CPU";
    assert_eq!(lint(SMALL, options).status, 0);
    for deny in ["warnings", "TPC0311", "tpc0301,TPC0311"] {
        let ran = lint(SMALL, &format!("{options} --deny {deny}"));
        assert_eq!(ran.status, 1, "{}", ran.stderr);
        assert!(words(&ran.stderr).contains("an error by --deny"));
    }
    let ran = lint(SMALL, &format!("{options} --deny warnings --allow TPC0311"));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("TPC0311"));
}

#[test]
fn several_numbers_of_devices_make_one_finding() {
    let ran = lint("phi-4", "--devices 2..8 -sm tensor --format json");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["devices"], serde_json::json!([2, 3, 4, 5, 6, 7, 8]));
    let all = json["findings"].as_array().unwrap();
    let shared: Vec<&Json> = all.iter().filter(|f| f["code"] == "TPC0306").collect();
    assert_eq!(shared.len(), 1, "{shared:?}");
    assert!(shared[0]["devices"].as_array().unwrap().len() > 1);
    let of = |f: &Json| (f["code"].to_string(), f["entity"].to_string());
    for f in all {
        for key in ["code", "severity", "message", "entity", "count", "layers"] {
            assert!(!f[key].is_null(), "{key}: {f}");
        }
    }
    assert_eq!(
        json["verdict"],
        "ok",
        "{:?}",
        all.iter().map(of).collect::<Vec<_>>()
    );
}

#[test]
fn machine_formats_come_also_when_there_is_nothing_to_lint() {
    let scratch = Scratch::new();
    let file = scratch.file("broken.gguf", b"GGUF\x03\0\0\0");
    for format in ["json", "sarif", "github"] {
        let ran = tpc(["lint", file.to_str().unwrap(), "--format", format]);
        assert_eq!(ran.status, 2, "{}", ran.stderr);
        assert!(ran.stdout.contains("TPC0103"), "{format}: {}", ran.stdout);
    }
    refuses(&tpc(["lint", file.to_str().unwrap()]), 2, "TPC0103");
}

#[test]
fn sarif_has_what_readers_rely_on() {
    let arguments = [
        "lint",
        "--graph",
        &capture("deepseek2-moe"),
        "--devices",
        "2..3",
    ];
    let ran = tpc(arguments.iter().copied().chain(["--format", "sarif"]));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let log: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            assert!(
                rule[text]["text"].as_str().is_some_and(|t| !t.is_empty()),
                "{rule}"
            );
        }
    }
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for r in results {
        let rule = &rules[usize::try_from(r["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], r["ruleId"]);
        assert!(["note", "warning", "error"].contains(&r["level"].as_str().unwrap()));
        assert!(r["occurrenceCount"].as_u64().unwrap() > 0);
        let at = &r["locations"][0];
        let file = at["physicalLocation"]["artifactLocation"]["uri"]
            .as_str()
            .unwrap();
        assert!(file.ends_with("deepseek2-moe.jsonl"), "{file}");
        let print = &r["partialFingerprints"]["tpcFinding/v1"];
        assert_eq!(print.as_str().unwrap().len(), 16);
    }
    let named = |r: &&Json| !r["locations"][0]["logicalLocations"][0]["name"].is_null();
    assert!(results.iter().any(|r| named(&r)));
}

#[test]
fn github_annotations_are_one_line_each() {
    let ran = tpc([
        "lint",
        "--graph",
        &capture("deepseek2-moe"),
        "--format",
        "github",
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for line in ran.stdout.lines() {
        let known = ["::notice file=", "::warning file=", "::error file="];
        assert!(known.iter().any(|k| line.starts_with(k)), "{line}");
    }
}

#[test]
fn unusable_options_are_told() {
    refuses(&lint(SMALL, "--devices 5..2"), 2, "TPC0400");
    refuses(&lint(SMALL, "--devices 0..2"), 2, "TPC0400");
    refuses(&lint(SMALL, "--devices 0"), 2, "TPC0400");
    refuses(&lint(SMALL, "--deny TPC9999"), 2, "TPC0407");
    refuses(&lint(SMALL, "--allow nonsense"), 2, "TPC0407");
    let both = lint(SMALL, "--deny TPC0301 --allow TPC0301");
    refuses(&both, 2, "TPC0400");
}
