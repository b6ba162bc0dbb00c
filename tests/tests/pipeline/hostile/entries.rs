//! Every entry of the program that reads a file: each subcommand, with each of its files damaged, in each format and for
//! each target. The program is run as its users run it, in this process.
//!
//! `TPC_CASES` sets the number of cases, `TPC_HOSTILE_SEED` the first seed, and `TPC_ENTRY` (such as `lint graph`) keeps to
//! one entry. A case that panics, takes more than [`SLOWEST`] on a processor or more than [`MOST`] of memory fails.

use std::ffi::OsString;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Model, Scratch, captures, flip, mangle, on_processor, said, status};
use crate::random::Rng;
use tpc_tests::Sweep;

/// The longest that a case may take.
const SLOWEST: Duration = Duration::from_secs(2);

/// The most memory that a case may take beyond what the process had, in KiB.
const MOST: u64 = 500 << 10;

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// A GGUF file.
    Gguf,
    /// A captured graph.
    Capture,
    /// A topology.
    Topology,
    /// Settings, as in `tpc.toml`.
    Settings,
    /// Logits to compare with.
    Golden,
    /// A plan as JSON.
    Plan,
    /// An artefact.
    Artefact,
    /// A file that is written: nothing of it is read.
    Written,
    /// The state of a session, which the tests of sessions damage (`execution`), lines of prompts, which need a vocabulary, or
    /// what a server reads as another command does.
    Elsewhere,
}

/// Every argument that names a file.
const ENTRIES: &[(&str, &str, Input)] = &[
    ("plan", "model", Input::Gguf),
    ("plan", "graph", Input::Capture),
    ("plan", "topology", Input::Topology),
    ("plan", "more", Input::Gguf),
    ("plan", "diff", Input::Plan),
    ("plan", "html", Input::Written),
    ("lint", "models", Input::Gguf),
    ("lint", "models", Input::Capture),
    ("lint", "config", Input::Settings),
    ("lint", "graph", Input::Capture),
    ("lint", "topology", Input::Topology),
    ("lint", "capture", Input::Written),
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
    ("compile", "depfile", Input::Written),
    ("check", "model", Input::Artefact),
    ("check", "weights", Input::Gguf),
    ("tokenize", "model", Input::Gguf),
    ("eval", "model", Input::Gguf),
    ("eval", "weights", Input::Gguf),
    ("eval", "golden", Input::Golden),
    ("eval", "topology", Input::Topology),
    ("eval", "logits", Input::Written),
    ("run", "model", Input::Gguf),
    ("run", "model", Input::Artefact),
    ("run", "weights", Input::Gguf),
    ("run", "topology", Input::Topology),
    ("run", "load", Input::Elsewhere),
    ("run", "save", Input::Written),
    ("run", "prompt_cache", Input::Elsewhere),
    ("run", "prompts", Input::Elsewhere),
    ("run", "file", Input::Elsewhere),
    ("bench", "model", Input::Gguf),
    ("bench", "weights", Input::Gguf),
    ("bench", "topology", Input::Topology),
    ("synth", "output", Input::Written),
    ("man", "output", Input::Written),
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

const TOPOLOGY: &str = r#"Topology(
    devices: [
        (name: "a", memory: Some(24000000000), bandwidth: 936e9, flops: 142e12),
        (name: "b", memory: None, bandwidth: 500e9, flops: 60e12),
    ],
    link: (bandwidth: 25e9, latency_us: 8.0),
    links: [],
    host: (name: "host", memory: None, bandwidth: 60e9, flops: 1e12),
    host_link: (bandwidth: 25e9, latency_us: 10.0),
)
"#;

/// Settings with every key. The files are those of a folder of damaged files.
const SETTINGS: &str = r#"[lint]
files = ["healthy.gguf", "*.gguf"]
devices = "2x3090"
deny = ["warnings", "TPC0312"]
allow = ["TPC0310"]

[[lint.override]]
files = ["heal*.gguf", "[a-z]/**/?.gguf"]
devices = "3"
deny = ["TPC0313"]
allow = []
"#;

/// Healthy files.
struct Seeds {
    models: Vec<Model>,
    captures: Vec<Vec<serde_json::Value>>,
    topologies: Vec<String>,
    golden: Vec<u8>,
    /// A plan as JSON.
    plan: String,
    /// A model with data.
    model: PathBuf,
    /// An artefact of that model, and its bytes.
    artefact: PathBuf,
    compiled: Vec<u8>,
}

impl Seeds {
    fn new(scratch: &Scratch) -> Seeds {
        let model = scratch.0.join("healthy.gguf");
        let mut bytes = Vec::new();
        let zeros = |_: usize, t: &tpc_gguf::TensorInfo, out: &mut dyn std::io::Write| {
            let data = &mut std::io::Read::take(std::io::repeat(0), t.bytes);
            std::io::copy(data, &mut { out }).map(drop)
        };
        let small = Model::small("llama");
        small.writer().write(&mut bytes, zeros).expect("writes");
        fs::write(&model, bytes).expect("a temporary file");
        let artefact = scratch.0.join("healthy.tpc");
        let words = ["tpc", "compile", "-c", "64", "-ub", "8"].map(OsString::from);
        let files = [model.clone().into(), "-o".into(), artefact.clone().into()];
        let _ = tpc::run(words.into_iter().chain(files));
        let mut topologies = vec![TOPOLOGY.to_owned()];
        let attacks = tpc_tests::shared().map(|s| s.join("attacks"));
        for path in tpc_tests::files(&Vec::from_iter(attacks), ".ron") {
            topologies.extend(fs::read_to_string(path));
        }
        let goldens = tpc_tests::files(&[tpc_tests::data().join("golden")], ".logits");
        Seeds {
            models: super::small_models(),
            captures: captures::loaded(),
            topologies,
            golden: goldens
                .first()
                .and_then(|p| fs::read(p).ok())
                .unwrap_or_default(),
            plan: plan_of(&model),
            model,
            compiled: fs::read(&artefact).expect("it was compiled"),
            artefact,
        }
    }

