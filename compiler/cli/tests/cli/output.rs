//! Streams and colours.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use super::support::{Ran, SMALL, Scratch, TPC, finished, path, plan, tpc};

#[test]
fn results_go_to_standard_output_and_diagnostics_to_standard_error() {
    let fine = plan("llama-3.1-8b", "--devices 2 -sm tensor -c 8192");
    assert_eq!((fine.status, fine.stderr.as_str()), (0, ""));
    assert!(fine.stdout.contains("32 layers"), "{}", fine.stdout);
    let warned = plan(SMALL, "--devices 12 -sm tensor");
    assert_eq!(warned.status, 0);
    assert!(warned.stderr.contains("TPC0302"), "{}", warned.stderr);
    assert!(!warned.stdout.contains("TPC03"), "{}", warned.stdout);
    for word in ["--help", "--version", "help"] {
        let answer = tpc([word]);
        assert_eq!((answer.status, answer.stderr.as_str()), (0, ""), "{word}");
        assert!(answer.stdout.contains("tpc"), "{}", answer.stdout);
    }
    for command in ["plan", "inspect", "dump", "eval", "synth", "explain"] {
        let answer = tpc([command, "--help"]);
        assert_eq!(
            (answer.status, answer.stderr.as_str()),
            (0, ""),
            "{command}"
        );
    }
}

#[test]
fn colour_is_for_terminals_only() {
    for value in [None, Some("1"), Some("")] {
        let mut command = Command::new(TPC);
        command
            .args(["plan", "--devices", "0", "x"])
            .env_remove("NO_COLOR");
        command
            .env("CLICOLOR_FORCE", "1")
            .env("FORCE_COLOR", "1")
            .env("TERM", "xterm-256color");
        if let Some(v) = value {
            command.env("NO_COLOR", v);
        }
        let ran = finished(&mut command);
        assert!(!ran.stderr.contains('\x1b'), "{:?}", ran.stderr);
    }
    for command in [&["plan", "--help"][..], &["plan", "--bogus"]] {
        let mut command = {
            let mut c = Command::new(TPC);
            c.args(command);
            c
        };
        let ran = finished(command.env("CLICOLOR_FORCE", "1"));
        assert!(!(ran.stdout + &ran.stderr).contains('\x1b'));
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_output_quietly() {
    let model = path("llama-3.1-405b");
    for words in [
        vec!["dump", &model, "--stage", "programs", "--devices", "2"],
        vec!["plan", &model, "--format", "json"],
        vec!["inspect", &model, "-v"],
        vec!["explain"],
        vec!["--help"],
    ] {
        let mut child = Command::new(TPC)
            .args(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut first = [0; 16];
        if words[0] == "dump" {
            out.read_exact(&mut first).unwrap();
        }
        drop(out);
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{words:?}");
    }
    let mut child = Command::new(TPC)
        .args(["plan", "nonesuch"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn two_runs_are_alike() {
    let model = path("gpt-oss");
    let again = |words: &[&str]| {
        let first = tpc(words);
        assert_eq!(first.status, 0, "{}", first.stderr);
        assert_eq!(first, tpc(words), "{words:?}");
    };
    for format in ["table", "json", "ron"] {
        again(&["plan", &model, "--devices", "3", "--format", format, "-v"]);
    }
    for stage in ["model", "factors", "sharded", "programs"] {
        again(&["dump", &model, "--devices", "3", "--stage", stage]);
    }
    again(&["inspect", &model, "-v"]);
    again(&["explain"]);
    let scratch = Scratch::new();
    let bytes = || fs::read(scratch.model("llama-tiny")).unwrap();
    assert!(bytes() == bytes());
}
