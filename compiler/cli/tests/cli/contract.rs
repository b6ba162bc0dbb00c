//! The machine-readable output formats.

use serde_json::Value as Json;

use super::support::{SMALL, Scratch, headers, path, plan, tpc};

#[test]
fn a_plan_that_does_not_fit_is_printed_and_fails() {
    let scratch = Scratch::new();
    let text =
        "Topology(devices: [(name: \"a\", memory: Some(1e8), bandwidth: 1e12, flops: 1e14)])";
    let file = scratch.file("small.ron", text);
    let ran = plan(
        SMALL,
        &format!("--devices 2 --topology {} --format json", file.display()),
    );
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("TPC0300"), "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["verdict"], "error");
    documented(&json);
    assert!(!json["advice"].as_array().unwrap().is_empty());
    assert!(
        json["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .any(|d| d["code"] == "TPC0300")
    );
}

#[track_caller]
fn keys(json: &Json, expected: &[&str]) {
    let mut found: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[track_caller]
fn numbers(json: &Json, names: &[&str]) {
    for n in names {
        assert!(json[n].is_u64(), "{n}: {}", json[n]);
    }
}

#[track_caller]
fn strings(json: &Json, names: &[&str]) {
    for n in names {
        assert!(json[n].is_string(), "{n}: {}", json[n]);
    }
}

#[track_caller]
fn place(json: &Json) {
    let bytes = [
        "weights_bytes",
        "kv_bytes",
        "state_bytes",
        "compute_bytes",
        "staging_bytes",
        "total_bytes",
    ];
    keys(
        json,
        &[
            &["name", "kind", "capacity_bytes", "reserve_bytes", "card"][..],
            &["layout_bytes"],
            &bytes,
        ]
        .concat(),
    );
    numbers(json, &["reserve_bytes"]);
    assert!(json["card"].is_null() || json["card"].is_string());
    strings(json, &["name", "kind"]);
    numbers(json, &bytes);
    let parts: i64 = bytes[..4].iter().map(|n| json[n].as_i64().unwrap()).sum();
    let parts = parts + json["layout_bytes"].as_i64().unwrap();
    assert_eq!(json["total_bytes"].as_i64().unwrap(), parts);
    assert!(json["capacity_bytes"].is_null() || json["capacity_bytes"].is_u64());
}

fn range(json: &Json) -> [u64; 2] {
    let pair = json.as_array().unwrap();
    assert_eq!(pair.len(), 2);
    [pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap()]
}

fn ranges(json: &Json) -> Vec<[u64; 2]> {
    match json.as_array().unwrap().first() {
        Some(first) if first.is_array() => json.as_array().unwrap().iter().map(range).collect(),
        Some(_) => vec![range(json)],
        None => Vec::new(),
    }
}

#[track_caller]
fn tensor(json: &Json, devices: usize) {
    keys(
        json,
        &["name", "dtype", "ne", "place", "sharding", "kind", "layer"],
    );
    strings(json, &["name", "dtype", "place", "kind"]);
    assert!(json["layer"].is_null() || json["layer"].is_u64());
    let ne: Vec<u64> = json["ne"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .collect();
    assert_eq!(ne.len(), 4);
    let sharding = &json["sharding"];
    keys(sharding, &["kind", "axis", "ranges"]);
    match sharding["kind"].as_str().unwrap() {
        "mirrored" => assert!(sharding["axis"].is_null()),
        "cells" => assert!(sharding["axis"].is_u64() && json["kind"] == "state"),
        "split" => {
            let axis = sharding["axis"].as_u64().unwrap() as usize;
            let all = sharding["ranges"].as_array().unwrap();
            assert_eq!(all.len(), devices);
            let mut held: Vec<[u64; 2]> =
                all.iter().flat_map(ranges).filter(|r| r[1] > 0).collect();
            held.sort_unstable();
            let mut end = 0;
            for [start, len] in held {
                assert!(start <= end, "{} has a gap at {end}", json["name"]);
                end = end.max(start + len);
            }
            assert_eq!(end, ne[axis], "{}", json["name"]);
        }
        other => panic!("{other}"),
    }
}

#[track_caller]
fn machine(json: &Json, devices: usize) {
    let links = ["link", "links", "host_link"];
    keys(
        json,
        &[&["devices", "host", "assumed"], &links[..]].concat(),
    );
    let all = json["devices"].as_array().unwrap();
    assert_eq!(all.len(), devices);
    for d in all.iter().chain([&json["host"]]) {
        strings(d, &["name"]);
        for n in ["memory", "reserve", "bandwidth", "flops"] {
            assert!(d[n].is_number() || d[n].is_null(), "{n}: {}", d[n]);
        }
    }
    for link in ["link", "host_link"] {
        assert!(json[link]["bandwidth"].is_number() && json[link]["latency_us"].is_number());
    }
}

#[test]
fn plans_for_several_machines_have_their_own_keys() {
    let ran = plan(
        SMALL,
        "--devices 2*2x3090@10gbe -sm tensor -c 4096 --format json",
    );
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    let cluster = &json["cluster"];
    keys(
        cluster,
        &[
            "division",
            "token",
            "prompt_token",
            "network_limits",
            "faster",
        ],
    );
    strings(cluster, &["division"]);
    assert!(cluster["network_limits"].is_boolean());
    for part in ["token", "prompt_token"] {
        keys(&cluster[part], &["between", "inside"]);
        let between = cluster[part]["between"].as_array().unwrap();
        for pair in between {
            keys(pair, &["from", "to", "bytes"]);
            numbers(pair, &["from", "to", "bytes"]);
        }
    }
    for faster in cluster["faster"].as_array().unwrap() {
        keys(faster, &["network", "decode_tps", "prompt_tps"]);
    }
    let network = &json["machine"]["network"];
    keys(network, &["name", "link"]);
    assert!(json["machine"]["machines"].is_array());
}

#[track_caller]
fn commands(json: &Json) {
    let all = [
        "tpc",
        "tpc_reason",
        "llama.cpp",
        "llama.cpp_reason",
        "llama.cpp_by_layers",
        "ik_llama.cpp",
        "ik_llama.cpp_reason",
        "needs",
    ];
    keys(json, &all);
    assert!(all.iter().all(|n| json[n].is_string() || json[n].is_null()));
    // The report has a command, or the reason why a command is missing.
    assert_ne!(
        json["llama.cpp"].is_null(),
        json["llama.cpp_reason"].is_null()
    );
}

/// Checks the keys and types of the JSON report.
#[track_caller]
pub(crate) fn documented(json: &Json) {
    keys(
        json,
        &[
            "tpc",
            "model",
            "verdict",
            "split_mode",
            "devices",
            "host",
            "tensors",
            "collectives",
            "bits",
            "caches",
            "estimate",
            "mirrored_bytes",
            "rewriting",
            "mirrored",
            "copies",
            "search",
            "considered",
            "advice",
            "machine",
            "commands",
            "diagnostics",
        ],
    );
    machine(&json["machine"], json["devices"].as_array().unwrap().len());
    commands(&json["commands"]);
    let search = &json["search"];
    keys(search, &["distinct", "priced", "optimal", "at_most_above"]);
    let above = search["at_most_above"].as_f64().unwrap();
    assert!(if search["optimal"] == true {
        above == 0.0
    } else {
        above >= 0.0
    });
    let rewriting = &json["rewriting"];
    let counts = [
        "collectives_before",
        "collectives_after",
        "copies_before",
        "copies_after",
    ];
    keys(rewriting, &[&["saturated", "rules"], &counts[..]].concat());
    numbers(rewriting, &counts);
    assert_eq!(json["tpc"], 1);
    assert!(["ok", "error"].contains(&json["verdict"].as_str().unwrap()));
    let modes = ["none", "layer", "tensor", "hybrid"];
    assert!(modes.contains(&json["split_mode"].as_str().unwrap()));
    for a in json["advice"].as_array().unwrap() {
        keys(
            a,
            &[
                "options",
                "decode_tps",
                "prompt_tps",
                "depth",
                "fits",
                "fullest",
                "host_bytes",
                "price",
            ],
        );
        strings(a, &["options", "price"]);
        numbers(a, &["host_bytes", "depth"]);
        assert_eq!(a["fits"], true);
        assert!(a["decode_tps"].is_f64() && a["prompt_tps"].is_f64());
    }
    for c in json["considered"].as_array().unwrap() {
        let figures = [
            "decode_us",
            "prefill_us",
            "fullest_bytes",
            "cost_us",
            "decode_tps",
            "prompt_tps",
        ];
        let words = ["name", "fits", "chosen", "within_error"];
        keys(c, &[&words, &figures[..]].concat());
        strings(c, &["name"]);
        numbers(c, &["fullest_bytes"]);
        let time = |f: &str| c[f].as_f64().is_some_and(|x| x > 0.0);
        let times = [
            "decode_us",
            "prefill_us",
            "cost_us",
            "decode_tps",
            "prompt_tps",
        ];
        assert!(times.into_iter().all(time));
    }
    let model = &json["model"];
    keys(
        model,
        &[
            "path",
            "arch",
            "name",
            "n_layer",
            "n_params",
            "bytes",
            "n_ctx",
            "unused_bytes",
        ],
    );
    strings(model, &["path", "arch", "name"]);
    numbers(
        model,
        &["n_layer", "n_params", "bytes", "n_ctx", "unused_bytes"],
    );
    let devices = json["devices"].as_array().unwrap();
    devices.iter().for_each(place);
    place(&json["host"]);
    let group = match json["split_mode"].as_str() {
        Some("tensor") => devices.len(),
        // The name is like `layer of 2 × tensor of 4`.
        Some("hybrid") => {
            let all = json["considered"].as_array().unwrap();
            let chosen = all.iter().find(|c| c["chosen"] == true).unwrap();
            let name = chosen["name"].as_str().unwrap();
            name.rsplit(' ').next().unwrap().parse().unwrap()
        }
        _ => 1,
    };
    json["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .for_each(|t| tensor(t, group));
    keys(&json["collectives"], &["decode", "prefill"]);
    for batch in ["decode", "prefill"] {
        let counts = [
            "all_reduce",
            "all_gather",
            "reduce_scatter",
            "all_to_all",
            "copies",
            "bytes",
        ];
        keys(&json["collectives"][batch], &counts);
        numbers(&json["collectives"][batch], &counts);
    }
    let times = [
        "decode_us",
        "prefill_us",
        "baseline_single_us",
        "decode_tps",
        "prompt_tps",
    ];
    let other = [
        "engine",
        "depth",
        "error",
        "breakdown",
        "band",
        "calibrated",
        "not_calibrated_for",
    ];
    keys(&json["estimate"], &[&times[..], &other].concat());
    let parts = [
        "weights_us",
        "attention_us",
        "other_us",
        "launches_us",
        "collectives_us",
        "host_us",
    ];
    keys(&json["estimate"]["breakdown"], &parts);
    strings(&json["estimate"], &["engine"]);
    numbers(&json["estimate"], &["depth"]);
    assert!(
        times
            .iter()
            .all(|t| json["estimate"][t].as_f64().is_some_and(|x| x > 0.0))
    );
    numbers(json, &["mirrored_bytes"]);
    json["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .for_each(diagnostic);
}

#[track_caller]
fn diagnostic(json: &Json) {
    keys(json, &["code", "severity", "message", "entity", "help"]);
    strings(json, &["code", "severity", "message", "entity"]);
    assert!(json["code"].as_str().unwrap().starts_with("TPC"));
    assert!(["error", "warning", "note"].contains(&json["severity"].as_str().unwrap()));
    assert!(json["help"].is_null() || json["help"].is_string());
}

#[test]
fn json_has_the_documented_keys() {
    for options in [
        "",
        "--devices 3",
        "--devices 12",
        "--devices 2 -sm none",
        "--devices cpu,cuda:0 -ts 3,1",
    ] {
        for header in [SMALL, "gpt-oss", "phi-4"] {
            let ran = plan(header, &format!("{options} --format json"));
            assert_eq!(ran.status, 0, "{}", ran.stderr);
            documented(&serde_json::from_str(&ran.stdout).unwrap());
        }
    }
}

#[test]
fn json_of_a_refusal_has_the_verdict_and_the_diagnostics() {
    let scratch = Scratch::new();
    let missing = scratch.path("missing.gguf");
    let missing = missing.to_str().unwrap();
    let model = path(SMALL);
    for (words, status) in [
        (vec!["plan", missing], 2),
        (vec!["plan", &model, "--devices", "0"], 2),
        (vec!["plan", &model, "-ot", "x=nowhere"], 2),
        (vec!["plan", &model, "--ctx-size", "some"], 2),
    ] {
        let ran = tpc(words.iter().chain(&["--format", "json"]));
        assert_eq!(ran.status, status);
        let json: Json = serde_json::from_str(&ran.stdout).unwrap();
        keys(&json, &["tpc", "model", "verdict", "diagnostics"]);
        assert_eq!(
            (&json["tpc"], &json["verdict"]),
            (&Json::from(1), &Json::from("error"))
        );
        assert_eq!(json["model"]["path"], words[1]);
        let all = json["diagnostics"].as_array().unwrap();
        all.iter().for_each(diagnostic);
        assert!(ran.stderr.contains(all[0]["code"].as_str().unwrap()));
        let ran = tpc(words.iter().chain(&["--format", "ron"]));
        assert_eq!(ran.status, status);
        assert!(
            ron::from_str::<ron::Value>(&ran.stdout).is_ok(),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn ron_says_what_json_says() {
    let json = plan(SMALL, "--devices 3 --format json");
    let ron = plan(SMALL, "--devices 3 --format ron");
    let json: Json = serde_json::from_str(&json.stdout).unwrap();
    let ron: ron::Value = ron::from_str(&ron.stdout).unwrap();
    let get = |names: &[&str]| {
        names.iter().fold(ron.clone(), |v, name| match v {
            ron::Value::Map(map) => map[&ron::Value::String((*name).to_owned())].clone(),
            other => panic!("{name} of {other:?}"),
        })
    };
    assert_eq!(get(&["verdict"]), ron::Value::String("ok".to_owned()));
    let ron::Value::Number(n) = get(&["model", "n_params"]) else {
        panic!()
    };
    assert_eq!(n.into_f64(), json["model"]["n_params"].as_f64().unwrap());
    let ron::Value::Seq(tensors) = get(&["tensors"]) else {
        panic!()
    };
    assert_eq!(tensors.len(), json["tensors"].as_array().unwrap().len());
}

#[test]
fn devices_hold_the_file_and_what_is_mirrored() {
    for header in headers() {
        for n in 1..=8_u64 {
            let ran = tpc([
                "plan",
                &header,
                "--devices",
                &n.to_string(),
                "-c",
                "512",
                "--format",
                "json",
            ]);
            assert_eq!(ran.status, 0, "{header}: {}", ran.stderr);
            let json: Json = serde_json::from_str(&ran.stdout).unwrap();
            let number = |v: &Json| v.as_u64().unwrap();
            let held: u64 = json["devices"]
                .as_array()
                .unwrap()
                .iter()
                .map(|d| number(&d["weights_bytes"]))
                .sum();
            let held = held + number(&json["host"]["weights_bytes"]);
            let used = number(&json["model"]["bytes"]) - number(&json["model"]["unused_bytes"]);
            assert_eq!(
                held,
                used + number(&json["mirrored_bytes"]),
                "{header} on {n}"
            );
            if n == 1 {
                assert_eq!(number(&json["mirrored_bytes"]), 0, "{header}");
            }
            let causes: u64 = json["mirrored"]
                .as_object()
                .unwrap()
                .values()
                .map(number)
                .sum();
            assert_eq!(causes, number(&json["mirrored_bytes"]), "{header} on {n}");
        }
    }
}
