//! `--cache-split`: plans, runs, sessions and artefacts with caches divided by cells.

use std::path::Path;

use super::support::{Ran, Scratch, json, plan, refuses, tpc};

/// Two KV heads and latent attention: neither divides among three devices.
const MODELS: [&str; 2] = [
    "llama-tiny:layers=2,type=q8_0",
    "deepseek2-tiny:layers=2,type=q8_0",
];

const BY_CELLS: [&str; 6] = [
    "--devices",
    "cpu,cpu,cpu",
    "-sm",
    "tensor",
    "--cache-split",
    "cells",
];

fn run(model: &Path, options: &[&str]) -> Ran {
    let model = model.to_str().unwrap();
    let first = ["run", model, "--temp", "0", "--ignore-eos", "-t", "1"];
    tpc(first.iter().chain(options))
}

/// Returns a prompt over several blocks of cells.
fn prompt() -> String {
    let tokens: Vec<String> = (0..140)
        .map(|i| ((i * 7 + i * i) % 60 + 1).to_string())
        .collect();
    tokens.join(",")
}

#[test]
fn answers_do_not_depend_on_the_division() {
    let scratch = Scratch::new();
    let prompt = prompt();
    for spec in MODELS {
        let model = scratch.model(spec);
        let options = ["--tokens", &prompt, "-n", "6", "-c", "256"];
        let whole = run(&model, &[&options[..], &["--devices", "cpu"]].concat());
        assert_eq!(whole.status, 0, "{spec}: {}", whole.stderr);
        let cells = run(&model, &[&options[..], &BY_CELLS].concat());
        assert_eq!(cells.status, 0, "{spec}: {}", cells.stderr);
        assert_eq!(cells.stdout, whole.stdout, "{spec}");
        // Several prompts, each with whole rounds of blocks.
        let several = [
            "--tokens", &prompt, "--tokens", "1,2,3", "-n", "4", "-np", "2", "-c", "640",
        ];
        let ran = run(&model, &[&several[..], &BY_CELLS].concat());
        let alone = run(&model, &[&several[..], &["--devices", "cpu"]].concat());
        assert_eq!(ran.stdout, alone.stdout, "{spec}: {}", ran.stderr);
    }
}

#[test]
fn a_session_moves_between_divisions() {
    let scratch = Scratch::new();
    let prompt = prompt();
    let model = scratch.model(MODELS[1]);
    let file = scratch.path("session");
    let file = file.to_str().unwrap();
    let options = ["--tokens", &prompt, "-n", "4", "-c", "384", "--save", file];
    let saved = run(&model, &[&options[..], &BY_CELLS].concat());
    assert_eq!(saved.status, 0, "{}", saved.stderr);
    let more = ["--load", file, "--tokens", "5,6", "-n", "5", "-c", "384"];
    let there = run(&model, &[&more[..], &BY_CELLS].concat());
    let here = run(&model, &[&more[..], &["--devices", "cpu"]].concat());
    assert_eq!(here.status, 0, "{}", here.stderr);
    assert_eq!(there.stdout, here.stdout, "{}", there.stderr);
}

#[test]
fn an_artefact_keeps_the_division() {
    let scratch = Scratch::new();
    let model = scratch.model(MODELS[0]);
    let out = scratch.path("m.tpc");
    let (from, to) = (model.to_str().unwrap(), out.to_str().unwrap());
    let first = ["compile", from, "-o", to, "-c", "256", "-ub", "16"];
    let made = tpc(first.iter().chain(&BY_CELLS));
    assert_eq!(made.status, 0, "{}", made.stderr);
    let checked = tpc(["check", to]);
    assert_eq!(checked.status, 0, "{}", checked.stderr);
    let prompt = prompt();
    let options = ["--tokens", &prompt, "-n", "5"];
    let ran = run(&out, &options);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let whole = run(
        &model,
        &[&options[..], &["-c", "256", "--devices", "cpu"]].concat(),
    );
    assert_eq!(ran.stdout, whole.stdout);
}

#[test]
fn a_plan_states_copies_and_bytes() {
    let header = "qwen3-30b-a3b-q4_k_m";
    let of = |split: &str| {
        let path = super::support::path(header);
        json(&[
            "plan",
            &path,
            "--devices",
            "8",
            "-c",
            "8192",
            "-sm",
            "tensor",
            "--cache-split",
            split,
            "--format",
            "json",
        ])
    };
    let (heads, cells) = (of("heads"), of("cells"));
    assert_eq!(heads["caches"]["split"], "heads");
    assert_eq!(cells["caches"]["split"], "cells");
    let bytes = |of: &serde_json::Value, key: &str| of["caches"][key].as_u64().unwrap();
    assert_eq!(
        bytes(&heads, "stored_bytes"),
        2 * bytes(&heads, "once_bytes")
    );
    assert_eq!(bytes(&cells, "stored_bytes"), bytes(&cells, "once_bytes"));
    let text = plan(header, "--devices 8 -c 8192 -sm tensor --cache-split cells").stdout;
    assert!(text.contains("one copy of each cell"), "{text}");
    let text = plan(header, "--devices 8 -c 8192 -sm tensor --cache-split heads").stdout;
    assert!(text.contains("devices store 2 copies"), "{text}");
}

#[test]
fn auto_divides_by_cells_where_that_is_faster() {
    let header = "qwen3-30b-a3b-q4_k_m";
    for (depth, split) in [(0, "heads"), (32_000, "heads"), (128_000, "cells")] {
        let options =
            format!("--devices 8xH100-SXM -c 131072 -sm tensor --depth {depth} --format json");
        let plan: serde_json::Value =
            serde_json::from_str(&plan(header, &options).stdout).expect("JSON");
        assert_eq!(plan["caches"]["split"], split, "depth {depth}");
    }
}

#[test]
fn wrong_requests_are_refused() {
    let header = "qwen3-30b-a3b-q4_k_m";
    refuses(
        &plan(header, "--devices 2 --cache-split rows"),
        2,
        "TPC0400",
    );
    let both = "--devices 8 -c 8192 -sm tensor --cache-split cells --deterministic on";
    refuses(&plan(header, both), 1, "TPC0396");
}
