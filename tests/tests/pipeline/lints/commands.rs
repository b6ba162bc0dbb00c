//! Lints of llama.cpp's command lines.

use std::path::PathBuf;

use tpc_core::beside::{Difference, ExtraFileMemory, Part};
use tpc_core::placement::{
    HostExperts, Placement, parse_cache_type, parse_devices, parse_overrides,
};
use tpc_diag::Diagnostic;
use tpc_ggml::engines::{Backend, Build};
use tpc_ggml::llama_cpp::{CommandLine, Maker, Setting, stated_devices};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_lint::{Command, File, graph_of, lint_command};
use tpc_synth::{Model, Spec};
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

fn synthetic(spec: &str) -> PathBuf {
    let whole = format!("{spec},header=1");
    let parsed = Spec::parse(&whole).unwrap_or_else(|d| panic!("{spec}: {d}"));
    let model = Model::new(parsed, &|_, _, _| Ok(())).unwrap_or_else(|d| panic!("{spec}: {d}"));
    let name: String = spec.chars().filter(char::is_ascii_alphanumeric).collect();
    let path = std::env::temp_dir().join(format!("tpc-lint-{}-{name}.gguf", std::process::id()));
    let file = std::fs::File::create(&path).expect("a file");
    model.write(file).unwrap_or_else(|d| panic!("{spec}: {d}"));
    path
}

/// Returns the findings in a command line for a golden model, header or specification on `devices` devices. A prefix
/// `0.5.0:` names the release.
fn findings(name: &str, devices: usize, line: &str) -> Vec<Diagnostic> {
    let (build, line) = match line.strip_prefix("0.5.0:") {
        Some(rest) => (Build::find(Maker::LlamaCpp, "0.5.0"), rest),
        None => (None, line),
    };
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let command = CommandLine::parse(&words).unwrap_or_else(|d| panic!("{d}"));
    let path = match name.contains(':') {
        true => synthetic(name),
        false => model(name),
    };
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
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
    if command.value(Setting::Draft) == Some("other-tokens.gguf") {
        placement.beside = vec![draft_with_other_tokens()];
    }
    placement.kv_on_host = command.is_off(Setting::KvOffload);
    let named = command.value(Setting::Devices).unwrap_or_default();
    let backends: Vec<Option<Backend>> = named.split(',').map(Backend::of_device).collect();
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
        build: build.unwrap_or_else(|| Build::newest(command.maker)),
        backends: &backends,
        equivalent: "tpc plan …",
        assumed: stated_devices(&command).is_none(),
    })
}

fn draft_with_other_tokens() -> ExtraFileMemory {
    ExtraFileMemory {
        what: "draft",
        file: "other-tokens.gguf".to_owned(),
        devices: vec![Part::default(); 2],
        host: Part::default(),
        words: Vec::new(),
        difference: Some(Difference::Count(1000, 2000)),
    }
}

/// A model with linear attention that three devices cannot share equally.
const NEXT: &str = "qwen3next:layers=4,embd=512,heads=16,kv_heads=2,head_dim=256,ff=512,vocab=512,type=f32,\
    qwen3next.ssm.state_size=128,qwen3next.ssm.group_count=16,qwen3next.ssm.time_step_rank=32,\
    qwen3next.ssm.inner_size=4096";

