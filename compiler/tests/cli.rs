//! The program as its users meet it: exit statuses, streams, options, formats, and what wrong usage gets.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value as Json;

const TPC: &str = env!("CARGO_BIN_EXE_tpc");

/// A folder of this test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tpc-cli-{}-{n}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A small model with data.
    fn model(&self, spec: &str) -> PathBuf {
        let path = self.path("model.gguf");
        let out = tpc(["synth", spec, "-o", path.to_str().unwrap()]);
        assert_eq!(out.status, 0, "{}", out.stderr);
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Ran {
    status: i32,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ran {
    fn from(o: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ran = Ran {
            status: o.status.code().expect("ended by itself"),
            stdout: text(o.stdout),
            stderr: text(o.stderr),
        };
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }
}

/// Runs the program.
fn tpc<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    let mut command = Command::new(TPC);
    command.args(arguments).stdin(Stdio::null());
    command.env_remove("COLUMNS").output().unwrap().into()
}

/// `tpc plan` of a header with these options, as a line of words.
fn plan(header: &str, options: &str) -> Ran {
    let mut arguments = vec!["plan".to_owned(), path(header)];
    arguments.extend(options.split_whitespace().map(str::to_owned));
    tpc(arguments)
}

fn headers() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/headers");
    let mut all: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path().to_str().unwrap().to_owned())
        .filter(|p| p.ends_with(".gguf"))
        .collect();
    all.sort();
    assert!(all.len() >= 10, "{all:?}");
    all
}

/// The header whose file name begins so.
fn path(name: &str) -> String {
    let of = |p: &&String| {
        Path::new(p)
            .file_name()
            .is_some_and(|f| f.to_str().unwrap().starts_with(name))
    };
    headers()
        .iter()
        .find(of)
        .unwrap_or_else(|| panic!("no header {name}"))
        .clone()
}

/// The program refuses with this status and code, tells a cure, and prints no result.
#[track_caller]
fn refuses(ran: &Ran, status: i32, code: &str) {
    assert_eq!(ran.status, status, "{}", ran.stderr);
    assert!(ran.stderr.contains(code), "{code}: {}", ran.stderr);
    assert!(ran.stderr.contains("help: "), "no cure: {}", ran.stderr);
    assert_eq!(ran.stdout, "");
}

const SMALL: &str = "qwen3-0.6b";

#[test]
fn results_go_to_standard_output_and_diagnostics_to_standard_error() {
    let fine = plan("llama-3.1-8b", "--devices 2 -sm tensor");
    assert_eq!((fine.status, fine.stderr.as_str()), (0, ""));
    assert!(fine.stdout.contains("32 layers"), "{}", fine.stdout);
    let warned = plan(SMALL, "--devices 12 -sm tensor");
    assert_eq!(warned.status, 0);
    assert!(warned.stderr.starts_with("TPC030"), "{}", warned.stderr);
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
fn every_placement_option_is_accepted() {
    let scratch = Scratch::new();
    let link = "link: (bandwidth: 5e10, latency_us: 5.0)";
    let text = format!(
        "Topology(devices: [(name: \"a\", memory: Some(24e9), bandwidth: 1e12, flops: 1e14), (name: \"b\", bandwidth: \
         5e11, flops: 1e14)], {link}, links: [(a: 0, b: 1, {link})])"
    );
    let topology = scratch.file("two.ron", text);
    let topology = topology.to_str().unwrap();
    let topology = format!("--devices 2 --topology {topology}");
    for options in [
        "--devices 1",
        "--devices 64",
        "--devices cpu,cpu",
        "--devices cuda:0,cuda:1",
        "--devices cuda:0,cuda:0,cpu",
        topology.as_str(),
        "--devices 2 --split-mode auto",
        "--devices 2 --split-mode none",
        "--devices 2 --split-mode tensor",
        "--devices 2 -sm tensor",
        "--devices 2 --tensor-split 3,1",
        "--devices 2 -ts 3,1",
        "--devices 2 -ts=3,1",
        "--devices 4 -ts 1,0,0,1",
        "--devices 4 -ts 0,0,0,1",
        "--devices 4 -ts 2",
        "--devices 2 --cache-type-k q8_0 --cache-type-v q4_0",
        "--devices 2 -ctk bf16 -ctv iq4_nl",
        "-c 1",
        "--ctx-size 4294967296",
        "--ubatch-size 1",
        "-ub 4294967296",
        "--parallel 1000",
        "-np 1000 -c 1000",
        "-fa on",
        "-fa off",
        "--flash-attn auto",
        "-ncmoe 0",
        "-v",
        "--devices 3 --verbose",
    ] {
        let ran = plan(SMALL, options);
        assert_eq!(ran.status, 0, "{options}: {}", ran.stderr);
        assert!(!ran.stdout.is_empty());
    }
}

#[test]
fn every_cache_type_is_accepted_for_keys_and_values() {
    for k in [
        "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "Q8_0",
    ] {
        let other = if k == "f16" { "q4_0" } else { "f16" };
        for options in [
            format!("-ctk {k} -ctv {other}"),
            format!("-ctk {other} -ctv {k}"),
        ] {
            let ran = plan(SMALL, &format!("--devices 2 {options}"));
            assert_eq!(ran.status, 0, "{options}: {}", ran.stderr);
        }
    }
}

#[test]
fn host_options_are_planned() {
    for (options, on_host) in [
        ("-ot ffn_down=CPU", true),
        ("--override-tensor ffn_(up|gate)=host,attn=dev1", true),
        ("-nkvo", false),
        ("--no-kv-offload", false),
        ("-ngl 99", false),
        ("-ngl all", false),
        ("-ngl -1", false),
        ("--gpu-layers auto", false),
        ("-ot ffn_down=CUDA1", false),
        ("-ts 0,1", false),
        ("-ts 3,1 -sm layer", false),
        ("-sm row", false),
        ("--n-gpu-layers 0", true),
        ("-sm layer", false),
        ("--split-mode layer", false),
    ] {
        let ran = plan(SMALL, &format!("{options} --devices 2 --format json"));
        assert_eq!(ran.status, 0, "{options}: {}", ran.stderr);
        let json: Json = serde_json::from_str(&ran.stdout).unwrap();
        documented(&json);
        let weights = json["host"]["weights_bytes"].as_u64().unwrap();
        assert_eq!(
            weights > 0,
            on_host,
            "{options}: {weights} bytes on the host"
        );
        let cache = json["host"]["kv_bytes"].as_u64().unwrap();
        let kept = options.contains("kv") || options.ends_with(" 0");
        assert_eq!(
            cache > 0,
            kept,
            "{options}: {cache} bytes of cache on the host"
        );
    }
    // What places nothing is told.
    for options in [
        "-ot exps=CPU",
        "-ncmoe 4",
        "--n-cpu-moe 4",
        "-cmoe",
        "--cpu-moe",
    ] {
        let ran = plan(SMALL, options);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("TPC0311"), "{options}: {}", ran.stderr);
    }
}

