//! `plan --why`.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::support::{SMALL, json, path, refuses, tpc, words};

#[test]
fn why_tells_what_became_of_each_factor() {
    let model = path(SMALL);
    let plan = [
        "plan",
        &model,
        "--devices",
        "2",
        "-c",
        "4096",
        "--format",
        "json",
        "-sm",
        "tensor",
    ];
    let bare = json(&plan);
    assert!(bare.get("why").is_none(), "only who asks is told");
    let one = json(&[&plan[..], &["--why", "blk.3.attn_k.weight"]].concat());
    let why = &one["why"][0];
    assert_eq!(why["tensor"], "blk.3.attn_k.weight");
    assert_eq!((&why["layer"], &why["place"]), (&3.into(), &"tp0".into()));
    let factors = why["factors"].as_array().unwrap();
    let of = |size: u64| factors.iter().find(|f| f["size"] == size).unwrap();
    // KV heads are split, RoPE keeps a head's rows together, and a split of the model width costs more.
    let heads = of(8);
    assert_eq!(
        (&heads["verdict"], &heads["kind"]),
        (&"split".into(), &"kv heads".into())
    );
    assert_eq!(heads["ranges"], serde_json::json!([[0, 4], [4, 4]]));
    let through = heads["through"].as_array().unwrap();
    let queries = through
        .iter()
        .find(|t| t["tensor"] == "blk.3.attn_q.weight");
    assert_eq!(
        (&queries.unwrap()["axis"], &queries.unwrap()["factors"]),
        (&1.into(), &3.into())
    );
    let rows = of(128);
    assert_eq!(
        (&rows["verdict"], &rows["op"]),
        (&"forbidden".into(), &"rope".into())
    );
    assert_eq!(
        (&rows["op_result"], &rows["op_layer"]),
        (&"Qcur-3".into(), &3.into())
    );
    let width = of(1024);
    assert_eq!(width["verdict"], "possible");
    let price = |of: &Json| of["price_us"].as_f64().unwrap();
    assert!(price(&width["alternative"]) > price(&width["chosen"]));
    // The alternative, to keep a split factor whole, costs more.
    assert!(price(&heads["alternative"]) > price(&heads["chosen"]));
    assert_eq!(width["alternative"]["bytes"].as_array().unwrap().len(), 2);
    assert!(width["instead_of"].as_array().unwrap().len() > 28);
    // An alternative within one layer drops the conflicting factors of this layer.
    let one = json(&[&plan[..], &["--why", "blk.3.attn_v.weight"]].concat());
    let rows = &one["why"][0]["factors"].as_array().unwrap()[2];
    assert_eq!(
        (&rows["verdict"], &rows["size"]),
        (&"possible".into(), &128.into())
    );
    assert_eq!(rows["instead_of"].as_array().unwrap().len(), 1);
    let many = json(
        &[
            &plan[..],
            &["--why", "attn_k.weight$", "--why", "token_embd.weight"],
        ]
        .concat(),
    );
    let many = many["why"].as_array().unwrap();
    assert_eq!(many.len(), 2);
    assert_eq!(many[0]["alike"].as_array().unwrap().len(), 27);
    let split = ["plan", &model, "--devices", "2", "-sm", "tensor"];
    let text = tpc([&split[..], &["--why", "attn_k.weight$"]].concat());
    for part in [
        "why blk.0.attn_k.weight (q8_0 1024×1024): axis 1 split on tp0, 2 × 512",
        "the same in layers 0-27",
        "`rope` of Qcur-0 (layer 0) needs axis 0 of",
        "that costs more",
    ] {
        assert!(
            words(&text.stdout).contains(part),
            "{part}: {}",
            text.stdout
        );
    }
    let text = tpc(["plan", &model, "--why", "output_norm.weight"]);
    assert!(
        text.stdout.contains("there is one device"),
        "{}",
        text.stdout
    );
}

#[test]
fn why_finds_tensors_of_captures_by_name_number_and_line() {
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs/llama-dense.jsonl");
    let capture = capture.to_str().unwrap();
    let named = |asked: &str| {
        let words = [
            "plan",
            "--graph",
            capture,
            "--devices",
            "2",
            "--format",
            "json",
            "--why",
            asked,
        ];
        json(&words)["why"][0].clone()
    };
    let by_name = named("blk.0.attn_q.weight");
    let number = by_name["value"].as_str().unwrap().to_owned();
    assert_eq!(named(&number), by_name);
    let text = fs::read_to_string(capture).unwrap();
    let line = text
        .lines()
        .position(|l| l.contains("\"ffn_out-1\""))
        .unwrap()
        + 1;
    let by_line = named(&format!("line:{line}"));
    assert_eq!(
        (&by_line["tensor"], &by_line["layer"]),
        (&"ffn_out-1".into(), &1.into())
    );
    for (asked, help) in [
        ("blk.0.atn_q.weight", "did you mean `blk.0.attn_q.weight`?"),
        ("line:100000", "a tensor's name"),
        ("(", "a tensor's name"),
    ] {
        let ran = tpc(["plan", "--graph", capture, "--devices", "2", "--why", asked]);
        refuses(&ran, 2, "TPC0409");
        assert!(words(&ran.stderr).contains(help), "{}", ran.stderr);
    }
}
