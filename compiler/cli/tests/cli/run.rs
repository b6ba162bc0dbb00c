//! `tpc run`.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::support::{Ran, SMALL, Scratch, TPC, path, refuses, tpc};

fn golden() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/golden");
    let mut all: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path().to_str().unwrap().to_owned())
        .filter(|p| p.ends_with(".gguf"))
        .collect();
    all.sort();
    all.swap_remove(0)
}

fn run(model: &str, options: &[&str]) -> Ran {
    let mut arguments = vec!["run", model];
    arguments.extend(options);
    if !options.contains(&"-t") {
        arguments.extend(["-t", "1"]);
    }
    tpc(arguments)
}

/// Returns the line with the speed, without seconds.
fn told(ran: &Ran) -> String {
    let line = ran.stderr.lines().last().unwrap();
    line.split("; loaded").next().unwrap().to_owned()
}

const IDS: [&str; 4] = ["--tokens", "1,2,3,4,5", "--temp", "0"];

#[test]
fn ids_are_continued_alike_however_they_are_fed_and_divided() {
    let model = golden();
    let with = |more: &[&str]| {
        run(
            &model,
            &[&IDS[..], &["-n", "6", "--ignore-eos"], more].concat(),
        )
    };
    let first = with(&[]);
    assert_eq!(first.status, 0, "{}", first.stderr);
    let ids: Vec<u32> = first
        .stdout
        .trim_end()
        .split(',')
        .map(|id| id.parse().unwrap())
        .collect();
    assert_eq!(ids.len(), 6);
    assert!(
        told(&first).starts_with("prompt 5 tokens, "),
        "{}",
        first.stderr
    );
    assert!(
        told(&first).contains("; generated 6 tokens, "),
        "{}",
        first.stderr
    );
    for more in [
        &["-ub", "2"][..],
        &["-ub", "1"],
        &["-t", "2"],
        &["--devices", "cpu,cpu", "-sm", "tensor"],
        &["-c", "10"],
    ] {
        let other = with(more);
        assert_eq!(
            (other.status, &other.stdout),
            (0, &first.stdout),
            "{more:?}: {}",
            other.stderr
        );
    }
    // The reference executor generates the same tokens.
    let exact = with(&["--executor", "reference"]);
    assert_eq!(exact.status, 0, "{}", exact.stderr);
    assert!(
        exact
            .stdout
            .starts_with(first.stdout.split(',').next().unwrap())
    );
}

#[test]
fn options_that_are_off_are_accepted_and_others_are_not() {
    let model = golden();
    let with = |more: &str| {
        let more: Vec<&str> = more.split(' ').filter(|w| !w.is_empty()).collect();
        run(&model, &[&IDS[..], &["-n", "2"], &more].concat())
    };
    let plain = with("");
    for off in [
        "--mirostat 0 --dry-multiplier 0 --typical 1.0 --xtc-probability 0 --top-nsigma -1",
        "--rope-scaling none --grp-attn-n 1 --dry-base 1.75",
        "--top-k -1 --repeat-last-n -1",
    ] {
        let ran = with(off);
        assert_eq!(
            (ran.status, &ran.stdout),
            (0, &plain.stdout),
            "{off}: {}",
            ran.stderr
        );
    }
    for on in [
        "--mirostat 1",
        "--typical 0.5",
        "--grp-attn-n 2",
        "--repeat-last-n -2",
    ] {
        refuses(&with(on), 2, "TPC0400");
    }
    // The note names unsupported features, and does not claim the same result.
    let ran = with("-sp --mlock");
    assert!(
        ran.stderr.contains("tpc does not support them"),
        "{}",
        ran.stderr
    );
    assert!(
        !ran.stderr.contains("the result is the same"),
        "{}",
        ran.stderr
    );
    for words in ["-st --no-mmap", "-tb 2"] {
        assert!(!with(words).stderr.contains(" plan"), "{words}");
    }
    let ran = with("-c 100000");
    assert!(ran.stderr.contains("TPC0312"), "{}", ran.stderr);
}

#[test]
fn a_seed_decides_what_is_drawn() {
    let model = golden();
    let drawn = |seed: &str| {
        let options = [
            "--tokens", "1,2", "-n", "12", "--temp", "2", "--top-p", "1", "--top-k", "0",
        ];
        run(
            &model,
            &[&options[..], &["--ignore-eos", "--seed", seed]].concat(),
        )
        .stdout
    };
    assert_eq!(drawn("7"), drawn("7"));
    assert_ne!(drawn("7"), drawn("8"));
}