#[test]
fn executors_that_are_not_there_yet_say_so() {
    let model = path(SMALL);
    for executor in ["cpu", "cuda"] {
        let ran = tpc([
            "eval",
            &model,
            "--tokens",
            "1",
            "--logits",
            "x",
            "--executor",
            executor,
        ]);
        refuses(&ran, 2, "TPC0401");
    }
}

#[test]
fn wrong_usage_gets_a_code_and_a_cure() {
    for options in [
        "--devices 0",
        "--devices 65",
        "--devices -1",
        "--devices 99999999999999999999",
        "--devices two",
        "--devices cpu,,cpu",
        "--devices cuda:",
        "--devices cuda:x",
        "--devices gpu:0",
        "--devices",
        "--split-mode row-wise",
        "--tensor-split 1,2,3 --devices 2",
        "--tensor-split 1,x --devices 2",
        "--tensor-split 1,,2 --devices 3",
        "--tensor-split -1,2 --devices 2",
        "--tensor-split 0,0 --devices 2",
        "--tensor-split nan,1 --devices 2",
        "--tensor-split inf,1 --devices 2",
        "--tensor-split 1e308,1e308 --devices 2",
        "--n-gpu-layers many",
        "-ngl 1.5",
        "--cache-type-k q2_k",
        "--cache-type-v i32",
        "-ctk half",
        "--ctx-size 0",
        "--ctx-size 4294967297",
        "--ctx-size 1000000000000000000",
        "--ctx-size 99999999999999999999",
        "--ctx-size 1e18",
        "--ctx-size -5",
        "--ubatch-size 0",
        "--ubatch-size 18446744073709551615",
        "--parallel 0",
        "--parallel x",
        "--format xml",
        "--flash-attention on",
        "--unknown",
        "second.gguf",
        "--devices 1 --devices 2",
    ] {
        refuses(&plan(SMALL, options), 2, "TPC0400");
    }
    let model = path(SMALL);
    for words in [
        vec![],
        vec!["plan"],
        vec!["plann", &model],
        vec!["plan", "--devices", "2"],
        vec!["dump", &model],
        vec!["dump", &model, "--stage", "egraph"],
        vec!["eval", &model],
        vec!["eval", &model, "--tokens", "1"],
        vec!["eval", &model, "--tokens", "1,x", "--logits", "out"],
        vec!["eval", &model, "--tokens", "-1", "--logits", "out"],
        vec![
            "eval", &model, "--golden", "a", "--tokens", "1", "--logits", "out",
        ],
        vec!["eval", &model, "--golden", "a", "--tolerance", "nan"],
        vec!["eval", &model, "--golden", "a", "--tolerance", "-1"],
        vec!["inspect"],
        vec!["synth", "llama-tiny"],
        vec!["explain", "TPC0300", "TPC0301"],
    ] {
        refuses(&tpc(&words), 2, "TPC0400");
    }
}

#[test]
fn an_argument_that_is_not_text_is_no_panic() {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let odd = OsStr::from_bytes(b"\xff\xfe");
        refuses(&tpc([OsStr::new("plan"), odd]), 2, "TPC0100");
        refuses(
            &tpc([OsStr::new("plan"), odd, OsStr::new("--devices"), odd]),
            2,
            "TPC0400",
        );
        refuses(&tpc([odd]), 2, "TPC0400");
    }
}

