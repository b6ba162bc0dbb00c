//! Differences from an earlier plan.

use serde_json::Value as Json;

use super::support::{Ran, SMALL, Scratch, path, plan, tpc};

fn earlier(scratch: &Scratch, header: &str, options: &str) -> String {
    let ran = plan(header, &format!("{options} --format json"));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let file = scratch.file("old.json", ran.stdout);
    file.to_str().unwrap().to_owned()
}

fn diff(header: &str, options: &str, old: &str) -> Ran {
    let mut words = vec!["plan".to_owned(), path(header)];
    words.extend(options.split_whitespace().map(str::to_owned));
    words.extend(["--diff".to_owned(), old.to_owned()]);
    tpc(words)
}

fn json(ran: &Ran) -> Json {
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_plan_does_not_differ_from_itself() {
    let scratch = Scratch::new();
    for options in [
        "--devices 3",
        "--devices 1",
        "--devices 2 -sm layer -c 4096",
    ] {
        let old = earlier(&scratch, SMALL, options);
        let ran = diff(SMALL, options, &old);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(ran.stdout.ends_with("no differences\n"), "{}", ran.stdout);
        let found = json(&diff(SMALL, &format!("{options} --format json"), &old));
        for list in [
            "changed",
            "places",
            "tensors",
            "new_findings",
            "gone_findings",
        ] {
            assert_eq!(found[list], Json::Array(Vec::new()), "{list}");
        }
    }
}

#[test]
fn another_mode_is_told_by_kinds_of_layers() {
    let scratch = Scratch::new();
    let old = earlier(&scratch, SMALL, "--devices 2 -sm layer -c 4096");
    let ran = diff(SMALL, "--devices 2 -sm tensor -c 8192", &old);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.lines().count() < 60, "{}", ran.stdout);
    for part in [
        "layer ",
        "tensor",
        "4096",
        "8192",
        "attn_q.weight, layers 0-",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let found = json(&diff(
        SMALL,
        "--devices 2 -sm tensor -c 8192 --format json",
        &old,
    ));
    let facts: Vec<&str> = found["changed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["what"].as_str().unwrap())
        .collect();
    for what in ["split_mode", "context", "decode_tps"] {
        assert!(facts.contains(&what), "{what}: {facts:?}");
    }
    assert!(!facts.contains(&"verdict"), "{facts:?}");
    // Every layer whose queries moved is in exactly one group.
    let tensors = found["tensors"].as_array().unwrap();
    let mut layers: Vec<u64> = tensors
        .iter()
        .filter(|t| t["tensor"] == "attn_q.weight")
        .flat_map(|t| t["layers"].as_array().unwrap())
        .map(|l| l.as_u64().unwrap())
        .collect();
    layers.sort_unstable();
    assert_eq!(layers, (0..28).collect::<Vec<u64>>());
}

#[test]
fn another_model_is_said_plainly() {
    let scratch = Scratch::new();
    let old = earlier(&scratch, "phi-4", "--devices 2 -c 4096");
    let ran = diff(SMALL, "--devices 2 -c 4096", &old);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("is of another model: Phi 4"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("attn_qkv"), "{}", ran.stdout);
    let found = json(&diff(SMALL, "--devices 2 -c 4096 --format json", &old));
    assert_eq!(found["same_model"], false);
}

#[test]
fn what_is_no_earlier_plan_is_refused() {
    let scratch = Scratch::new();
    let refusal = tpc(["plan", "nowhere.gguf", "--format", "json"]).stdout;
    let lint = tpc(["lint", &path(SMALL), "--format", "json"]).stdout;
    let several = tpc([
        "plan",
        &path(SMALL),
        "--devices",
        "1..2",
        "--format",
        "json",
    ])
    .stdout;
    let plan = earlier(&scratch, SMALL, "--devices 2");
    let plan = std::fs::read_to_string(plan).unwrap();
    let cases: [(&str, &str); 10] = [
        ("", "not JSON"),
        ("not json at all", "not JSON"),
        ("\u{0}\u{1}", "not JSON"),
        (&plan[..plan.len() / 2], "not JSON"),
        ("{}", "not a plan"),
        ("null", "not a plan"),
        (&lint, "not a plan"),
        (&several, "an array"),
        (&refusal, "records a refusal"),
        (&plan.replacen("\"tpc\": 1", "\"tpc\": 7", 1), "version 7"),
    ];
    for (text, why) in cases {
        let old = scratch.file("bad.json", text);
        let ran = diff(SMALL, "--devices 2", old.to_str().unwrap());
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{why}");
        for part in ["TPC0411", why, "help: "] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
    let missing = scratch.path("missing.json");
    let ran = diff(SMALL, "", missing.to_str().unwrap());
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("TPC0402"), "{}", ran.stderr);
}

#[test]
fn findings_come_and_go() {
    let scratch = Scratch::new();
    let old = earlier(&scratch, SMALL, "--devices 12 -sm tensor -c 4096");
    let found = json(&diff(
        SMALL,
        "--devices 2 -sm tensor -c 4096 --format json",
        &old,
    ));
    let gone = found["gone_findings"].as_array().unwrap();
    assert!(gone.iter().any(|f| f["code"] == "TPC0302"), "{found}");
    let old = earlier(&scratch, SMALL, "--devices 2 -sm tensor -c 4096");
    let found = json(&diff(
        SMALL,
        "--devices 12 -sm tensor -c 4096 --format json",
        &old,
    ));
    let new = found["new_findings"].as_array().unwrap();
    assert!(new.iter().any(|f| f["code"] == "TPC0302"), "{found}");
}