    /// Bytes of a damaged file of this kind.
    fn damaged(&self, input: Input, rng: &mut Rng) -> Vec<u8> {
        match input {
            Input::Gguf => {
                let mut model = rng.pick(&self.models).clone();
                if rng.one_in(2) {
                    super::mutate(&mut model, rng);
                    return model.bytes().unwrap_or_default();
                }
                let mut bytes = model.bytes().unwrap_or_default();
                flip(&mut bytes, rng);
                bytes
            }
            Input::Capture => captures::mutated(&self.captures, rng).into_bytes(),
            Input::Topology => {
                numbers(&mangle(rng.pick::<String>(&self.topologies), rng), rng).into_bytes()
            }
            Input::Settings => {
                let mut bytes = numbers(&mangle(SETTINGS, rng), rng).into_bytes();
                if rng.one_in(4) {
                    flip(&mut bytes, rng);
                }
                bytes
            }
            Input::Plan => {
                let text = numbers(&numbers(&self.plan, rng), rng);
                if rng.one_in(2) {
                    return text.into_bytes();
                }
                let mut bytes = text.into_bytes();
                flip(&mut bytes, rng);
                bytes
            }
            Input::Golden => {
                let mut bytes = self.golden.clone();
                bytes.truncate(16 + rng.range(0, 4096) as usize);
                if !bytes.is_empty() {
                    flip(&mut bytes, rng);
                }
                bytes
            }
            Input::Artefact => {
                let mut bytes = self.compiled.clone();
                flip(&mut bytes, rng);
                bytes
            }
            Input::Written | Input::Elsewhere => Vec::new(),
        }
    }
}

/// The plan of a model on two devices, as JSON.
fn plan_of(model: &Path) -> String {
    let file = tpc_gguf::GgufFile::open(model).expect("a healthy file");
    let devices = tpc_core::placement::parse_devices("2").expect("a count");
    let placement = tpc_core::placement::Placement::on(devices);
    let compiled = tpc_core::pipeline::compile(&file, &placement).expect("a plan");
    let report = tpc_lint::plan_report("healthy.gguf", &placement, &compiled);
    serde_json::to_string(&report).expect("JSON")
}

/// One of the numbers of a text becomes another.
fn numbers(text: &str, rng: &mut Rng) -> String {
    let digits = |c: char| c.is_ascii_digit();
    let starts: Vec<usize> = (0..text.len())
        .filter(|&i| text[..].is_char_boundary(i) && text[i..].starts_with(digits))
        .filter(|&i| i == 0 || !text[..i].ends_with(digits))
        .collect();
    if starts.is_empty() || rng.one_in(3) {
        return text.to_owned();
    }
    let start = *rng.pick(&starts);
    let end = text[start..]
        .find(|c: char| !c.is_ascii_digit())
        .map_or(text.len(), |n| start + n);
    let others = [
        "0",
        "-1",
        "1",
        "1e400",
        "1e-400",
        "NaN",
        "inf",
        "18446744073709551616",
        "9223372036854775807",
        "0.5",
    ];
    format!("{}{}{}", &text[..start], rng.pick(&others), &text[end..])
}

/// The options of a case, beside its files.
fn options(command: &str, argument: &str, rng: &mut Rng) -> Vec<String> {
    let mut out = Vec::new();
    let mut add = |words: &[&str]| out.extend(words.iter().map(|w| (*w).to_owned()));
    if command == "check" && rng.one_in(2) {
        add(&["--devices", rng.pick::<&str>(&["cpu", "2", "3x3090"])]);
    }
    if !["inspect", "tokenize", "check"].contains(&command) && argument != "weights" {
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
        "tokenize" if rng.one_in(2) => add(&["-p", "Hello <s> world", "--chat"]),
        "tokenize" => add(&["-p", "Hello <s> world", "--special"]),
        "compile" => add(&["-o", "/dev/null"]),
        "run" => add(&["--tokens", "1,2,3", "-n", "2", "-t", "1"]),
        "bench" => add(&["-p", "2", "-n", "1", "-r", "1", "-t", "1"]),
        "eval" if argument != "golden" => add(&["--tokens", "1,2,3"]),
        _ => {}
    }
    out
}

/// The command line of a case: `file` is damaged.
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
        "model" | "models" => line.push(text(file)),
        // The files that are linted are those of the settings.
        "config" if rng.one_in(2) => line.extend(["--config".to_owned(), text(file)]),
        "weights" => line.extend([text(&seeds.artefact), text(file)]),
        "more" => line.extend([text(&seeds.model), text(file)]),
        "graph" => line.extend(["--graph".to_owned(), text(file)]),
        option => line.extend([text(&seeds.model), format!("--{option}"), text(file)]),
    }
    line.extend(options(command, argument, rng));
    line
}

/// A damaged file and its command line.
struct Case {
    seed: u64,
    line: Vec<String>,
    file: PathBuf,
}

/// Why a case fails, if it does.
fn failure(case: &Case) -> Option<String> {
    // The peak of this case alone.
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

/// Runs cases; what fails is kept with its file, in the folder `TPC_KEEP` if that is set.
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