#[test]
fn models_of_diffusion_are_refused_in_words() {
    let scratch = Scratch::new();
    let model = scratch.model("dream-tiny");
    let model = model.to_str().unwrap();
    refuses(&run(model, &IDS), 2, "TPC0428");
    let logits = scratch.path("all.logits");
    let logits = logits.to_str().unwrap();
    let eval = |ubatch: &str| {
        let tokens = ["--tokens", "1,2,3,4,5", "--logits", logits];
        tpc([&["eval", model, "-ub", ubatch][..], &tokens].concat())
    };
    refuses(&eval("4"), 2, "TPC0428");
    assert_eq!(eval("5").status, 0);
}

#[test]
fn the_end_of_the_context_is_told() {
    let model = golden();
    let ran = run(
        &model,
        &[&IDS[..], &["-n", "-1", "-c", "8", "--ignore-eos"]].concat(),
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    // Three of eight cells are free; the last token does not need a cell.
    assert_eq!(ran.stdout.trim_end().split(',').count(), 4);
    assert!(ran.stderr.contains("TPC0425"), "{}", ran.stderr);
    let ran = run(&model, &[&IDS[..], &["-c", "4"]].concat());
    refuses(&ran, 2, "TPC0426");
    let ran = run(&model, &[&IDS[..], &["-n", "0"]].concat());
    assert_eq!((ran.status, ran.stdout.as_str()), (0, ""));
}

#[test]
fn a_model_without_data_is_refused_with_a_cure() {
    refuses(&run(&path(SMALL), &IDS), 2, "TPC0405");
    let scratch = Scratch::new();
    let bytes = std::fs::read(golden()).unwrap();
    let part = scratch.file("part.gguf", &bytes[..bytes.len() / 2]);
    let ran = run(part.to_str().unwrap(), &IDS);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("help: "), "{}", ran.stderr);
    refuses(&run("https://example.com/model.gguf", &IDS), 2, "TPC0405");
}

#[test]
fn wrong_usage_is_told() {
    let model = golden();
    for (options, code) in [
        (&["--tokens", "1,x"][..], "TPC0400"),
        (&["--tokens", "1", "-p", "x"], "TPC0400"),
        (&["--tokens", "1", "-n", "few"], "TPC0400"),
        (&["--tokens", "1", "-t", "0"], "TPC0400"),
        (&["--tokens", "1", "-t", "1,2"], "TPC0400"),
        (&["--tokens", "1", "--devices", "RX 7900 XTX"], "TPC0401"),
        (
            &["--tokens", "1", "--devices", "cuda:0", "--executor", "cpu"],
            "TPC0401",
        ),
        (
            &["--tokens", "1", "--devices", "cpu", "--executor", "cuda"],
            "TPC0401",
        ),
        (&["--tokens", "1", "--temp", "-1"], "TPC0570"),
        (&["--tokens", "1", "--mirostat", "2"], "TPC0400"),
        (&["--tokens", "1", "--gramar", "x"], "TPC0400"),
        // The golden models do not have a supported tokenizer.
        (&["-p", "Hello"], "TPC056"),
    ] {
        refuses(&run(&model, options), 2, code);
    }
    refuses(&run(&model, &["--tokens", "1,999999"]), 2, "TPC0400");
    let listed = ["--tokens", "1", "-t", "2,2,2"];
    refuses(&run(&model, &listed), 2, "TPC0400");
    // Options of llama.cpp: `-m`, layers, threads of batches.
    let ran = tpc([
        "run", "-m", &model, "-ngl", "99", "-tb", "2", "-n", "1", "--tokens", "1",
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_answer_and_the_speed_is_told() {
    let model = golden();
    let mut child = Command::new(TPC)
        .args([
            "run", &model, "--tokens", "1,2,3", "-n", "-1", "-c", "100000",
        ])
        .args(["--ignore-eos", "-t", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    // The first bytes show that generation has begun.
    let mut begin = [0];
    out.read_exact(&mut begin).unwrap();
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    drop(out);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(rest.ends_with('\n'), "{rest}");
    assert!(told(&ran).starts_with("prompt 3 tokens"), "{}", ran.stderr);
}

#[test]
fn a_prompt_may_come_through_a_pipe() {
    let mut child = Command::new(TPC)
        .args(["run", &golden(), "-t", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // tpc refuses the model before it reads standard input, so the pipe may be closed.
    let _ = child.stdin.take().unwrap().write_all(b"Hello");
    let ran = Ran::from(child.wait_with_output().unwrap());
    refuses(&ran, 2, "TPC056");
}
