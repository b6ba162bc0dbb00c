//! Every entry that reads a file: each subcommand runs in this process with each of its files damaged, in each format
//! and for each target.
//!
//! `TPC_CASES` sets the number of cases, `TPC_HOSTILE_SEED` the first seed; `TPC_ENTRY` (such as `lint graph`) selects
//! an entry. A case fails if it panics or exceeds [`SLOWEST`] of CPU time or [`MOST`] of memory.

use std::ffi::OsString;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::seeds::{Input, Seeds};
use super::{Scratch, on_processor, said, status};
use crate::random::Rng;
use tpc_tests::Sweep;

const SLOWEST: Duration = Duration::from_secs(2);

/// The memory that a case may add to the process, in KiB.
const MOST: u64 = 500 << 10;

const ENTRIES: &[(&str, &str, Input)] = &[
    ("plan", "model", Input::Gguf),
    ("plan", "graph", Input::Capture),
    ("plan", "topology", Input::Topology),
    ("plan", "more", Input::Gguf),
    ("plan", "diff", Input::Plan),
    ("plan", "html", Input::Written),
    ("plan", "model_draft", Input::Gguf),
    ("plan", "mmproj", Input::Gguf),
    ("plan", "lora", Input::Gguf),
    ("plan", "control_vector", Input::Gguf),
    ("plan", "calibrate", Input::Text),
    ("plan", "write_topology", Input::Written),
    ("lint", "models", Input::Gguf),
    ("lint", "models", Input::Capture),
    ("lint", "config", Input::Settings),
    ("lint", "graph", Input::Capture),
    ("lint", "topology", Input::Topology),
    ("lint", "capture", Input::Written),
    ("lint", "baseline", Input::Text),
    ("lint", "source", Input::Elsewhere),
    ("bisect", "first", Input::Capture),
    ("bisect", "second", Input::Capture),
    ("rpc", "capture", Input::Written),
    ("rpc", "topology", Input::Elsewhere),
    ("verify", "model", Input::Gguf),
    ("verify", "graph", Input::Capture),
    ("verify", "topology", Input::Topology),
    ("verify", "model", Input::Artefact),
    ("verify", "weights", Input::Gguf),
    ("dump", "model", Input::Gguf),
    ("dump", "graph", Input::Capture),
    ("dump", "topology", Input::Topology),
    ("inspect", "model", Input::Gguf),
    ("inspect", "model", Input::Artefact),
    ("compile", "model", Input::Gguf),
    ("compile", "topology", Input::Topology),
    ("compile", "output", Input::Written),
    ("compile", "depfile", Input::Over),
    ("check", "model", Input::Artefact),
    ("check", "weights", Input::Gguf),
    ("check", "topology", Input::Topology),
    ("models", "topology", Input::Topology),
    ("tokenize", "model", Input::Gguf),
    ("tokenize", "file", Input::Text),
    ("eval", "model", Input::Gguf),
    ("eval", "weights", Input::Gguf),
    ("eval", "golden", Input::Golden),
    ("eval", "topology", Input::Topology),
    ("eval", "logits", Input::Written),
    ("eval", "dump_on_fault", Input::Written),
    ("run", "model", Input::Gguf),
    ("run", "dump_on_fault", Input::Written),
    ("run", "model", Input::Artefact),
    ("run", "weights", Input::Gguf),
    ("run", "topology", Input::Topology),
    ("run", "load", Input::Session),
    ("run", "save", Input::Over),
    ("run", "prompt_cache", Input::Session),
    ("run", "prompts", Input::Text),
    ("run", "file", Input::Text),
    ("run", "model_draft", Input::Gguf),
    // A server does not end, and `run` reads these files with the same code.
    ("serve", "model", Input::Elsewhere),
    ("serve", "weights", Input::Elsewhere),
    ("serve", "api_key_file", Input::Elsewhere),
    ("serve", "model_draft", Input::Elsewhere),
    ("serve", "dump_on_fault", Input::Elsewhere),
    ("serve", "topology", Input::Elsewhere),
    ("bench", "model", Input::Gguf),
    ("bench", "weights", Input::Gguf),
    ("bench", "dump_on_fault", Input::Written),
    ("bench", "topology", Input::Topology),
    ("perplexity", "model", Input::Gguf),
    ("perplexity", "weights", Input::Gguf),
    ("perplexity", "file", Input::Text),
    ("perplexity", "save_all_logits", Input::Text),
    ("perplexity", "dump_on_fault", Input::Written),
    ("perplexity", "topology", Input::Topology),
    ("doctor", "write_topology", Input::Written),
    ("replay", "dump", Input::LaunchDump),
    ("synth", "output", Input::Written),
    ("man", "output", Input::Written),
    ("filetest", "files", Input::Elsewhere),
];

