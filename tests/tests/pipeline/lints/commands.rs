//! Lints of command lines of llama.cpp.

use std::path::PathBuf;

use tpc_core::placement::{
    HostExperts, Placement, parse_cache_type, parse_devices, parse_overrides,
};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::CommandLine;
use tpc_ggml::llama_cpp::{Setting, devices_named};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_lint::{Command, File, graph_of, lint_command};
use tpc_tests::{data, headers};

use super::Case;

fn model(name: &str) -> PathBuf {
    let golden = data().join(format!("golden/{name}.gguf"));
    if golden.exists() {
        return golden;
    }
    let found = headers()
        .into_iter()
        .find(|p| p.to_string_lossy().contains(name));
    found.unwrap_or_else(|| panic!("no model {name}"))
}

/// The findings of a line for a model on so many devices.
fn findings(name: &str, devices: usize, line: &str) -> Vec<Diagnostic> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let command = CommandLine::parse(&words).unwrap_or_else(|d| panic!("{d}"));
    let file = GgufFile::open(model(name)).unwrap_or_else(|e| panic!("{e}"));
    let lowered = graph_of(&file);
    let mut placement = Placement::on(parse_devices(&devices.to_string()).expect("devices"));
    let given: Vec<String> = command
        .all(Setting::Override)
        .map(|g| g.value.clone())
        .collect();
    placement.overrides = parse_overrides(&given, &placement.devices).expect("overrides");
    let kind = |m| {
        command
            .value(m)
            .map_or(DType::F16, |t| parse_cache_type("", t).expect("a type"))
    };
    placement.cache_type_k = kind(Setting::CacheK);
    placement.cache_type_v = kind(Setting::CacheV);
    placement.host_experts = match command.last(Setting::CpuMoe) {
        Some(_) => HostExperts::All,
        None => HostExperts::NONE,
    };
    lint_command(&Command {
        line: &command,
        file: File {
            file: &file,
            model: lowered.as_ref(),
        },
        placement: &placement,
        equivalent: "tpc plan …",
        assumed: devices_named(&command).is_none(),
    })
}

pub(super) fn cases() -> Vec<Case> {
    let case = |code, name: &'static str, fires: &'static str, silent: &'static str| {
        let of = move |line: &'static str| move || findings(name, 2, line);
        Case::new(code, of(fires), of(silent))
    };
    let llama = "llama-dense-q4_k_m";
    let models = |code, line: &'static str, fires: &'static str, silent: &'static str| {
        let of = move |name: &'static str| move || findings(name, 2, line);
        Case::new(code, of(fires), of(silent))
    };
    vec![
        models(
            "TPC0900",
            "llama-cli -sm tensor",
            "olmo2-dense-q4_k_m",
            llama,
        ),
        case(
            "TPC0900",
            "olmo2-dense-q4_k_m",
            "llama-cli -sm tensor",
            "llama-cli -sm layer",
        ),
        case(
            "TPC0901",
            llama,
            "llama-cli -sm tensor -nkvo",
            "llama-cli -nkvo",
        ),
        case(
            "TPC0901",
            "gpt2-dense-f16",
            "LLAMA_ARG_KV_OFFLOAD=0 llama-cli -sm tensor",
            "LLAMA_ARG_KV_OFFLOAD=0 llama-cli -sm tensor -kvo",
        ),
        models("TPC0902", "llama-cli -sm tensor", "bloom-dense-q5_1", llama),
        case(
            "TPC0903",
            llama,
            "llama-cli -sm tensor -ot blk.0.attn=CPU",
            "llama-cli -sm tensor -ot blk.0.ffn=CPU",
        ),
        case(
            "TPC0904",
            llama,
            "llama-cli -sm tensor -fa off",
            "llama-cli -fa off",
        ),
        case(
            "TPC0905",
            llama,
            "llama-cli -fa off -ctv q8_0",
            "llama-cli -fa off -ctk q8_0",
        ),
        case(
            "TPC0906",
            llama,
            "llama-cli -ctk q8_0",
            "llama-cli -ctk q8_0 -ctv q8_0",
        ),
        case(
            "TPC0906",
            llama,
            "llama-cli -ctk iq4_nl -ctv iq4_nl",
            "llama-cli",
        ),
        Case::new(
            "TPC0907",
            || findings("llama-dense-q4_k_m", 17, "llama-cli -sm tensor"),
            || findings("llama-dense-q4_k_m", 16, "llama-cli -sm tensor"),
        ),
        case(
            "TPC0908",
            llama,
            "llama-cli --rpc 10.0.0.2:50052",
            "llama-cli",
        ),
        case(
            "TPC0908",
            llama,
            "llama-cli --rpc 10.0.0.2:50052 -dev CUDA0,RPC0",
            "llama-cli --rpc 10.0.0.2:50052 -dev CUDA0,CUDA1",
        ),
        case(
            "TPC0909",
            llama,
            "llama-cli -md draft.gguf",
            "llama-cli --spec-type ngram-mod",
        ),
        case(
            "TPC0910",
            llama,
            "llama-cli -ub 4096",
            "llama-cli -ub 4096 -b 4096",
        ),
        case(
            "TPC0911",
            llama,
            "llama-cli -sm tensor -mg 1",
            "llama-cli -sm none -mg 1",
        ),
        case(
            "TPC0912",
            llama,
            "llama-cli -sm row",
            "llama-cli -sm tensor",
        ),
        case(
            "TPC0913",
            llama,
            "llama-cli --ctx-sise 5",
            "llama-cli --ctx-size 5",
        ),
        case(
            "TPC0913",
            llama,
            "llama-cli -mla 3",
            "ik_llama-cli -mla 3 -amb 512 -fmoe",
        ),
        case(
            "TPC0920",
            llama,
            "llama-cli -fa -c 8192",
            "llama-cli -fa on -c 8192",
        ),
        case("TPC0920", llama, "llama-cli -c 8k", "ik_llama-cli -fa"),
        case(
            "TPC0914",
            llama,
            "LLAMA_ARG_CTX_SIZE=8192 llama-cli -c 4096",
            "LLAMA_ARG_CTX_SIZE=4096 llama-cli -c 4096",
        ),
        models(
            "TPC0915",
            "llama-cli -sm tensor",
            "qwen35-dense-q4_k_m",
            llama,
        ),
        case(
            "TPC0916",
            llama,
            "llama-cli -sm tensor",
            "llama-cli -sm tensor -ts 3,1",
        ),
        case(
            "TPC0916",
            llama,
            "CUDA_VISIBLE_DEVICES=-1 llama-cli",
            "CUDA_VISIBLE_DEVICES=0,1,2 llama-cli",
        ),
        case("TPC0917", llama, "llama-cli", "llama-cli -fit off"),
        case("TPC0917", llama, "llama-cli -ngl 99", "llama-bench"),
        case(
            "TPC0918",
            llama,
            "llama-cli --override-kv a=int:3",
            "llama-cli",
        ),
        models(
            "TPC0919",
            "llama-cli --swa-full",
            "gemma3-dense-q4_k_m",
            llama,
        ),
    ]
}

#[test]
fn what_the_engine_does_with_a_host_cache_is_told_by_architecture() {
    let told = |name: &str| {
        let found = findings(name, 2, "llama-server -sm tensor -nkvo");
        let d = found.into_iter().find(|d| d.code == "TPC0901");
        d.unwrap_or_else(|| panic!("{name}")).message
    };
    assert!(told("gpt2-dense-f16").contains("aborts"));
    assert!(told("gemma3-dense-q4_k_m").contains("wrong logits"));
}