#[test]
fn unreadable_files_get_a_code_and_a_cure() {
    let scratch = Scratch::new();
    let folder = scratch.0.to_str().unwrap();
    let missing = scratch.path("missing.gguf");
    let missing = missing.to_str().unwrap();
    let empty = scratch.file("empty.gguf", "");
    let text = scratch.file(
        "text.gguf",
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit",
    );
    let header = fs::read(path(SMALL)).unwrap();
    let cut = scratch.file("cut.gguf", &header[..header.len() / 2]);
    for command in [&["plan"][..], &["inspect"], &["dump", "--stage", "model"]] {
        let with = |file: &str| tpc(command.iter().copied().chain([file]));
        refuses(&with(missing), 2, "TPC0100");
        refuses(&with(folder), 2, "TPC0100");
        refuses(&with(empty.to_str().unwrap()), 2, "TPC010");
        refuses(&with(text.to_str().unwrap()), 2, "TPC0101");
        refuses(&with(cut.to_str().unwrap()), 2, "TPC01");
    }
    refuses(&plan(SMALL, &format!("--topology {missing}")), 2, "TPC0402");
    refuses(&plan(SMALL, &format!("--topology {folder}")), 2, "TPC0402");
    let model = path(SMALL);
    refuses(&tpc(["eval", &model, "--golden", missing]), 2, "TPC0402");
    refuses(&tpc(["eval", &model, "--golden", folder]), 2, "TPC0402");
    refuses(&tpc(["synth", "llama-tiny", "-o", folder]), 2, "TPC0402");
    refuses(
        &tpc(["synth", "llama-tiny", "-o", &format!("{missing}/x.gguf")]),
        2,
        "TPC0402",
    );
    refuses(&tpc(["synth", "nonesuch", "-o", missing]), 2, "TPC0408");
}

#[test]
fn an_unsupported_model_is_a_finding() {
    let scratch = Scratch::new();
    let header = fs::read(path(SMALL)).unwrap();
    let at = header.windows(5).position(|w| w == b"qwen3").unwrap();
    let mut other = header;
    other[at..at + 5].copy_from_slice(b"qwenX");
    let file = scratch.file("other.gguf", other);
    let ran = tpc(["plan", file.to_str().unwrap()]);
    refuses(&ran, 1, "TPC0150");
    assert_eq!(tpc(["inspect", file.to_str().unwrap()]).status, 0);
}

#[test]
fn a_bad_topology_is_located() {
    let scratch = Scratch::new();
    let device = "(name: \"a\", bandwidth: 1e12, flops: 1e14)";
    for (text, said) in [
        (
            "Topology(\n  devices: [(name: \"a\", bandwidth: 1e12, flops: lots)],\n)".to_owned(),
            "line 2, column 48",
        ),
        (format!("Topology(devices: [{device}]"), "line 1, column "),
        (
            format!("Topology(devices: [{device}], spped: 1)"),
            "line 1, column ",
        ),
        ("Topology(devices: [])".to_owned(), "empty"),
        (String::new(), "line 1, column "),
        (
            "Topology(devices: [(name: \"a\", bandwidth: -1e12, flops: 1e14)])".to_owned(),
            "a: bandwidth",
        ),
        (
            "Topology(devices: [(name: \"a\", bandwidth: 1e12, flops: NaN)])".to_owned(),
            "a: flops",
        ),
        (
            "Topology(devices: [(name: \"a\", memory: Some(0), bandwidth: 1e12, flops: 1)])"
                .to_owned(),
            "a: memory",
        ),
        (
            format!(
                "Topology(devices: [{device}], links: [(a: 0, b: 7, link: (bandwidth: 1, latency_us: 1))])"
            ),
            "device 7",
        ),
        (
            format!("Topology(devices: [{device}], link: (bandwidth: 1, latency_us: inf))"),
            "latency_us",
        ),
    ] {
        let file = scratch.file("bad.ron", &text);
        let ran = plan(SMALL, &format!("--topology {}", file.display()));
        refuses(&ran, 2, "TPC0403");
        let line = ran.stderr.replace("\n  │", "");
        assert!(line.contains(said), "{text}: {}", ran.stderr);
    }
    let file = scratch.file("bytes.ron", b"Topology(\xff)");
    refuses(
        &plan(SMALL, &format!("--topology {}", file.display())),
        2,
        "TPC0403",
    );
}

