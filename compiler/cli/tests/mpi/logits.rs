//! The logits of several processes have the bits of the same plan in one process.

use std::fs;
use std::process::Command;

use crate::support::{Scratch, TPC, ends, goldens, is_full, mpirun};

const WAYS: [(usize, &str); 6] = [
    (2, "-sm tensor"),
    (2, "-sm layer"),
    (4, "-sm tensor"),
    (4, "-sm auto"),
    (4, "-sm tensor --cache-split cells"),
    (4, "-sm layer"),
];

/// Compares the logits of one process and of ranks. Returns false if tpc cannot plan the model.
fn same(
    scratch: &Scratch,
    (model, executor): (&str, &str),
    (ranks, devices, way): (usize, usize, &str),
) -> bool {
    let list: Vec<String> = match executor {
        "cpu" => vec!["cpu".to_owned(); devices],
        _ => (0..devices).map(|card| format!("cuda:{card}")).collect(),
    };
    let list = list.join(",");
    let words = |logits: &str| -> Vec<String> {
        let mut out: Vec<String> = ["eval", model, "--executor", executor, "--devices", &list]
            .map(str::to_owned)
            .to_vec();
        out.extend(["--tokens", "1,5,9,2,7,3,8,4", "--logits", logits].map(str::to_owned));
        out.extend(way.split(' ').map(str::to_owned));
        out
    };
    let (one, several) = (scratch.path("one"), scratch.path("several"));
    let made = Command::new(TPC)
        .args(words(&one))
        .output()
        .expect("tpc runs");
    if !made.status.success() {
        return false;
    }
    let words = words(&several);
    let all: Vec<&str> = [TPC]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .collect();
    let (success, text) = ends(mpirun(ranks, &all));
    assert!(success, "{model} {way} on {ranks} ranks: {text}");
    let read = |path: &str| fs::read(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let equal = read(&one) == read(&several);
    assert!(equal, "{model} {way} on {ranks} ranks: other logits");
    true
}

#[test]
fn logits_have_the_bits_of_one_process() {
    let scratch = Scratch::new();
    let mut checked = 0;
    for (i, path) in goldens().iter().enumerate() {
        let model = path.display().to_string();
        let ways = match is_full() {
            true => WAYS.to_vec(),
            false if i % 6 == 0 => vec![WAYS[i / 6 % WAYS.len()]],
            false => Vec::new(),
        };
        for (devices, way) in ways {
            for ranks in [2, 4] {
                if ranks <= devices {
                    let of = (model.as_str(), "cpu");
                    checked += usize::from(same(&scratch, of, (ranks, devices, way)));
                }
            }
        }
    }
    assert!(checked > 0, "no model was checked");
}

/// Without a C++ compiler, this test passes.
#[test]
fn emulated_cards_have_the_bits_of_one_process() {
    let scratch = Scratch::new();
    let probe = Command::new(TPC)
        .args(["eval", &goldens()[0].display().to_string(), "--tokens", "1"])
        .args([
            "--executor",
            "emulated-cuda",
            "--logits",
            &scratch.path("probe"),
        ])
        .output()
        .expect("tpc runs");
    if !probe.status.success() {
        let text = String::from_utf8_lossy(&probe.stderr);
        assert!(text.contains("no compiler"), "{text}");
        return;
    }
    let each = if is_full() { 1 } else { 40 };
    let mut checked = 0;
    for (i, path) in goldens().iter().enumerate().step_by(each) {
        let (devices, way) = WAYS[i / each % WAYS.len()];
        let (model, ranks) = (path.display().to_string(), 2 + i / each % 2 * (devices - 2));
        let of = (model.as_str(), "emulated-cuda");
        checked += usize::from(same(&scratch, of, (ranks, devices, way)));
    }
    assert!(checked > 0, "no model was checked");
}

#[test]
fn a_run_prints_once_and_ends() {
    let scratch = Scratch::new();
    let model = scratch.model("model.gguf", "llama-tiny");
    let words = [
        TPC,
        "run",
        &model,
        "--tokens",
        "1,2,3",
        "-n",
        "8",
        "--temp",
        "0",
        "--devices",
        "cpu,cpu",
    ];
    let alone = Command::new(TPC)
        .args(&words[1..])
        .output()
        .expect("tpc runs");
    let alone = String::from_utf8_lossy(&alone.stdout).into_owned();
    let out = mpirun(2, &words).output().expect("mpirun runs");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{text}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), alone, "{text}");
    let (success, text) = ends(mpirun(
        2,
        &[
            TPC,
            "bench",
            &model,
            "-p",
            "8",
            "-n",
            "4",
            "-r",
            "1",
            "--devices",
            "cpu,cpu",
        ],
    ));
    assert!(success && text.matches("tg4").count() == 1, "{text}");
}