#[test]
fn every_argument_that_names_a_file_is_in_the_table() {
    let listed = |command: &str, argument: &str| {
        ENTRIES
            .iter()
            .any(|(c, a, _)| *c == command && *a == argument)
    };
    let found = tpc::catalogue::file_arguments();
    let missing: Vec<_> = found.iter().filter(|(c, a)| !listed(c, a)).collect();
    assert!(missing.is_empty(), "never damaged: {missing:?}");
    for (command, argument, _) in ENTRIES {
        let there = found.iter().any(|(c, a)| c == command && a == argument);
        assert!(there, "tpc {command} has no {argument}");
    }
}

fn options(command: &str, argument: &str, rng: &mut Rng) -> Vec<String> {
    let mut out = Vec::new();
    let mut add = |words: &[&str]| out.extend(words.iter().map(|w| (*w).to_owned()));
    if command == "check" && rng.one_in(2) {
        add(&["--devices", rng.pick::<&str>(&["cpu", "2", "3x3090"])]);
    }
    if !["inspect", "tokenize", "check", "replay", "bisect"].contains(&command)
        && argument != "weights"
    {
        if argument != "topology" || rng.one_in(2) {
            add(&["--devices", rng.pick::<&str>(&["1", "2", "3", "4", "8"])]);
        }
        if rng.one_in(3) {
            add(&[
                "-sm",
                rng.pick::<&str>(&["auto", "none", "layer", "tensor"]),
            ]);
        }
        if rng.one_in(8) {
            add(&[
                "-ot",
                rng.pick::<&str>(&[".*weight=CPU", "ffn.*=host", ".*=mirrored"]),
            ]);
        }
        if rng.one_in(8) {
            add(&["-c", rng.pick::<&str>(&["1", "64", "4096", "1000000"])]);
        }
    }
    match command {
        "plan" => add(&["--format", rng.pick::<&str>(&["table", "json", "ron"])]),
        "lint" if argument == "graph" && rng.one_in(2) => add(&["--target", "ggml-meta"]),
        "lint" => add(&[
            "--format",
            rng.pick::<&str>(&["text", "json", "sarif", "github"]),
        ]),
        "verify" if rng.one_in(2) => add(&["--numeric"]),
        "dump" => {
            let stages = [
                "model", "placed", "factors", "sharded", "rewrite", "programs",
            ];
            add(&["--stage", rng.pick::<&str>(&stages)]);
        }
        "inspect" if rng.one_in(2) => add(&["-v"]),
        "tokenize" if argument == "file" => {}
        "tokenize" if rng.one_in(2) => add(&["-p", "Hello <s> world", "--chat"]),
        "tokenize" => add(&["-p", "Hello <s> world", "--special"]),
        "compile" => add(&["-o", "/dev/null"]),
        "run" if ["file", "prompts"].contains(&argument) => {
            add(&["-n", "2", "-t", "1"]);
            add(rng.pick::<&[&str]>(&[&["--raw"], &["--system-prompt", "a"], &["-np", "2"]]));
        }
        "run" if argument == "load" && rng.one_in(2) => {
            add(&["-c", "256", "-p", "b", "-n", "2", "-t", "1"]);
        }
        "run" => add(&["--tokens", "1,2,3", "-n", "2", "-t", "1"]),
        "perplexity" if argument == "save_all_logits" => add(&["--kl-divergence", "-t", "1"]),
        "perplexity" if argument == "file" => add(&["-t", "1"]),
        "perplexity" => add(&["-p", "Hello world, hello", "-t", "1"]),
        "bench" => add(&["-p", "2", "-n", "1", "-r", "1", "-t", "1"]),
        "eval" if argument != "golden" => add(&["--tokens", "1,2,3"]),
        _ => {}
    }
    out
}

