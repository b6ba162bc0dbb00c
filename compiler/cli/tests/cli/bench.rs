//! `tpc bench`.

use std::process::Command;

use serde_json::Value as Json;

use super::support::{Ran, SMALL, Scratch, TPC, finished, json, path, refuses, tpc};

const QUICK: [&str; 6] = ["-p", "4,8", "-n", "2", "-r", "2"];

fn bench(model: &str, options: &[&str]) -> Ran {
    tpc([&["bench", model, "-t", "1"], options].concat())
}

fn rows(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .map(|row| row.split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_table_is_llama_benchs() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    let ran = bench(model, &[&QUICK[..], &["-d", "0,3"]].concat());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let rows = rows(&ran.stdout);
    let heads = [
        "", "model", "size", "params", "backend", "threads", "test", "t/s", "",
    ];
    assert_eq!(rows[0], heads);
    let tests: Vec<&str> = rows[2..].iter().map(|r| r[6]).collect();
    let expected = ["pp4", "pp8", "tg2", "pp4 @ d3", "pp8 @ d3", "tg2 @ d3"];
    assert_eq!(tests, expected);
    for row in &rows[2..] {
        let (mean, deviation) = row[7].split_once(" ± ").unwrap();
        assert!(mean.parse::<f64>().unwrap() > 0.0 && deviation.parse::<f64>().is_ok());
    }
    let ran = bench(model, &[&QUICK[..], &["-d", "3", "-np", "3"]].concat());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    for test in ["pp4 @ d3 ×3", "pp8 @ d3 ×3", "tg2 @ d3 ×3"] {
        assert!(ran.stdout.contains(test), "{}", ran.stdout);
    }
}

#[test]
fn json_has_llama_benchs_keys() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    let words = [
        &["bench", model][..],
        &QUICK,
        &["-t", "1", "--format", "json"],
    ]
    .concat();
    let rows = json(&words);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for (row, (n_prompt, n_gen)) in rows.iter().zip([(4, 0), (8, 0), (0, 2)]) {
        assert_eq!(
            (&row["n_prompt"], &row["n_gen"]),
            (&n_prompt.into(), &n_gen.into())
        );
        assert_eq!(row["n_depth"], 0);
        assert_eq!(row["threads"], 1);
        assert_eq!(row["samples_ts"].as_array().unwrap().len(), 2);
        for key in [
            "model",
            "size",
            "params",
            "backend",
            "devices",
            "avg_ts",
            "stddev_ts",
            "stddev_ns",
            "model_type",
            "n_threads",
            "n_ubatch",
            "type_k",
            "type_v",
        ] {
            assert!(!row[key].is_null(), "{key}");
        }
        assert!(row.get("profile").is_none());
    }
}

#[test]
fn llama_benchs_options_are_understood_or_explained() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    let one = ["-p", "0", "-n", "0", "-pg", "4,2", "-r", "1"];
    let more = [
        "-mmp",
        "0",
        "-embd",
        "0",
        "-nkvo",
        "1",
        "--delay",
        "1",
        "-ctk",
        "q8_0",
        "--no-warmup",
    ];
    let ran = bench(model, &[&one[..], &more].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains(" plan"), "{}", ran.stderr);
    let rows = rows(&ran.stdout);
    assert_eq!(
        (rows[0][6], rows[2][6], rows[2][7]),
        ("type_k", "q8_0", "pp4+tg2")
    );
    for form in ["jsonl", "csv"] {
        let ran = bench(model, &[&one[..], &["-o", form, "-nkvo", "0"]].concat());
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        let last = ran.stdout.lines().last().unwrap();
        match form {
            "csv" => assert_eq!(last.split("\",\"").count(), 18, "{last}"),
            _ => assert_eq!(
                serde_json::from_str::<serde_json::Value>(last).unwrap()["n_gen"],
                2
            ),
        }
    }
    for list in [["-ub", "16,32"], ["-fa", "0,1"]] {
        let ran = bench(model, &[&one[..], &list].concat());
        refuses(&ran, 2, "TPC0400");
        assert!(ran.stderr.contains("for v in "), "{}", ran.stderr);
    }
}

