//! `tpc tokenize`.

use std::io::Write;
use std::process::{Command, Stdio};

use super::support::{Ran, Scratch, TPC, tpc};

fn vocabulary() -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    format!("{root}/../../tests/data/vocab/ggml-vocab-phi-3.gguf")
}

fn tokenize(options: &[&str]) -> Ran {
    let model = vocabulary();
    let mut arguments = vec!["tokenize", &model];
    arguments.extend(options);
    tpc(arguments)
}

#[test]
fn a_text_has_the_ids_that_its_file_gives() {
    let ran = tokenize(&["-p", "Hello <|end|>", "--ids"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.starts_with("1,15043,") && !ran.stdout.contains("32007"),
        "{}",
        ran.stdout
    );
    let ran = tokenize(&["-p", "Hello<|end|>", "--ids", "--special", "--no-bos"]);
    assert_eq!(ran.stdout, "15043,32007\n");
    let ran = tokenize(&["-p", "Hello"]);
    assert_eq!(ran.stdout, "      1  \"<s>\"\n  15043  \" Hello\"\n");
}

#[test]
fn scripts_get_the_ids_on_one_line_and_the_text_back() {
    let scratch = Scratch::new();
    let file = scratch.file("hello.txt", "Hello");
    for form in [&["Hello"][..], &["--file", file.to_str().unwrap()]] {
        let ran = tokenize(form);
        assert_eq!((ran.status, ran.stdout.as_str()), (0, "1,15043\n"));
    }
    let ran = tokenize(&["--detokenize", "15043,29892,3186"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "Hello, world\n"));
    for wrong in [
        &["--detokenize", "x"][..],
        &["--detokenize", "4000000"],
        &["a", "-p", "b"],
    ] {
        assert_eq!(tokenize(wrong).status, 2, "{wrong:?}");
    }
}

#[test]
fn a_message_becomes_a_prompt() {
    let ran = tokenize(&["-p", "Hi", "--chat"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = ran
        .stdout
        .lines()
        .map(|l| l.split_once("  \"").unwrap().1)
        .collect();
    assert_eq!(lines[..2], ["<s>\"", "<|user|>\""]);
    assert!(ran.stdout.contains("<|assistant|>"), "{}", ran.stdout);
    assert_eq!(tokenize(&["-p", "Hi", "--chat", "--no-bos"]).status, 2);
}

#[test]
fn the_text_may_come_through_a_pipe() {
    let piped = |bytes: &[u8]| -> Ran {
        let mut child = Command::new(TPC)
            .args(["tokenize", &vocabulary(), "--ids"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        child.wait_with_output().unwrap().into()
    };
    assert_eq!(piped(b"Hello").stdout, "1,15043\n");
    let ran = piped(b"\xff");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("UTF-8"), "{}", ran.stderr);
}

#[test]
fn a_file_without_a_vocabulary_is_refused_in_words() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let ran = tpc(["tokenize", model.to_str().unwrap(), "-p", "x"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("TPC056"), "{}", ran.stderr);
}