#[test]
fn a_plan_that_does_not_fit_is_printed_and_fails() {
    let scratch = Scratch::new();
    let text =
        "Topology(devices: [(name: \"a\", memory: Some(1e8), bandwidth: 1e12, flops: 1e14)])";
    let file = scratch.file("small.ron", text);
    let ran = plan(
        SMALL,
        &format!("--devices 2 --topology {} --format json", file.display()),
    );
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("TPC0300"), "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["verdict"], "error");
    documented(&json);
    assert!(
        json["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .any(|d| d["code"] == "TPC0300")
    );
}

#[track_caller]
fn keys(json: &Json, expected: &[&str]) {
    let mut found: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[track_caller]
fn numbers(json: &Json, names: &[&str]) {
    for n in names {
        assert!(json[n].is_u64(), "{n}: {}", json[n]);
    }
}

#[track_caller]
fn strings(json: &Json, names: &[&str]) {
    for n in names {
        assert!(json[n].is_string(), "{n}: {}", json[n]);
    }
}

#[track_caller]
fn place(json: &Json) {
    let bytes = [
        "weights_bytes",
        "kv_bytes",
        "state_bytes",
        "compute_bytes",
        "staging_bytes",
        "total_bytes",
    ];
    keys(
        json,
        &[&["name", "kind", "capacity_bytes"][..], &bytes].concat(),
    );
    strings(json, &["name", "kind"]);
    numbers(json, &bytes);
    let parts: u64 = bytes[..4].iter().map(|n| json[n].as_u64().unwrap()).sum();
    assert_eq!(json["total_bytes"].as_u64().unwrap(), parts);
    assert!(json["capacity_bytes"].is_null() || json["capacity_bytes"].is_u64());
}

fn range(json: &Json) -> [u64; 2] {
    let pair = json.as_array().unwrap();
    assert_eq!(pair.len(), 2);
    [pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap()]
}

/// Ranges of a device: one, or several segments.
fn ranges(json: &Json) -> Vec<[u64; 2]> {
    match json.as_array().unwrap().first() {
        Some(first) if first.is_array() => json.as_array().unwrap().iter().map(range).collect(),
        Some(_) => vec![range(json)],
        None => Vec::new(),
    }
}

#[track_caller]
fn tensor(json: &Json, devices: usize) {
    keys(
        json,
        &["name", "dtype", "ne", "place", "sharding", "kind", "layer"],
    );
    strings(json, &["name", "dtype", "place", "kind"]);
    assert!(json["layer"].is_null() || json["layer"].is_u64());
    let ne: Vec<u64> = json["ne"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .collect();
    assert_eq!(ne.len(), 4);
    let sharding = &json["sharding"];
    keys(sharding, &["kind", "axis", "ranges"]);
    match sharding["kind"].as_str().unwrap() {
        "mirrored" => assert!(sharding["axis"].is_null()),
        "split" => {
            let axis = sharding["axis"].as_u64().unwrap() as usize;
            let all = sharding["ranges"].as_array().unwrap();
            assert_eq!(all.len(), devices);
            let mut held: Vec<[u64; 2]> =
                all.iter().flat_map(ranges).filter(|r| r[1] > 0).collect();
            held.sort_unstable();
            let mut end = 0;
            for [start, len] in held {
                assert!(start <= end, "{} has a gap at {end}", json["name"]);
                end = end.max(start + len);
            }
            assert_eq!(end, ne[axis], "{}", json["name"]);
        }
        other => panic!("{other}"),
    }
}

/// The keys and types of the command-line contract, and those that were added since.
#[track_caller]
fn documented(json: &Json) {
    keys(
        json,
        &[
            "tpc",
            "model",
            "verdict",
            "split_mode",
            "devices",
            "host",
            "tensors",
            "collectives",
            "estimate",
            "mirrored_bytes",
            "mirrored",
            "search",
            "considered",
            "diagnostics",
        ],
    );
    assert_eq!(json["tpc"], 1);
    assert!(["ok", "error"].contains(&json["verdict"].as_str().unwrap()));
    let modes = ["none", "layer", "tensor", "hybrid"];
    assert!(modes.contains(&json["split_mode"].as_str().unwrap()));
    for c in json["considered"].as_array().unwrap() {
        let figures = ["decode_us", "prefill_us", "fullest_bytes", "cost_us"];
        keys(c, &[&["name", "fits", "chosen"], &figures[..]].concat());
        strings(c, &["name"]);
        numbers(c, &["fullest_bytes"]);
        let time = |f: &str| c[f].as_f64().is_some_and(|x| x > 0.0);
        assert!(["decode_us", "prefill_us", "cost_us"].into_iter().all(time));
    }
    let model = &json["model"];
    keys(
        model,
        &[
            "path",
            "arch",
            "name",
            "n_layer",
            "n_params",
            "bytes",
            "n_ctx",
            "unused_bytes",
        ],
    );
    strings(model, &["path", "arch", "name"]);
    numbers(
        model,
        &["n_layer", "n_params", "bytes", "n_ctx", "unused_bytes"],
    );
    let devices = json["devices"].as_array().unwrap();
    devices.iter().for_each(place);
    place(&json["host"]);
    let group = match json["split_mode"].as_str() {
        Some("tensor") => devices.len(),
        _ => 1,
    };
    json["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .for_each(|t| tensor(t, group));
    keys(&json["collectives"], &["decode", "prefill"]);
    for batch in ["decode", "prefill"] {
        let counts = [
            "all_reduce",
            "all_gather",
            "reduce_scatter",
            "all_to_all",
            "copies",
            "bytes",
        ];
        keys(&json["collectives"][batch], &counts);
        numbers(&json["collectives"][batch], &counts);
    }
    let times = ["decode_us", "prefill_us", "baseline_single_us"];
    keys(&json["estimate"], &times);
    assert!(
        times
            .iter()
            .all(|t| json["estimate"][t].as_f64().is_some_and(|x| x > 0.0))
    );
    numbers(json, &["mirrored_bytes"]);
    json["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .for_each(diagnostic);
}

#[track_caller]
fn diagnostic(json: &Json) {
    keys(json, &["code", "severity", "message", "entity", "help"]);
    strings(json, &["code", "severity", "message", "entity"]);
    assert!(json["code"].as_str().unwrap().starts_with("TPC"));
    assert!(["error", "warning", "note"].contains(&json["severity"].as_str().unwrap()));
    assert!(json["help"].is_null() || json["help"].is_string());
}

#[test]
fn json_has_the_documented_keys() {
    for options in [
        "",
        "--devices 3",
        "--devices 12",
        "--devices 2 -sm none",
        "--devices cpu,cuda:0 -ts 3,1",
    ] {
        for header in [SMALL, "gpt-oss", "phi-4"] {
            let ran = plan(header, &format!("{options} --format json"));
            assert_eq!(ran.status, 0, "{}", ran.stderr);
            documented(&serde_json::from_str(&ran.stdout).unwrap());
        }
    }
}

#[test]
fn json_of_a_refusal_has_the_verdict_and_the_diagnostics() {
    let scratch = Scratch::new();
    let missing = scratch.path("missing.gguf");
    let missing = missing.to_str().unwrap();
    let model = path(SMALL);
    for (words, status) in [
        (vec!["plan", missing], 2),
        (vec!["plan", &model, "--devices", "0"], 2),
        (vec!["plan", &model, "-ot", "x=nowhere"], 2),
        (vec!["plan", &model, "--ctx-size", "0"], 2),
    ] {
        let ran = tpc(words.iter().chain(&["--format", "json"]));
        assert_eq!(ran.status, status);
        let json: Json = serde_json::from_str(&ran.stdout).unwrap();
        keys(&json, &["tpc", "model", "verdict", "diagnostics"]);
        assert_eq!(
            (&json["tpc"], &json["verdict"]),
            (&Json::from(1), &Json::from("error"))
        );
        assert_eq!(json["model"]["path"], words[1]);
        let all = json["diagnostics"].as_array().unwrap();
        all.iter().for_each(diagnostic);
        assert!(ran.stderr.contains(all[0]["code"].as_str().unwrap()));
        let ran = tpc(words.iter().chain(&["--format", "ron"]));
        assert_eq!(ran.status, status);
        assert!(
            ron::from_str::<ron::Value>(&ran.stdout).is_ok(),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn ron_says_what_json_says() {
    let json = plan(SMALL, "--devices 3 --format json");
    let ron = plan(SMALL, "--devices 3 --format ron");
    let json: Json = serde_json::from_str(&json.stdout).unwrap();
    let ron: ron::Value = ron::from_str(&ron.stdout).unwrap();
    let get = |names: &[&str]| {
        names.iter().fold(ron.clone(), |v, name| match v {
            ron::Value::Map(map) => map[&ron::Value::String((*name).to_owned())].clone(),
            other => panic!("{name} of {other:?}"),
        })
    };
    assert_eq!(get(&["verdict"]), ron::Value::String("ok".to_owned()));
    let ron::Value::Number(n) = get(&["model", "n_params"]) else {
        panic!()
    };
    assert_eq!(n.into_f64(), json["model"]["n_params"].as_f64().unwrap());
    let ron::Value::Seq(tensors) = get(&["tensors"]) else {
        panic!()
    };
    assert_eq!(tensors.len(), json["tensors"].as_array().unwrap().len());
}

#[test]
fn devices_hold_the_file_and_what_is_mirrored() {
    for header in headers() {
        for n in 1..=8_u64 {
            let ran = tpc([
                "plan",
                &header,
                "--devices",
                &n.to_string(),
                "-c",
                "512",
                "--format",
                "json",
            ]);
            assert_eq!(ran.status, 0, "{header}: {}", ran.stderr);
            let json: Json = serde_json::from_str(&ran.stdout).unwrap();
            let number = |v: &Json| v.as_u64().unwrap();
            let held: u64 = json["devices"]
                .as_array()
                .unwrap()
                .iter()
                .map(|d| number(&d["weights_bytes"]))
                .sum();
            let held = held + number(&json["host"]["weights_bytes"]);
            let used = number(&json["model"]["bytes"]) - number(&json["model"]["unused_bytes"]);
            assert_eq!(
                held,
                used + number(&json["mirrored_bytes"]),
                "{header} on {n}"
            );
            if n == 1 {
                assert_eq!(number(&json["mirrored_bytes"]), 0, "{header}");
            }
            let causes: u64 = json["mirrored"]
                .as_object()
                .unwrap()
                .values()
                .map(number)
                .sum();
            assert_eq!(causes, number(&json["mirrored_bytes"]), "{header} on {n}");
        }
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
        let ran = Ran::from(command.output().unwrap());
        assert!(!ran.stderr.contains('\x1b'), "{:?}", ran.stderr);
    }
    for command in [&["plan", "--help"][..], &["plan", "--bogus"]] {
        let mut command = {
            let mut c = Command::new(TPC);
            c.args(command);
            c
        };
        let ran = Ran::from(command.env("CLICOLOR_FORCE", "1").output().unwrap());
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
    // Neither does it matter to diagnostics.
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

#[test]
fn explain_knows_every_code() {
    let list = tpc(["explain"]);
    assert_eq!((list.status, list.stderr.as_str()), (0, ""));
    let codes: Vec<&str> = list
        .stdout
        .lines()
        .map(|l| l.split_whitespace().next().unwrap())
        .collect();
    assert!(codes.len() > 100 && codes.is_sorted());
    let mut unique = codes.clone();
    unique.dedup();
    assert_eq!(unique, codes);
    for code in ["TPC0100", "TPC0301", "tpc0301", "TPC0408"] {
        let one = tpc(["explain", code]);
        assert_eq!((one.status, one.stderr.as_str()), (0, ""));
        assert!(
            one.stdout.starts_with(&code.to_uppercase()),
            "{}",
            one.stdout
        );
        assert!(one.stdout.lines().count() > 2);
    }
    for code in ["TPC9999", "", "0301", "TPC0301x"] {
        refuses(&tpc(["explain", code]), 2, "TPC0407");
    }
}

#[test]
fn inspect_tells_what_is_in_a_header() {
    let model = path(SMALL);
    let short = tpc(["inspect", &model]);
    assert_eq!((short.status, short.stderr.as_str()), (0, ""));
    for part in [
        "header only",
        "general.architecture",
        "qwen3",
        "tensors",
        "q8_0",
    ] {
        assert!(short.stdout.contains(part), "{part}: {}", short.stdout);
    }
    let long = tpc(["inspect", &model, "--verbose"]);
    assert!(
        long.stdout.contains("blk.27.ffn_down.weight"),
        "{}",
        long.stdout
    );
    assert!(long.stdout.len() > short.stdout.len());
}

#[test]
fn what_is_dumped_parses_and_verifies() {
    for header in [SMALL, "gpt-oss", "phi-4", "gemma-3"] {
        for stage in ["model", "sharded", "programs"] {
            let ran = tpc(["dump", &path(header), "--devices", "3", "--stage", stage]);
            assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
            let parsed = tpc_ir::text::parse(&ran.stdout)
                .unwrap_or_else(|e| panic!("{header} {stage}: {e:?}"));
            assert!(
                tpc_ir::verify::verify(&parsed.graph).is_ok(),
                "{header} {stage}"
            );
            assert_eq!(parsed.graph.to_string(), ran.stdout, "{header} {stage}");
        }
        let ran = tpc(["dump", &path(header), "--stage", "factors"]);
        assert!(
            ran.status == 0 && ran.stdout.contains("may be split"),
            "{}",
            ran.stdout
        );
    }
}

/// A text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(words: &[&str]) -> Json {
    let ran = tpc(words);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn why_tells_what_became_of_each_factor() {
    let model = path(SMALL);
    let plan = [
        "plan",
        &model,
        "--devices",
        "2",
        "-c",
        "4096",
        "--format",
        "json",
    ];
    let bare = json(&plan);
    assert!(bare.get("why").is_none(), "only who asks is told");
    let one = json(&[&plan[..], &["--why", "blk.3.attn_k.weight"]].concat());
    let why = &one["why"][0];
    assert_eq!(why["tensor"], "blk.3.attn_k.weight");
    assert_eq!((&why["layer"], &why["place"]), (&3.into(), &"tp0".into()));
    let factors = why["factors"].as_array().unwrap();
    let of = |size: u64| factors.iter().find(|f| f["size"] == size).unwrap();
    // KV heads are split, rotation keeps the rows of a head together, the model width costs more.
    let heads = of(8);
    assert_eq!(
        (&heads["verdict"], &heads["kind"]),
        (&"split".into(), &"kv heads".into())
    );
    assert_eq!(heads["ranges"], serde_json::json!([[0, 4], [4, 4]]));
    let through = heads["through"].as_array().unwrap();
    let queries = through
        .iter()
        .find(|t| t["tensor"] == "blk.3.attn_q.weight");
    assert_eq!(
        (&queries.unwrap()["axis"], &queries.unwrap()["factors"]),
        (&1.into(), &3.into())
    );
    let rows = of(128);
    assert_eq!(
        (&rows["verdict"], &rows["op"]),
        (&"forbidden".into(), &"rope".into())
    );
    assert_eq!(
        (&rows["op_result"], &rows["op_layer"]),
        (&"Qcur-3".into(), &3.into())
    );
    let width = of(1024);
    assert_eq!(width["verdict"], "possible");
    let price = |of: &Json| of["price_us"].as_f64().unwrap();
    assert!(price(&width["alternative"]) > price(&width["chosen"]));
    assert_eq!(width["alternative"]["bytes"].as_array().unwrap().len(), 2);
    assert!(width["instead_of"].as_array().unwrap().len() > 28);
    // An alternative within one layer gives up what it clashes with there.
    let one = json(&[&plan[..], &["--why", "blk.3.attn_v.weight"]].concat());
    let rows = &one["why"][0]["factors"].as_array().unwrap()[2];
    assert_eq!(
        (&rows["verdict"], &rows["size"]),
        (&"possible".into(), &128.into())
    );
    assert_eq!(rows["instead_of"].as_array().unwrap().len(), 1);
    // Layers of which the same holds are told together.
    let many = json(
        &[
            &plan[..],
            &["--why", "attn_k.weight$", "--why", "token_embd.weight"],
        ]
        .concat(),
    );
    let many = many["why"].as_array().unwrap();
    assert_eq!(many.len(), 2);
    assert_eq!(many[0]["alike"].as_array().unwrap().len(), 27);
    let text = tpc(["plan", &model, "--devices", "2", "--why", "attn_k.weight$"]);
    for part in [
        "why blk.0.attn_k.weight (q8_0 1024×1024): axis 1 split on tp0, 2 × 512",
        "the same in layers 0-27",
        "`rope` of Qcur-0 (layer 0) needs axis 0 of",
        "that costs more",
    ] {
        assert!(
            words(&text.stdout).contains(part),
            "{part}: {}",
            text.stdout
        );
    }
    let text = tpc(["plan", &model, "--why", "output_norm.weight"]);
    assert!(
        text.stdout.contains("there is one device"),
        "{}",
        text.stdout
    );
}

#[test]
fn why_finds_tensors_of_captures_by_name_number_and_line() {
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/graphs/llama-dense.jsonl");
    let capture = capture.to_str().unwrap();
    let named = |asked: &str| {
        let words = [
            "plan",
            "--graph",
            capture,
            "--devices",
            "2",
            "--format",
            "json",
            "--why",
            asked,
        ];
        json(&words)["why"][0].clone()
    };
    let by_name = named("blk.0.attn_q.weight");
    let number = by_name["value"].as_str().unwrap().to_owned();
    assert_eq!(named(&number), by_name);
    let text = fs::read_to_string(capture).unwrap();
    let line = text
        .lines()
        .position(|l| l.contains("\"ffn_out-1\""))
        .unwrap()
        + 1;
    let by_line = named(&format!("line:{line}"));
    assert_eq!(
        (&by_line["tensor"], &by_line["layer"]),
        (&"ffn_out-1".into(), &1.into())
    );
    for (asked, help) in [
        ("blk.0.atn_q.weight", "did you mean `blk.0.attn_q.weight`?"),
        ("line:100000", "a tensor's name"),
        ("(", "a tensor's name"),
    ] {
        let ran = tpc(["plan", "--graph", capture, "--devices", "2", "--why", asked]);
        refuses(&ran, 2, "TPC0409");
        assert!(words(&ran.stderr).contains(help), "{}", ran.stderr);
    }
}

#[test]
fn ops_without_a_rule_are_planned_around_and_named_with_what_they_cost() {
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/graphs/llama-dense.jsonl");
    let text = fs::read_to_string(capture).unwrap();
    let scratch = Scratch::new();
    for (op, code, severity) in [
        ("CONV_2D", "TPC0190", "note"),
        ("FROBNICATE", "TPC0194", "warning"),
    ] {
        // The first gated activation.
        let file = scratch.file(
            "capture.jsonl",
            text.replacen("\"SWIGLU\"", &format!("\"{op}\""), 1),
        );
        let file = file.to_str().unwrap();
        let words = [
            "plan",
            "--graph",
            file,
            "--devices",
            "2",
            "--format",
            "json",
        ];
        let report = json(&words);
        assert_eq!(report["verdict"], "ok");
        let all = report["diagnostics"].as_array().unwrap();
        let of = |code: &str| all.iter().find(|d| d["code"] == code).unwrap();
        assert_eq!(of(code)["severity"], severity);
        let message = of(code)["message"].as_str().unwrap();
        assert!(
            message.contains(op) && message.contains("ffn_swiglu-0"),
            "{message}"
        );
        let cost = of("TPC0305")["message"].as_str().unwrap();
        for part in [
            "ffn_swiglu-0 (layer 0)",
            "blk.0.ffn_gate.weight",
            "blk.0.ffn_down.weight",
            "stay whole on every device",
        ] {
            assert!(cost.contains(part), "{part}: {cost}");
        }
    }
}

#[test]
fn factors_are_told_per_kind_of_layer() {
    let ran = tpc(["dump", &path(SMALL), "--stage", "factors"]);
    for part in [
        "before the first layer",
        "layers 0-27 are alike; layer 0",
        "after the last layer",
        "(kv heads); ranges may end anywhere",
        "blk.0.attn_q.weight axis 1 (major of 3 factors)",
        "`rope` of Qcur-0 (layer 0) needs axis 0 of",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/graphs/falcon-h1-dense.jsonl");
    let ran = tpc([
        "dump",
        "--graph",
        capture.to_str().unwrap(),
        "--stage",
        "factors",
    ]);
    for part in ["(state heads)", "segment 5 of 5", "cache_s_l0"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn eval_compares_with_what_it_wrote() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    let golden = scratch.path("golden.logits");
    let golden = golden.to_str().unwrap();
    let wrote = tpc(["eval", model, "--tokens", "3,1,4,1,5", "--logits", golden]);
    assert_eq!(
        (wrote.status, wrote.stdout.as_str(), wrote.stderr.as_str()),
        (0, "", "")
    );
    for options in [
        &["--devices", "2"][..],
        &["--devices", "3", "-ub", "2"],
        &["-ts", "1,0", "--devices", "2"],
    ] {
        let ran = tpc(["eval", model, "--golden", golden].iter().chain(options));
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{options:?}");
        let last = ran.stdout.lines().last().unwrap();
        let words: Vec<&str> = last.split(' ').collect();
        assert!(
            words[0].starts_with("nmse=") && words[1].starts_with("max_abs="),
            "{last}"
        );
        assert_eq!((words.len(), words[2]), (3, "tokens=5"));
        assert!(
            words[..2]
                .iter()
                .all(|w| w.split_once('=').unwrap().1.parse::<f64>().is_ok())
        );
    }
    let bytes = fs::read(golden).unwrap();
    let eval = |bytes: &[u8]| {
        tpc([
            "eval",
            model,
            "--golden",
            scratch.file("bad.logits", bytes).to_str().unwrap(),
        ])
    };
    for n in [0, 3, 4, 15, 16, 20, bytes.len() - 1] {
        refuses(&eval(&bytes[..n]), 2, "TPC0404");
    }
    refuses(&eval(&[bytes.as_slice(), &[0]].concat()), 2, "TPC0404");
    let with = |at: usize, word: i32| {
        let mut b = bytes.clone();
        b[at..at + 4].copy_from_slice(&word.to_le_bytes());
        b
    };
    refuses(&eval(&with(0, 0x4655_4747)), 2, "TPC0404");
    refuses(&eval(&with(4, i32::MAX)), 2, "TPC0404");
    refuses(&eval(&with(8, -1)), 2, "TPC0404");
    refuses(&eval(&with(16, -1)), 2, "TPC0404");
    // A token that the vocabulary has not.
    refuses(&eval(&with(16, i32::MAX)), 1, "TPC05");
    // Logits of a smaller vocabulary.
    let n = i32::from_le_bytes(bytes[8..12].try_into().unwrap());
    let mut other = with(8, n - 1);
    other.truncate(other.len() - 5 * 4);
    refuses(&eval(&other), 1, "TPC0406");
    // Other logits: the figures are printed, and the status says that they are too large.
    let ran = eval(&with(bytes.len() - 4, 100.0_f32.to_bits().cast_signed()));
    assert_eq!(ran.status, 1);
    assert!(
        ran.stdout.starts_with("nmse=") && ran.stderr.contains("TPC0406"),
        "{ran:?}"
    );
    let ran = tpc(["eval", model, "--golden", golden, "--tolerance", "0"]);
    assert_eq!(ran.status, 1, "rounded to f32");
}

#[test]
fn eval_of_a_header_needs_the_data() {
    let ran = tpc([
        "eval",
        &path(SMALL),
        "--tokens",
        "1",
        "--logits",
        "never-written",
    ]);
    refuses(&ran, 2, "TPC0405");
    assert!(!Path::new("never-written").exists());
}

#[test]
fn odd_models_are_planned_and_run() {
    let scratch = Scratch::new();
    for spec in [
        "llama:layers=1,embd=32,heads=1,kv_heads=1,ff=32,vocab=1,type=f32",
        "llama:layers=1,embd=32,heads=1,kv_heads=1,head_dim=2,ff=1,vocab=2,type=f32",
        "qwen3:layers=1,embd=33,heads=3,kv_heads=3,head_dim=6,ff=7,vocab=5,type=f32",
        "qwen3moe:layers=1,embd=32,heads=2,kv_heads=1,head_dim=16,experts=1,experts_used=1,ff=32,vocab=9,type=f32",
        "llama:layers=3,embd=64,heads=4/2/4,kv_heads=2/2/1,head_dim=16,ff=64/32/96,vocab=9,type=f32",
        "gpt-oss:layers=2,embd=96,heads=3,kv_heads=1,head_dim=32,ff=32,experts=5,experts_used=5,vocab=9",
        "olmo2:layers=2,embd=48,heads=3,kv_heads=3,ff=5,vocab=7,type=f16",
    ] {
        let model = scratch.model(spec);
        let model = model.to_str().unwrap();
        let golden = scratch.path("golden.logits");
        let golden = golden.to_str().unwrap();
        let one = tpc(["eval", model, "--tokens", "0,0,0", "--logits", golden]);
        assert_eq!(one.status, 0, "{spec}: {}", one.stderr);
        for options in [
            "--devices 2",
            "--devices 5",
            "--devices 64",
            "--devices 3 -ts 0,0,1",
            "--devices 4 -np 1000",
        ] {
            let words = ["eval", model, "--golden", golden]
                .into_iter()
                .chain(options.split(' '));
            let ran = tpc(words);
            assert_eq!(ran.status, 0, "{spec} {options}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_captured_graph_is_planned_like_a_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/graphs");
    let capture = folder.join("llama-dense.jsonl").display().to_string();
    let ran = tpc([
        "plan",
        "--graph",
        &capture,
        "--devices",
        "2",
        "--format",
        "json",
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["verdict"], "ok");
    assert_eq!(json["model"]["arch"], "capture");
    let split = |t: &&Json| t["sharding"]["kind"] == "split";
    let tensors = json["tensors"].as_array().unwrap();
    assert!(tensors.iter().filter(split).count() * 2 > tensors.len());
    let dumped = tpc([
        "dump",
        "--graph",
        &capture,
        "--devices",
        "2",
        "--stage",
        "programs",
    ]);
    let graph = tpc_ir::text::parse(&dumped.stdout).unwrap().graph;
    tpc_ir::verify::verify(&graph).unwrap();
    // A model and a capture at once, neither, and a capture that is none.
    refuses(&tpc(["plan", &capture, "--graph", &capture]), 2, "TPC0400");
    refuses(&tpc(["plan", "--devices", "2"]), 2, "TPC0400");
    let header = path("llama-3.1-8b");
    refuses(&tpc(["plan", "--graph", &header]), 2, "TPC0180");
}
