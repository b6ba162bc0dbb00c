//! The commands that show information: `explain`, `inspect` and others.

use std::path::Path;

use super::support::{SMALL, path, refuses, tpc};

#[test]
fn explain_knows_every_code() {
    let list = tpc(["explain"]);
    assert_eq!((list.status, list.stderr.as_str()), (0, ""));
    let codes: Vec<&str> = list
        .stdout
        .lines()
        .map(|l| l.split_whitespace().next().unwrap())
        .collect();
    assert!(codes.len() > 100 && codes.is_sorted());
    let mut unique = codes.clone();
    unique.dedup();
    assert_eq!(unique, codes);
    for (code, full) in [
        ("TPC0100", "TPC0100"),
        ("tpc0301", "TPC0301"),
        ("306", "TPC0306"),
        ("0306", "TPC0306"),
        ("tpc306", "TPC0306"),
        ("TPC0408", "TPC0408"),
    ] {
        let one = tpc(["explain", code]);
        assert_eq!((one.status, one.stderr.as_str()), (0, ""));
        assert!(one.stdout.starts_with(full), "{}", one.stdout);
        assert!(one.stdout.lines().count() > 2);
    }
    for code in ["TPC9999", "", "03011", "TPC0301x"] {
        refuses(&tpc(["explain", code]), 2, "TPC0407");
    }
}

#[test]
fn inspect_tells_what_is_in_a_header() {
    let model = path(SMALL);
    let short = tpc(["inspect", &model]);
    assert_eq!((short.status, short.stderr.as_str()), (0, ""));
    for part in [
        "header only",
        "general.architecture",
        "qwen3",
        "tensors",
        "q8_0",
    ] {
        assert!(short.stdout.contains(part), "{part}: {}", short.stdout);
    }
    let long = tpc(["inspect", &model, "--verbose"]);
    assert!(
        long.stdout.contains("blk.27.ffn_down.weight"),
        "{}",
        long.stdout
    );
    assert!(long.stdout.len() > short.stdout.len());
}

#[test]
fn what_is_dumped_parses_and_verifies() {
    for header in [SMALL, "gpt-oss", "phi-4", "gemma-3"] {
        for stage in ["model", "sharded", "programs"] {
            let ran = tpc(["dump", &path(header), "--devices", "3", "--stage", stage]);
            assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
            let parsed = tpc_ir::text::parse(&ran.stdout)
                .unwrap_or_else(|e| panic!("{header} {stage}: {e:?}"));
            assert!(
                tpc_ir::verify::verify(&parsed.graph).is_ok(),
                "{header} {stage}"
            );
            assert_eq!(parsed.graph.to_string(), ran.stdout, "{header} {stage}");
        }
        let ran = tpc(["dump", &path(header), "--stage", "factors"]);
        assert!(
            ran.status == 0 && ran.stdout.contains("may be split"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn factors_are_told_per_kind_of_layer() {
    let ran = tpc(["dump", &path(SMALL), "--stage", "factors"]);
    for part in [
        "before the first layer",
        "layers 0-27 are equal; layer 0",
        "after the last layer",
        "(kv heads); ranges may end anywhere",
        "blk.0.attn_q.weight axis 1 (major of 3 factors)",
        "`rope` of Qcur-0 (layer 0) needs axis 0 of",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs/falcon-h1-dense.jsonl");
    let ran = tpc([
        "dump",
        "--graph",
        capture.to_str().unwrap(),
        "--stage",
        "factors",
    ]);
    for part in ["(state heads)", "segment 5 of 5", "cache_s_l0"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}