/// Returns a case's command line; `file` is damaged.
fn command_line(
    entry: &(&str, &str, Input),
    file: &Path,
    seeds: &Seeds,
    rng: &mut Rng,
) -> Vec<String> {
    let (command, argument, _) = entry;
    let text = |p: &Path| p.display().to_string();
    let mut line = vec!["tpc".to_owned(), (*command).to_owned()];
    match *argument {
        "model" | "models" | "dump" => line.push(text(file)),
        // The settings name the files to lint.
        "config" if rng.one_in(2) => line.extend(["--config".to_owned(), text(file)]),
        "topology" if *command == "check" => {
            let artefact = text(&seeds.artefact);
            line.extend([artefact, "--topology".to_owned(), text(file)]);
        }
        "weights" => line.extend([text(&seeds.artefact), text(file)]),
        "first" => line.extend([text(file), text(&seeds.capture)]),
        "second" => line.extend([text(&seeds.capture), text(file)]),
        "more" => line.extend([text(&seeds.model), text(file)]),
        "graph" => line.extend(["--graph".to_owned(), text(file)]),
        option => {
            let option = format!("--{}", option.replace('_', "-"));
            line.extend([text(&seeds.model), option, text(file)]);
        }
    }
    line.extend(options(command, argument, rng));
    line
}

struct Case {
    seed: u64,
    line: Vec<String>,
    file: PathBuf,
}

fn failure(case: &Case) -> Option<String> {
    // Reset the peak, to measure only this case.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = status("VmHWM");
    let started = on_processor();
    let line = case.line.iter().map(OsString::from);
    let outcome = catch_unwind(AssertUnwindSafe(|| tpc::run(line)));
    let took = started
        .zip(on_processor())
        .map(|(then, now)| now.saturating_sub(then));
    let grown = before
        .zip(status("VmHWM"))
        .map(|(then, now)| now.saturating_sub(then));
    let what = match (outcome, took, grown) {
        (Err(panic), ..) => format!("panic `{}`", said(panic.as_ref())),
        (_, Some(took), _) if took > SLOWEST => format!("{took:?}"),
        (.., Some(grown)) if grown > MOST => format!("{} MiB", grown >> 10),
        _ => return None,
    };
    Some(format!(
        "seed {}: {what}: {}",
        case.seed,
        case.line.join(" ")
    ))
}

/// Runs cases. Keeps failing files in the folder `TPC_KEEP`, if set.
pub(super) fn damaged() -> (u64, Vec<String>) {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let cases = number("TPC_CASES").unwrap_or(Sweep::asked().pick(160, 3000));
    let only = std::env::var("TPC_ENTRY").unwrap_or_default();
    let entries: Vec<_> = ENTRIES
        .iter()
        .filter(|e| {
            !matches!(e.2, Input::Written | Input::Elsewhere)
                && format!("{} {}", e.0, e.1).starts_with(&only)
        })
        .collect();
    let scratch = Scratch::new();
    let seeds = Seeds::new(&scratch);
    let mut failures = Vec::new();
    for seed in super::first_seed()..super::first_seed() + cases {
        let mut rng = Rng::new(seed);
        let entry = entries[seed as usize % entries.len()];
        let endings = match entry.2 {
            Input::Capture => "jsonl",
            Input::Topology => "ron",
            Input::Plan => "json",
            Input::Settings => "toml",
            Input::Artefact => "tpc",
            Input::Text => "txt",
            Input::Session => "session",
            Input::LaunchDump => "tpcdump",
            Input::Over => "d",
            Input::Gguf | Input::Golden | Input::Written | Input::Elsewhere => "gguf",
        };
        let file = scratch.0.join(format!("damaged.{endings}"));
        fs::write(&file, seeds.damaged(entry.2, &mut rng)).expect("a temporary file");
        let line = command_line(entry, &file, &seeds, &mut rng);
        let case = Case { seed, line, file };
        let Some(why) = failure(&case) else { continue };
        if let Some(folder) = std::env::var_os("TPC_KEEP") {
            let kept = Path::new(&folder).join(format!("{seed}.{endings}"));
            let _ = fs::copy(&case.file, kept);
        }
        failures.push(why);
    }
    (cases, failures)
}
