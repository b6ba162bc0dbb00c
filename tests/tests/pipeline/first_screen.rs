//! The first screen of a plan shows if the model fits, its speed, and how to run it. No line is wider than the
//! terminal.

use std::fs;
use std::path::{Path, PathBuf};

use tpc_core::format::columns;
use tpc_core::pipeline::compile;
use tpc_core::placement::{Placement, SplitMode};
use tpc_core::report::{Commands, Detail, PlanReport, ShellCommand, explain, render, values};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_lint::plan_report;

fn header(name: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["data/headers", "../../shared/models"];
    let files = folders
        .iter()
        .filter_map(|f| fs::read_dir(here.join(f)).ok())
        .flatten()
        .filter_map(|e| Some(e.ok()?.path()));
    let named = |p: &PathBuf| {
        let file = p.file_name().and_then(|f| f.to_str());
        file.is_some_and(|f| f.starts_with(name) && f.ends_with(".gguf"))
    };
    let mut all: Vec<PathBuf> = files.filter(named).collect();
    all.sort();
    all.into_iter().next()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn planned(header: &Path, options: &str) -> (Placement, tpc_core::pipeline::CompiledModel) {
    let file = GgufFile::open(header).expect("a header");
    let placement = tpc::placement(&words(options), DType::F16, SplitMode::Auto);
    let placement = placement.expect("the options are known");
    let compiled = compile(&file, &placement).expect("the model is planned");
    (placement, compiled)
}

fn report(path: &str, header: &Path, options: &str) -> PlanReport {
    let (placement, compiled) = planned(header, options);
    let mut report = plan_report(path, &placement, &compiled);
    let machine: Vec<String> = words(options).into_iter().take(2).collect();
    report.commands = Commands::new(path, &machine, &placement, &compiled);
    report
}

#[track_caller]
fn no_wider(text: &str, width: u16) {
    for line in text.lines() {
        assert!(
            columns(line) <= usize::from(width),
            "{width}: {line}\n{text}"
        );
    }
}

#[track_caller]
fn answers(report: &PlanReport, expected: &[&str]) {
    let text = render(report, 80, Detail::Brief);
    no_wider(&text, 80);
    let screen: Vec<&str> = text.lines().take(24).collect();
    let begins = |label: &str| screen.iter().any(|l| l.starts_with(label));
    for label in ["fits    ", "speed   ", "range   ", "split   ", "run it:"] {
        assert!(begins(label), "{label}:\n{text}");
    }
    let runs = report.fits() != Some(false);
    assert_eq!(begins("with llama.cpp"), runs, "{text}");
    let screen = screen.join("\n");
    for part in expected {
        assert!(screen.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn the_first_screen_answers_for_a_dense_model_on_two_cards() {
    let Some(header) = header("llama-3.1-8b") else {
        panic!("the repository has this header")
    };
    let report = report("llama-3.1-8b.gguf", &header, "--devices 2x3090");
    assert_eq!(report.fits(), Some(true));
    let expected = [
        "on 2 × RTX 3090, context 131072",
        "fits    yes, ",
        " tokens/s at depth 0; prompts ",
        "  tpc run llama-3.1-8b.gguf --devices 2x3090 -sm ",
        "  llama-server -m llama-3.1-8b.gguf -sm ",
        " -ngl 99 -c 131072 -np 1",
        " 2 × RTX 3090",
    ];
    answers(&report, &expected);
}

#[test]
fn the_first_screen_answers_for_experts_on_four_cards() {
    let Some(header) = header("gpt-oss-120b") else {
        panic!("the repository has this header")
    };
    let report = report("gpt-oss-120b.gguf", &header, "--devices 4x4090");
    assert_eq!(report.fits(), Some(true));
    answers(
        &report,
        &["on 4 × RTX 4090", "fits    yes, ", "--devices 4x4090"],
    );
}

#[test]
fn the_first_screen_answers_for_a_large_model_on_eight_cards() {
    let Some(header) = header("deepseek-v3.1") else {
        return;
    };
    let report = report("deepseek-v3.1.gguf", &header, "--devices 8xH200 -sm tensor");
    assert_eq!(report.fits(), Some(true));
    let expected = [
        "on 8 × H200",
        "fits    yes, ",
        "it refuses -sm tensor for deepseek2 (TPC0900)",
        "  llama-server -m deepseek-v3.1.gguf -sm layer ",
    ];
    answers(&report, &expected);
}

#[test]
fn what_is_not_known_is_said() {
    let Some(header) = header("qwen3-0.6b") else {
        panic!("the repository has this header")
    };
    let report = report("q.gguf", &header, "--devices 3 -c 4096");
    assert_eq!(report.fits(), None);
    let expected = [
        "not known",
        "no memory given",
        "--devices 3x3090",
        "for a default device",
    ];
    answers(&report, &expected);
    assert!(!render(&report, 80, Detail::Brief).contains(" yes "));
}

#[test]
fn what_does_not_fit_is_said() {
    let Some(header) = header("llama-3.1-70b") else {
        panic!("the repository has this header")
    };
    let report = report("l.gguf", &header, "--devices 1x3060 -c 4096");
    assert_eq!(report.fits(), Some(false));
    answers(
        &report,
        &[
            "fits    no, ",
            " too many",
            "run it: does not fit",
            "TPC0300",
        ],
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let cases = [
        ("qwen3-0.6b", "--devices 12 -sm tensor -c 4096"),
        ("gpt-oss-120b", "--devices 4x4090 -c 8192"),
        (
            "qwen3-30b-a3b",
            "--devices 3090,4090 -sm tensor -c 8192 --cpu-moe",
        ),
        ("phi-4", "--devices 7 -ts 1,2,3,4,5,6,7 -sm tensor -c 8192"),
        ("mixtral", "--devices 64 -sm tensor -c 4096"),
    ];
    for (name, options) in cases {
        let Some(header) = header(name) else {
            panic!("the repository has the header of {name}")
        };
        let (placement, compiled) = planned(&header, options);
        let path = "/srv/models of mine/模型/a-very-long-folder-name-without-any-blank-in-it/and-another-one-that-is-longer/it's.gguf";
        let mut report = plan_report(path, &placement, &compiled);
        let graph = &compiled.planned.graph;
        let asked = values(graph, &compiled.model.graph, &[], "attn_(k|qkv).weight$");
        let asked = asked.expect("the model has such tensors");
        report.why = explain(&compiled, &asked[..1], &report.tensors);
        report.model.name = "模型".repeat(40);
        for width in 60..=200 {
            for detail in [Detail::Brief, Detail::Full] {
                no_wider(&render(&report, width, detail), width);
            }
        }
        for width in [60, 80, 131, 200] {
            no_wider(&render(&report, width, Detail::EveryTensor), width);
        }
    }
}

fn options_of(command: &ShellCommand) -> String {
    let words: Vec<String> = command.words().iter().skip(3).cloned().collect();
    words.join(" ")
}

#[test]
fn the_command_asks_for_the_plan_that_is_shown() {
    let Some(header) = header("qwen3-30b-a3b") else {
        panic!("the repository has this header")
    };
    for options in [
        "--devices 2x3090",
        "--devices 4 -c 4096 -ctk q8_0 -ctv q4_0 -ub 1024 -np 2",
        "--devices 2 -sm tensor -ts 3,1 -c 8192",
        "--devices 2 -sm layer -ncmoe 7 -nkvo -c 4096",
        "--devices 3 -ngl 20 -c 4096 -ot blk\\.(1|2)\\.ffn_.*=CPU,output=dev1",
        "--devices 1 --cpu-moe -c 4096",
    ] {
        let shown = report("m.gguf", &header, options);
        let command = shown.commands.tpc.as_ref().expect("a model has a command");
        let again = report("m.gguf", &header, &options_of(command));
        assert_eq!(again.tensors.len(), shown.tensors.len(), "{options}");
        for (a, b) in shown.tensors.iter().zip(&again.tensors) {
            assert_eq!(
                (&a.place, &a.sharding),
                (&b.place, &b.sharding),
                "{options}: {}",
                a.name
            );
        }
        let bytes =
            |r: &PlanReport| -> Vec<u64> { r.devices.iter().map(|d| d.total_bytes).collect() };
        assert_eq!(bytes(&shown), bytes(&again), "{options}");
        assert_eq!(shown.model.n_ctx, again.model.n_ctx, "{options}");
    }
}

/// Returns the llama.cpp command, or the reason why there is none.
fn llama_cpp(name: &str, options: &str) -> Result<String, String> {
    let header = header(name).expect("the repository has this header");
    let commands = report("m.gguf", &header, options).commands;
    match (commands.llama_cpp, commands.llama_cpp_reason) {
        (Some(c), None) => Ok(c.to_string()),
        (None, Some(why)) => Err(why),
        both => panic!("{both:?}"),
    }
}

#[test]
fn commands_of_llama_cpp_place_alike_or_say_why_not() {
    let ok = |options: &str, expected: &str| {
        let found = llama_cpp("qwen3-30b-a3b", options);
        assert_eq!(found.as_deref(), Ok(expected), "{options}");
    };
    ok(
        "--devices 2 -sm tensor -c 4096",
        "llama-server -m m.gguf -sm tensor -ts 1,1 -ngl 99 -c 4096 -np 1 -fa on",
    );
    ok(
        "--devices 2 -sm tensor -ts 3,1 -c 4096 -ctk q8_0 -ctv q8_0 -ub 4096 -np 4",
        "llama-server -m m.gguf -sm tensor -ts 3,1 -ngl 99 -c 4096 -ctk q8_0 -ctv q8_0 -b 4096 -ub 4096 -np 4 -fa on",
    );
    ok(
        "--devices 2 -sm none -c 4096",
        "llama-server -m m.gguf -sm none -mg 0 -ngl 99 -c 4096 -np 1 -fa on",
    );
    ok(
        "--devices cuda:1 -ngl 20 -ncmoe 30 -nkvo -c 4096",
        "llama-server -m m.gguf -dev CUDA1 -ngl 20 -ncmoe 30 -nkvo -c 4096 -np 1 -fa on",
    );
    ok(
        "--devices cuda:0,cuda:2 -sm layer -ts 1,0 -ot exps=CUDA2,shexp=CPU --cpu-moe -c 4096",
        "llama-server -m m.gguf -dev CUDA0,CUDA2 -sm layer -ts 49,0 -ngl 99 -ot exps=CUDA2 -ot shexp=CPU -cmoe -c 4096 \
         -np 1 -fa on",
    );
    let refused = |name: &str, options: &str, part: &str| {
        let why = llama_cpp(name, options).expect_err(options);
        assert!(why.contains(part), "{options}: {why}");
    };
    refused(
        "qwen3-30b",
        "--devices 2 -sm tensor -nkvo -c 4096",
        "TPC0901",
    );
    refused("qwen3-30b", "--devices 17 -sm tensor -c 4096", "TPC0907");
    refused(
        "qwen3-30b",
        "--devices 2 -sm tensor -ot blk.0.attn_q=CPU -c 4096",
        "TPC0903",
    );
    refused("qwen3-30b", "--devices cpu,cpu -sm layer -c 4096", "RPC");
    refused(
        "qwen3-30b",
        "--devices 2 -sm layer -ot output=mirrored -c 4096",
        "-ot",
    );
    refused(
        "qwen3-30b",
        "--devices 2 -sm layer -ot x{1,2}=CPU -c 4096",
        "comma",
    );
    // Proportions are layers per device. The output counts as a layer.
    let by_layers = llama_cpp("llama-3.1-8b", "--devices 2 -sm layer -c 4096").expect("a command");
    let split = by_layers
        .split(" -ts ")
        .nth(1)
        .and_then(|r| r.split(' ').next());
    let split = split.unwrap_or_else(|| panic!("{by_layers}"));
    let counts: Vec<u64> = split.split(',').filter_map(|n| n.parse().ok()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 33, "{by_layers}");
}

#[test]
fn every_code_of_a_limit_is_explained() {
    let codes = tpc::catalogue::codes();
    for build in tpc_ggml::engines::builds() {
        for failure in &build.tensor_split.failures {
            let code = failure.when.code();
            assert!(codes.contains(&code), "{}: {}", build.name(), code.id);
        }
    }
}
