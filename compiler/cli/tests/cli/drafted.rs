//! Drafts of `tpc run`: repeated text and a second model.

use super::support::{Ran, Scratch, refuses, tpc};
use super::worded::worded;

const LLAMA: &str =
    "llama:layers=2,embd=64,heads=2,kv_heads=2,head_dim=32,ff=96,vocab=286,ctx=512,type=f32";

fn run(model: &str, more: &[&str]) -> Ran {
    let words = [&["run", model, "-t", "1", "--ignore-eos"][..], more].concat();
    let ran = tpc(words);
    assert_eq!(ran.status, 0, "{more:?}: {}", ran.stderr);
    ran
}

/// Returns the numbers of accepted and drafted tokens.
fn drafts(ran: &Ran) -> (usize, usize) {
    let line = ran.stderr.lines().last().unwrap();
    let Some(part) = line
        .split("; ")
        .find(|p| p.ends_with("drafted tokens accepted"))
    else {
        return (0, 0);
    };
    let mut numbers = part.split(' ').filter_map(|w| w.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Returns a file with `n` prompts, some of which repeat themselves.
fn prompts(scratch: &Scratch, n: usize) -> String {
    let line = |i: usize| {
        let word: String = (0..2 + i % 5)
            .map(|k| char::from(b'a' + ((i * 7 + k * (i % 11)) % 26) as u8))
            .collect();
        format!("{word} {word} x{i} {word}\n")
    };
    let text: String = (0..n).map(line).collect();
    scratch.file("prompts", text).to_str().unwrap().to_owned()
}

#[test]
fn two_hundred_answers_do_not_depend_on_drafts() {
    let scratch = Scratch::new();
    let model = worded(&scratch, "a.gguf", LLAMA);
    let other = worded(&scratch, "b.gguf", &format!("{LLAMA},seed=9"));
    let (model, other) = (model.to_str().unwrap(), other.to_str().unwrap());
    let prompts = prompts(&scratch, 200);
    for sampling in [&["--temp", "0"][..], &["--temp", "0.7", "--seed", "5"]] {
        let base = [
            &["--prompts", &prompts, "-n", "20", "-np", "4"][..],
            sampling,
        ]
        .concat();
        let plain = run(model, &base);
        assert_eq!(drafts(&plain), (0, 0));
        assert!(plain.stdout.contains("[200]"));
        for source in [
            &["--spec-type", "ngram-simple"][..],
            &["--model-draft", model],
            &["-md", other],
            &["-md", model, "--spec-type", "ngram-simple,draft-simple"],
        ] {
            let more = [&base[..], source, &["--spec-draft-n-min", "5"]].concat();
            let ran = run(model, &more);
            assert_eq!(ran.stdout, plain.stdout, "{source:?} {sampling:?}");
            let (accepted, drafted) = drafts(&ran);
            assert!(drafted > 0, "{source:?}: {}", ran.stderr);
            // A model agrees with itself.
            let itself = source == ["--model-draft", model] && sampling[1] == "0";
            assert!(
                !itself || accepted == drafted && drafted > 2000,
                "{}",
                ran.stderr
            );
        }
    }
}

/// Compares answers with drafts with the plain answer.
fn drafts_keep_the_answer(models: &[(&str, &str)]) {
    let scratch = Scratch::new();
    for (name, spec) in models {
        let model = worded(&scratch, &format!("{name}.gguf"), spec);
        let model = model.to_str().unwrap();
        let base = [
            "-p",
            "abc abc abc abc",
            "-n",
            "40",
            "--temp",
            "0",
            "-c",
            "128",
        ];
        let plain = run(model, &base);
        for more in [
            &["--spec-type", "ngram-simple"][..],
            &["--spec-type", "ngram-simple", "--spec-draft-n-min", "3"],
            &["-md", model, "--spec-draft-n-min", "3", "--draft-max", "4"],
        ] {
            let ran = run(model, &[&base[..], more].concat());
            assert_eq!(ran.stdout, plain.stdout, "{name} {more:?}");
        }
    }
}

#[test]
fn windows_keep_the_answer() {
    drafts_keep_the_answer(&[("window", "gemma3-tiny:vocab=286")]);
}

#[test]
fn recurrent_states_keep_the_answer() {
    drafts_keep_the_answer(&[
        ("mamba", "mamba2-tiny:vocab=286"),
        ("hybrid", "qwen35-tiny:vocab=286"),
    ]);
}

#[test]
fn devices_keep_the_answer() {
    let scratch = Scratch::new();
    let model = worded(&scratch, "a.gguf", LLAMA);
    let model = model.to_str().unwrap();
    let base = ["-p", "abc abc abc", "-n", "30", "--temp", "0"];
    let devices = [
        "--devices",
        "cpu,cpu",
        "-sm",
        "tensor",
        "--deterministic",
        "on",
    ];
    let plain = run(model, &[&base[..], &devices].concat());
    let forced = ["-md", model, "--spec-draft-n-min", "4"];
    let ran = run(model, &[&base[..], &devices, &forced].concat());
    assert_eq!(ran.stdout, plain.stdout);
    assert!(drafts(&ran).0 > 5, "{}", ran.stderr);
}

#[test]
fn artefacts_draft_within_their_rows() {
    let scratch = Scratch::new();
    let model = worded(&scratch, "a.gguf", LLAMA);
    let model = model.to_str().unwrap();
    let artefact = scratch.path("a.tpc");
    let artefact = artefact.to_str().unwrap();
    let made = tpc(["compile", model, "-o", artefact, "-c", "256"]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    let base = ["-p", "abc abc abc", "-n", "30", "--temp", "0"];
    let plain = run(artefact, &base);
    let forced = [
        "-md",
        model,
        "--spec-draft-n-min",
        "40",
        "--draft-max",
        "40",
    ];
    let ran = run(artefact, &[&base[..], &forced].concat());
    assert_eq!(ran.stdout, plain.stdout);
    assert!(drafts(&ran).1 > 5, "{}", ran.stderr);
}

#[test]
fn unusable_draft_models_are_refused() {
    let scratch = Scratch::new();
    let model = worded(&scratch, "a.gguf", LLAMA);
    let model = model.to_str().unwrap();
    let with = |more: &[&str]| {
        let words = [
            &["run", model, "-p", "abc", "-n", "2", "-t", "1", "-c", "256"][..],
            more,
        ]
        .concat();
        tpc(words)
    };
    let other = scratch.path("other.gguf");
    let other = other.to_str().unwrap();
    let made = tpc(["synth", "llama-tiny:vocab=900,type=f32", "-o", other]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    refuses(&with(&["-md", other]), 2, "TPC0437");
    let made = tpc(["synth", "bert-tiny:vocab=286,type=f32", "-o", other]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    refuses(&with(&["-md", other]), 2, "TPC0437");
    refuses(&with(&["-md", "no/such.gguf"]), 2, "TPC0100");
    refuses(&with(&["--spec-type", "draft-simple"]), 2, "TPC0400");
    refuses(&with(&["--spec-type", "ngram-mod"]), 2, "TPC0400");
    refuses(&with(&["--spec-ngram-simple-size-m", "0"]), 2, "TPC0400");
}

#[test]
fn piped_lines_are_the_turns_of_a_chat() {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let scratch = Scratch::new();
    let model = worded(&scratch, "a.gguf", LLAMA);
    let mut child = Command::new(super::support::TPC)
        .args([
            "run",
            model.to_str().unwrap(),
            "--chat-lines",
            "-n",
            "5",
            "-t",
            "1",
            "-c",
            "512",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = b"ab\n\ncd\n/clear\nef\n/exit\ngh\n";
    child.stdin.take().unwrap().write_all(lines).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    // Three messages of five tokens.
    assert!(ran.stderr.contains("generated 15 tokens"), "{}", ran.stderr);
    refuses(
        &tpc(["run", "m.gguf", "--chat-lines", "-p", "a"]),
        2,
        "TPC0400",
    );
}