const TALKIE: &str =
    "talkie:layers=2,embd=256,heads=8,kv_heads=2,head_dim=32,ff=512,vocab=64,type=f32";

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
            "0.5.0:llama-cli -sm row",
            "llama-cli -sm row",
        ),
        case(
            "TPC0925",
            llama,
            "llama-cli -sm row",
            "0.5.0:llama-cli -sm row",
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
        case(
            "TPC0915",
            "qwen35-dense-q4_k_m",
            "0.5.0:llama-cli -sm tensor",
            "llama-cli -sm tensor",
        ),
        models(
            "TPC0921",
            "llama-cli -sm tensor",
            "gemma3:layers=2,embd=64,heads=4,kv_heads=1,head_dim=16,ff=64,vocab=64,type=f32",
            "llama:layers=2,embd=64,heads=4,kv_heads=1,head_dim=16,ff=64,vocab=64,type=f32",
        ),
        models(
            "TPC0922",
            "llama-cli -sm tensor",
            "llama:layers=2,embd=256,heads=4,kv_heads=2,head_dim=64,ff=512,vocab=64,type=q4_k_m",
            "llama:layers=2,embd=512,heads=4,kv_heads=2,head_dim=128,ff=512,vocab=64,type=q4_k_m",
        ),
        Case::new(
            "TPC0923",
            || findings(NEXT, 3, "llama-cli -sm tensor"),
            || findings(NEXT, 2, "llama-cli -sm tensor"),
        ),
        case(
            "TPC0924",
            llama,
            "llama-cli -sm tensor -dev CUDA0,ROCm0",
            "llama-cli -sm tensor -dev Vulkan0,Vulkan1",
        ),
        Case::new(
            "TPC0926",
            || findings("llama-dense-q4_k_m", 5, "0.5.0:llama-cli -sm tensor"),
            || findings("llama-dense-q4_k_m", 5, "llama-cli -sm tensor"),
        ),
        Case::new(
            "TPC0927",
            || findings(TALKIE, 3, "llama-cli -sm tensor"),
            || findings(TALKIE, 2, "llama-cli -sm tensor"),
        ),
        models(
            "TPC0928",
            "llama-cli -sm tensor",
            "codeshell:layers=2,embd=64,heads=4,kv_heads=2,head_dim=16,ff=64,vocab=64,type=f32",
            llama,
        ),
        case(
            "TPC0934",
            llama,
            "llama-cli -sm tensor -ot ffn_(up|gate)=CPU",
            "llama-cli -sm tensor -ot ffn_.*=CPU",
        ),
        case(
            "TPC0935",
            "gpt2-dense-f16",
            "llama-cli -sm tensor -ot ffn_down.bias=CPU",
            "llama-cli -sm tensor -ot ffn_down=CPU",
        ),
        case(
            "TPC0932",
            llama,
            "llama-cli --spec-type draft-simple -md other-tokens.gguf",
            "llama-cli --spec-type draft-simple -md draft.gguf",
        ),
        case("TPC0930", llama, "llama-cli -fa off", "llama-cli -fa on"),
        case(
            "TPC0931",
            llama,
            "llama-cli -sm tensor --rpc 10.0.0.2:50052,10.0.0.3:50052",
            "llama-cli -sm tensor --rpc 10.0.0.2:50052",
        ),
        case("TPC0936", llama, "llama-server -np 8", "llama-server -np 1"),
        case(
            "TPC0936",
            llama,
            "llama-cli --spec-type ngram-simple",
            "llama-cli --spec-type none",
        ),
        models(
            "TPC0929",
            "ik_llama-cli -sm graph",
            "bloom-dense-q5_1",
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
fn a_cache_on_the_host_ends_as_the_release_does() {
    let told = |name: &str, line: &str| {
        let found = findings(name, 2, line);
        let d = found.into_iter().find(|d| d.code == "TPC0901");
        d.unwrap_or_else(|| panic!("{name}")).message
    };
    let newest = "llama-server -sm tensor -nkvo";
    assert!(told("gpt2-dense-f16", newest).contains("aborts"));
    assert!(told("gemma3-dense-q4_k_m", newest).contains("aborts"));
    let old = "0.5.0:llama-server -sm tensor -nkvo";
    assert!(told("gemma3-dense-q4_k_m", old).contains("silently wrong"));
    let shared = "llama:layers=2,embd=64,heads=4,kv_heads=1,head_dim=16,ff=64,vocab=64,type=f32";
    assert!(
        !findings(shared, 2, newest)
            .iter()
            .any(|d| d.code == "TPC0901")
    );
}