#[cfg(unix)]
#[test]
fn the_other_program_ends_with_this_one() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let file = scratch.path("pid");
    let other = format!("echo $$ > {}; sleep 100; echo", file.display());
    let mut child = Command::new(TPC)
        .args([
            "bench",
            model.to_str().unwrap(),
            "-p",
            "2",
            "-n",
            "0",
            "-t",
            "1",
        ])
        .args(["--compare", &other])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let pid = loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_owned();
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it has not begun"
        );
        std::thread::sleep(Duration::from_millis(20));
    };
    let kill = |signal: &str, pid: &str| {
        let status = Command::new("kill")
            .args([signal, pid])
            .stderr(Stdio::null())
            .status();
        status.unwrap().success()
    };
    assert!(kill("-TERM", &child.id().to_string()));
    assert!(!child.wait().unwrap().success());
    while kill("-0", &pid) {
        assert!(begun.elapsed() < Duration::from_secs(90), "{pid} is left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_profile_accounts_for_the_time() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    let words = [
        &["bench", model][..],
        &QUICK,
        &["-t", "1", "-o", "json", "--profile"],
    ]
    .concat();
    let rows = json(&words);
    for row in rows.as_array().unwrap() {
        let kernels = row["profile"].as_array().unwrap();
        let named = |part: &str| {
            let mut names = kernels.iter().map(|k| k["kernel"].as_str().unwrap());
            names.any(|n| n.starts_with(part))
        };
        assert!(named("mul_mat ") && named("flash_attn"), "{kernels:?}");
        let sum: u64 = kernels.iter().map(|k| k["ns"].as_u64().unwrap()).sum();
        let whole: u64 = row["samples_ns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .sum();
        assert!(0 < sum && sum <= whole, "{sum} of {whole}");
    }
    let ran = bench(model, &[&QUICK[..], &["--profile"]].concat());
    assert!(ran.stdout.contains("between launches"), "{}", ran.stdout);
}

#[test]
fn kernels_of_emulated_cards_are_timed() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    let mut command = Command::new(TPC);
    command.args(["bench", model]).args(QUICK);
    command.args(["-t", "1", "-o", "json", "--profile", "-sm", "tensor"]);
    command.args(["--executor", "emulated-cuda", "--devices", "cuda:0,cuda:1"]);
    command.env("TPC_CUDA_CACHE", env!("CARGO_TARGET_TMPDIR"));
    let ran = finished(&mut command);
    if ran.stderr.contains("TPC0545") {
        return tpc_op_cases::skip(&ran.stderr);
    }
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let rows: Json = serde_json::from_str(&ran.stdout).unwrap();
    for row in rows.as_array().unwrap() {
        let kernels = row["profile"].as_array().unwrap();
        let ns = |part: &str| -> u64 {
            let of = |k: &&Json| k["kernel"].as_str().unwrap().starts_with(part);
            let found = kernels.iter().filter(of);
            found.map(|k| k["ns"].as_u64().unwrap()).sum()
        };
        for part in ["plane_", "flash_", "other devices"] {
            assert!(ns(part) > 0, "{part}: {kernels:?}");
        }
        let samples = row["samples_ns"].as_array().unwrap();
        let whole: u64 = samples.iter().map(|n| n.as_u64().unwrap()).sum();
        assert!(ns("") <= whole, "{} of {whole}", ns(""));
    }
}

#[test]
fn another_program_is_timed_in_turn() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    // tpc is also the other program, with its table and with its JSON.
    for form in ["table", "json"] {
        let other = format!("'{TPC}' bench '{model}' -t 1 -p 4,6 -n 2 -r 1 -o {form}");
        let words = [&QUICK[..], &["--compare", &other]].concat();
        let ran = bench(model, &words);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        let rows = rows(&ran.stdout);
        let at = rows.iter().position(|r| r.get(1) == Some(&"test")).unwrap();
        // Only tpc has `pp8`, only the other side `pp6`.
        let tests: Vec<&str> = rows[at + 2..].iter().map(|r| r[1]).collect();
        assert_eq!(tests, ["pp4", "tg2"]);
        for row in &rows[at + 2..] {
            let (least, most) = row[5].split_once('–').unwrap();
            let [least, ratio, most] = [least, row[4], most].map(|n| n.parse::<f64>().unwrap());
            assert!(0.0 < least && least <= ratio && ratio <= most, "{row:?}");
        }
    }
    let other = format!("'{TPC}' bench '{model}' -t 1 -p 4 -n 2 -r 1 -o json");
    let words = [
        &["bench", model, "-t", "1", "-o", "json"][..],
        &QUICK,
        &["--compare", &other],
    ];
    let rows = json(&words.concat());
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let compare = &row["compare"];
        assert_eq!(compare["samples_ts"].as_array().unwrap().len(), 2);
        assert!(compare["ratio"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_program_without_speeds_is_told() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    let compared = |command: &str| bench(model, &[&QUICK[..], &["--compare", command]].concat());
    for (command, says) in [
        ("echo no model >&2; exit 3", "no model"),
        ("no-such-program-at-all", "no-such-program-at-all"),
        ("echo hello", "does not print readable speeds"),
    ] {
        let ran = compared(command);
        refuses(&ran, 1, "TPC0427");
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
    let ran = compared("echo '{\"n_prompt\": 512, \"avg_ts\": 3.5}'");
    refuses(&ran, 2, "TPC0400");
    assert!(
        ran.stderr.contains("pp512") && ran.stderr.contains("pp4"),
        "{}",
        ran.stderr
    );
    refuses(
        &bench(model, &["--profile", "--compare", "true"]),
        2,
        "TPC0400",
    );
}

#[test]
fn wrong_usage_is_told() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    for options in [
        &["-p", "0", "-n", "0"][..],
        &["-p", "x"],
        &["-r", "0"],
        &["-p", "64", "-c", "32"],
        &["--format", "sql"],
    ] {
        refuses(&bench(model, options), 2, "TPC0400");
    }
    refuses(&bench(&path(SMALL), &QUICK), 2, "TPC0405");
    refuses(&bench("no-such.gguf", &QUICK), 2, "TPC");
}
