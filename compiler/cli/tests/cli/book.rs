//! The outputs that the README and the book show are the outputs of the commands above them.
//!
//! A shown output is a block after an indented command, at most eight lines below it. A line `…` stands for any lines, and a `…` at
//! the end of a line for the rest of the line. Files are those of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Ran, TPC};

/// Commands that the tests cannot run here, each with the reason.
const ELSEWHERE: [(&str, &str); 6] = [
    ("tpc run model.gguf", "needs a trained model"),
    ("tpc verify llama-3.1-70b.gguf", "needs a large model"),
    ("tpc lint --rpc-command", "needs a program of llama.cpp"),
    (
        "tpc plan qwen3.6-27b-mtp-q4_k_m.gguf",
        "needs a header of 3 MB",
    ),
    ("tpc plan MODEL --topology", "shows the file, not an output"),
    (
        "tpc plan tests/data/headers/qwen3-0.6b-q8_0.header.gguf --devices 2 --ctx-size 4096 -sm tensor --format json",
        "shows one object, on several lines",
    ),
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command with the output that a page shows.
struct Shown {
    page: String,
    command: String,
    lines: Vec<String>,
}

fn shown() -> Vec<Shown> {
    let mut pages = vec!["README.md".to_owned()];
    for entry in fs::read_dir(repository().join("docs/src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            pages.push(format!("docs/src/{name}"));
        }
    }
    pages.sort();
    let mut out = Vec::new();
    for page in pages {
        let text = fs::read_to_string(repository().join(&page)).unwrap();
        read_page(&page, &text, &mut out);
    }
    out
}

fn read_page(page: &str, text: &str, out: &mut Vec<Shown>) {
    let joined = text.replace("\\\n", " ");
    let mut lines = joined.lines();
    let mut command: Option<(String, usize)> = None;
    while let Some(line) = lines.next() {
        let typed = line.strip_prefix("    ").map(str::trim);
        let own = typed.map(|t| t.replace("cargo run --release -p tpc -- ", "tpc "));
        if let Some(own) = own.filter(|t| t.starts_with("tpc ")) {
            command = Some((own, 0));
        } else if line.starts_with("```") {
            let block: Vec<String> = lines
                .by_ref()
                .take_while(|l| *l != "```")
                .map(str::to_owned)
                .collect();
            if let Some((command, _)) = command.take() {
                out.push(Shown {
                    page: page.to_owned(),
                    command,
                    lines: block,
                });
            }
        } else {
            command = command.map(|(c, n)| (c, n + 1)).filter(|(_, n)| *n <= 8);
        }
    }
}

/// Runs a command with the shell's rules of quoting, in the repository.
fn run(command: &str) -> Ran {
    let rest = command.strip_prefix("tpc ").unwrap();
    let out = Command::new("sh")
        .arg("-c")
        .arg(format!("\"$TPC\" {rest}"))
        .env("TPC", TPC)
        .env("NO_COLOR", "1")
        .current_dir(repository())
        .output()
        .unwrap();
    Ran::from(out)
}

/// Returns the first shown line that the output lacks at its place.
fn missing<'a>(shown: &'a [String], output: &str) -> Option<&'a str> {
    let output: Vec<&str> = output.lines().collect();
    let same = |shown: &str, found: &str| match shown.strip_suffix('…') {
        Some(begin) => found.starts_with(begin),
        None => shown.trim_end() == found.trim_end(),
    };
    let (mut at, mut anywhere) = (0, true);
    for line in shown {
        if line.trim() == "…" {
            anywhere = true;
            continue;
        }
        let rest = &output[at..];
        let found = match anywhere {
            true => rest.iter().position(|l| same(line, l)),
            false => rest.first().filter(|l| same(line, l)).map(|_| 0),
        };
        let Some(skipped) = found else {
            return Some(line);
        };
        at += skipped + 1;
        anywhere = false;
    }
    None
}

#[test]
fn shown_outputs_are_real() {
    let all = shown();
    let mut wrong = Vec::new();
    let mut ran = 0;
    for s in &all {
        if ELSEWHERE
            .iter()
            .any(|(begin, _)| s.command.starts_with(begin))
        {
            continue;
        }
        let out = run(&s.command);
        ran += 1;
        let text = format!("{}\n{}", out.stdout, out.stderr);
        if let Some(line) = missing(&s.lines, &text) {
            wrong.push(format!(
                "{}: {}\n  lacks: {line}\n{text:.3000}",
                s.page, s.command
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(ran >= 15, "{ran} outputs are checked");
    for (begin, _) in ELSEWHERE {
        let used = all.iter().any(|s| s.command.starts_with(begin));
        assert!(used, "no page shows `{begin}`");
    }
}

#[test]
fn an_output_that_is_not_real_is_found() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let output = "one\ntwo words\nthree\nfour\n";
    for real in [
        "one\ntwo words",
        "…\nthree\nfour",
        "one\n…\nfour\n…",
        "two w…",
    ] {
        assert_eq!(missing(&lines(real), output), None, "{real}");
    }
    for wrong in ["one\nthree", "three\none", "…\ntwo\n…", "five"] {
        assert!(missing(&lines(wrong), output).is_some(), "{wrong}");
    }
}
