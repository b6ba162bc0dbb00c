//! Mistakes on the command line, and habits of other programs' users: every message has a cure, and exit statuses are
//! stable.
//!
//! A row is a command line, its exit status, the code, and a part of the cure. `{m}` is a header, `{d}` a folder
//! without models. `_` within a word becomes a space.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::support::{Ran, SMALL, Scratch, path, tpc, tpc_in, words};

type Row = (&'static str, i32, &'static str, &'static str);

const OPTIONS: &[Row] = &[
    ("plan --offline -hf u/n:Q4_K_M", 2, "TPC0446", "tpc models"),
    ("plan --offline https://h/a.gguf", 2, "TPC0454", "--offline"),
    ("plan -hf n", 2, "TPC0445", "-hf USER/NAME"),
    (
        "plan -hf u/n -hff ../f.gguf",
        2,
        "TPC0445",
        "-hff FILE.gguf",
    ),
    ("plan -hf", 2, "TPC0400", "-hf USER/NAME -hff FILE.gguf"),
    ("plan -hff f.gguf", 2, "TPC0400", "-hf USER/NAME"),
    ("plan -m", 2, "TPC0400", "-m MODEL.gguf"),
    ("plan {m} -c -1", 2, "TPC0400", "0 is the model's context"),
    ("plan {m} -c 32kb", 2, "TPC0400", "or 32k"),
    ("plan {m} -c 32.5k", 2, "TPC0400", "or 32k"),
    ("plan {m} --ctx-size=", 2, "TPC0400", "or 32k"),
    ("plan {m} -ub 0", 2, "TPC0400", "such as 512"),
    ("plan {m} -np 0", 2, "TPC0400", "at least 1"),
    ("plan {m} -ncmoe -2", 2, "TPC0400", "--cpu-moe"),
    ("plan {m} --depth deep", 2, "TPC0400", "4096"),
    ("plan {m} -c 4k --depth 4097", 2, "TPC0400", "at most 4096"),
    ("plan {m} -ngl 1.5", 2, "TPC0400", "`all`"),
    ("plan {m} -ctk q8", 2, "TPC0400", "q8_0"),
    ("plan {m} -ctv q8_KV", 2, "TPC0400", "q8_0"),
    ("plan {m} -sm rows", 2, "TPC0400", "layer or tensor"),
    ("plan {m} -ts a,b --devices 2", 2, "TPC0400", ""),
    (
        "plan {m} -ts 1,2,3 --devices 2",
        2,
        "TPC0400",
        "one per device",
    ),
    ("plan {m} --devices two", 2, "TPC0400", "2"),
    ("plan {m} --devices 0", 2, "TPC0400", "1 to 64"),
    ("plan {m} --devices -1", 2, "TPC0400", "1 to 64"),
    (
        "plan {m} --devices 2,4",
        2,
        "TPC0400",
        "--devices 2 --devices 4",
    ),
    (
        "plan {m} --devices 2x3090+1x4090",
        2,
        "TPC0400",
        "`2x3090,1x4090`",
    ),
    ("plan {m} -c 8k,x", 2, "TPC0400", "or 32k"),
    ("lint {m} -c 8k,16k", 2, "TPC0400", "give one value"),
    ("plan {m} --engine vllm", 2, "TPC0400", "llama.cpp"),
    ("plan {m} --format yaml", 2, "TPC0400", "json"),
    ("plan {m} --emit nomad", 2, "TPC0400", "llama-swap"),
    ("plan {m} --emit-image x", 2, "TPC0400", "--emit"),
    ("plan {m} --spec-type mtp", 2, "TPC0400", "draft-mtp"),
    ("plan {m} -ot x", 2, "TPC0410", "REGEX=PLACE"),
    ("plan {m} -ot (ffn=CPU", 2, "TPC0410", "regex"),
    ("plan {m} -ot ffn=GPU7", 2, "TPC0410", "dev0"),
    ("plan {m} -nlg 3", 2, "TPC0400", "-ngl"),
    ("plan {m} --n-gpu-layer 3", 2, "TPC0400", "--n-gpu-layers"),
    ("plan {m} --no-mmapp", 2, "TPC0400", "--no-mmap"),
    ("plan {m} -tp 2", 2, "TPC0400", "-sm tensor"),
    (
        "plan {m} --pipeline-parallel-size 2",
        2,
        "TPC0400",
        "-sm layer",
    ),
    ("plan {m} --gpus 2", 2, "TPC0400", "--devices 2"),
    (
        "plan {m} --gpu-memory-utilization 0.9",
        2,
        "TPC0400",
        "--reserve",
    ),
    ("plan {m} --kv-cache-dtype fp8", 2, "TPC0400", "-ctk"),
    ("plan {m} --list-devices", 2, "TPC0400", "tpc devices"),
    (
        "plan {m} --override-kv a=int:1",
        2,
        "TPC0400",
        "gguf_set_metadata.py",
    ),
    ("plan {m} --why", 2, "TPC0400", ""),
    ("plan {m} -- -c 4096", 2, "TPC0100", "before `--`"),
    ("plan {m} -c 4096 8192", 2, "TPC0100", "one value"),
    ("plan {m} \u{2014}devices 2", 2, "TPC0100", "--devices"),
    (
        "plan {m} \u{201c}-sm\u{201d} tensor",
        2,
        "TPC0100",
        "straight quotes",
    ),
    ("{m}", 2, "TPC0400", "tpc plan"),
    ("-c 4096 {m}", 2, "TPC0400", "tpc plan"),
    ("llama-server -m {m}", 2, "TPC0400", "tpc lint --"),
    ("plann {m}", 2, "TPC0400", "plan"),
    ("dump {m} --stage modle", 2, "TPC0400", "model"),
    ("schema plans", 2, "TPC0400", "plan"),
    ("explain 9999", 2, "TPC0407", "tpc explain"),
    ("explain TPC301O", 2, "TPC0407", "tpc explain"),
    ("completions tcsh", 2, "TPC0400", "zsh"),
    ("synth lama-tiny -o {d}/x", 2, "TPC0408", "llama-tiny"),
    ("inspect {m} --tensors (", 2, "TPC0400", "regex"),
    ("inspect {m} --format yaml", 2, "TPC0400", "json"),
    ("lint", 2, "TPC0400", "tpc lint MODEL.gguf"),
    ("lint {m} --deny TPC31x", 2, "TPC0407", "tpc explain"),
    (
        "lint {m} --deny TPC0306 --allow TPC0306",
        2,
        "TPC0400",
        "leave out",
    ),
    (
        "lint {m} {m} -- llama-server -c 4096",
        2,
        "TPC0400",
        "only the model",
    ),
    ("lint -- vllm serve", 2, "TPC0400", "llama-server"),
    ("lint -- llama-server -m {m} -c", 2, "TPC0400", "-c VALUE"),
];

const FILES: &[Row] = &[
    ("plan {d}/two", 2, "TPC0100", "holds 2 models"),
    ("plan {d}/none", 2, "TPC0100", "a .gguf file"),
    ("plan {d}/st", 2, "TPC0100", "convert_hf_to_gguf.py"),
    (
        "plan {d}/m.safetensors",
        2,
        "TPC0101",
        "convert_hf_to_gguf.py",
    ),
    ("plan {d}/m.bin", 2, "TPC0101", "convert_hf_to_gguf.py"),
    (
        "plan {d}/old.bin",
        2,
        "TPC0101",
        "convert the original model",
    ),
    ("plan {d}/m.onnx", 2, "TPC0101", "convert_hf_to_gguf.py"),
    ("plan {d}/lfs.gguf", 2, "TPC0101", "git lfs pull"),
    ("plan {d}/page.gguf", 2, "TPC0101", "/resolve/main/"),
    ("plan {d}/said.gguf", 2, "TPC0101", "/resolve/main/"),
    ("plan {d}/config.json", 2, "TPC0101", ".gguf file"),
    ("plan {d}/m.gguf.zst", 2, "TPC0101", "unpack"),
    ("plan {d}/zeros.gguf", 2, "TPC0101", "download to finish"),
    ("plan {d}/empty.gguf", 2, "TPC0103", "fetch it again"),
    ("plan {d}/s-00002-of-00003.gguf", 2, "TPC0123", "all shards"),
    ("plan {d}/fifo", 2, "TPC0100", "save the model as a file"),
    ("plan /dev/zero", 2, "TPC0100", "save the model as a file"),
    ("plan /dev/stdin", 2, "TPC0100", "save the model as a file"),
    ("plan --graph /dev/zero", 2, "TPC0402", "path of a file"),
    ("plan --graph {d}/fifo", 2, "TPC0402", "path of a file"),
    (
        "plan {m} --topology /dev/zero",
        2,
        "TPC0402",
        "path of a file",
    ),
    ("plan {m} --topology {m}", 2, "TPC0403", "--devices 2x3090"),
    (
        "eval {m} --golden /dev/zero",
        2,
        "TPC0402",
        "path of a file",
    ),
    ("plan {d}/loop", 2, "TPC0100", "path"),
    ("plan --graph {m}", 2, "TPC0180", "without --graph"),
    ("plan -", 2, "TPC0100", "as a file"),
    ("plan {d}/*.nothing", 2, "TPC0100", "pattern"),
    ("plan ~/x.gguf", 2, "TPC0100", "quotes"),
    ("plan _{d}/m.gguf", 2, "TPC0100", "a space"),
    ("plan {m}f", 2, "TPC0100", "did you mean"),
    ("plan {d}/begun.gguf", 2, "TPC0100", "begun.gguf.part"),
    ("plan {d}/nowhere/m.gguf", 2, "TPC0100", "does not exist"),
    (
        "plan user/name:Q4_K_M",
        2,
        "TPC0100",
        "-hf user/name:Q4_K_M",
    ),
    (
        "plan huggingface.co/u/n/blob/main/f.gguf",
        2,
        "TPC0100",
        "https://huggingface.co",
    ),
    ("plan C:\\models\\m.gguf", 2, "TPC0100", "`/`"),
    (
        "plan https://huggingface.co/u/n",
        2,
        "TPC0430",
        "/u/n/tree/main",
    ),
    ("plan ftp://h.org/x.gguf", 2, "TPC0430", "https://"),
    ("plan https://", 2, "TPC0430", "https://HOST"),
    ("plan http://127.0.0.1:1/x.gguf", 2, "TPC0432", "connection"),
    (
        "eval https://h.org/x.gguf --tokens 1 --logits {d}/o",
        2,
        "TPC0405",
        "download",
    ),
    (
        "eval {m} --tokens 1 --logits {d}/o",
        2,
        "TPC0405",
        "whole model",
    ),
    ("synth llama-tiny -o {d}", 2, "TPC0402", ""),
    ("lint {d}/*.nothing", 2, "TPC0400", "`**`"),
    ("lint {m} --config {d}/bad.toml", 2, "TPC0424", "`files`"),
    ("lint {m} --config {d}/absent.toml", 2, "TPC0402", "path"),
    ("lint {m} --config {d}/codes.toml", 2, "TPC0407", "TPC0306"),
];

const UNDERSTOOD: &[Row] = &[
    ("plan -m {m} -c 0", 0, "", ""),
    ("plan {m} -c 32k", 0, "", ""),
    ("plan {m} -c 4K -ngl 99 -fa on", 0, "", ""),
    (
        "plan {m} -c 4k -t 16 -tb 8",
        0,
        "TPC0420",
        "does not depend on threads",
    ),
    (
        "plan {m} -c 4k -b 2048 --temp 0.7 -s 1 --port 8080 --jinja",
        0,
        "TPC0420",
        "sampling does not change a plan",
    ),
    ("plan {m} -c 4k -fit on -fitc 4096", 0, "TPC0420", "TPC0300"),
    (
        "plan {m} -c 4k --max-gpu 2 -fmoe -rtr -amb 512 -mla 3",
        0,
        "TPC0420",
        "compares groups",
    ),
    (
        "plan {m} -c 4k --draft-max 8",
        0,
        "TPC0420",
        "needs --engine llama.cpp",
    ),
    (
        "plan {m} -c 4k --devices 2 -sm row",
        0,
        "TPC0421",
        "--split-mode tensor",
    ),
    (
        "plan {m} -c 4k --devices 2 -sm graph",
        0,
        "TPC0421",
        "--split-mode tensor",
    ),
    (
        "plan {m} -c 4k --device CUDA0,CUDA1",
        0,
        "TPC0421",
        "cuda:0,cuda:1",
    ),
    (
        "plan {m} --max-model-len 4096",
        0,
        "TPC0421",
        "--ctx-size 4096",
    ),
    ("plan {d}/one", 0, "TPC0423", "whole.gguf"),
    ("plan {d}/begun.gguf.part", 0, "TPC0422", "are missing"),
    ("verify {d}/begun.gguf.part", 0, "TPC0422", "are missing"),
    ("inspect {d}/begun.gguf.part", 0, "TPC0422", "are missing"),
    ("plan {d}/add.jsonl", 0, "TPC0421", "--graph"),
    ("schema bench", 0, "", ""),
    ("explain 306", 0, "", ""),
    ("explain tpc306", 0, "", ""),
];

/// Makes the folder without models.
fn folder() -> Scratch {
    let d = Scratch::new();
    for folder in ["two", "none", "st", "one"] {
        fs::create_dir(d.path(folder)).unwrap();
    }
    let whole = d.model("llama-tiny");
    let bytes = fs::read(&whole).unwrap();
    fs::remove_file(whole).unwrap();
    for name in [
        "two/a.gguf",
        "two/b.gguf",
        "one/whole.gguf",
        "one/mmproj-x.gguf",
    ] {
        d.file(name, &bytes);
    }
    d.file("begun.gguf.part", &bytes[..bytes.len() * 2 / 3]);
    d.file("st/model.safetensors", "");
    let mut shard = tpc_gguf::GgufWriter::new("s");
    shard
        .meta("split.no", 1u16)
        .meta("split.count", 3u16)
        .meta("split.tensors.count", 3i32);
    let mut out = Vec::new();
    shard.write_header(&mut out).unwrap();
    d.file("s-00002-of-00003.gguf", out);
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs/llama-dense.jsonl");
    d.file("add.jsonl", fs::read(capture).unwrap());
    for (name, bytes) in [
        (
            "m.safetensors",
            &b"\x10\0\0\0\0\0\0\0{\"a\":1}         "[..],
        ),
        ("m.bin", b"PK\x03\x04 archive/data.pkl"),
        ("old.bin", b"tjgg\x03\0\0\0"),
        ("m.onnx", b"\x08\x08\x12\x07pytorch"),
        (
            "lfs.gguf",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        ),
        ("page.gguf", b"<!doctype html><html></html>"),
        ("said.gguf", b"Invalid username or password."),
        ("config.json", b"{\n  \"architectures\": []\n}"),
        ("m.gguf.zst", b"\x28\xb5\x2f\xfd\0\0"),
        ("zeros.gguf", &[0; 64]),
        ("empty.gguf", b""),
        ("bad.toml", b"[lint]\nfils = []\n"),
        ("codes.toml", b"[lint]\ndeny = [\"TPC0306x\"]\n"),
    ] {
        d.file(name, bytes);
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("loop", d.path("loop")).unwrap();
        let made = Command::new("mkfifo").arg(d.path("fifo")).status();
        assert!(made.is_ok_and(|s| s.success()), "mkfifo");
    }
    d
}

fn run(line: &str, d: &Scratch, model: &str) -> Ran {
    let expand = |w: &str| {
        w.replace('_', " ")
            .replace("{m}", model)
            .replace("{d}", d.0.to_str().unwrap())
    };
    // Underscores in real names stay.
    let word = |w: &str| match w.starts_with('_') {
        true => expand(w),
        false => w
            .replace("{m}", model)
            .replace("{d}", d.0.to_str().unwrap()),
    };
    tpc_in(&d.0, line.split_whitespace().map(word))
}

fn fault(row: &Row, ran: &Ran) -> Option<String> {
    let (line, status, code, part) = row;
    let text = words(&ran.stderr);
    let fine = *status == 0;
    let told = match text.split_once(code) {
        Some((_, told)) => told,
        None => return Some(format!("tpc {line}: no {code}: {text}")),
    };
    let help = told.split_once("help: ").map(|(_, help)| help);
    let place = if fine { Some(told) } else { help };
    if ran.status != *status {
        return Some(format!("tpc {line}: status {}: {text}", ran.status));
    }
    match place {
        Some(place) if place.contains(part) => None,
        None if fine => None,
        _ => Some(format!("tpc {line}: `{part}` is not said: {text}")),
    }
}

fn all_told(rows: &[Row]) {
    let d = folder();
    let model = path(SMALL);
    let begun = Instant::now();
    let faults: Vec<String> = rows
        .iter()
        .filter_map(|row| fault(row, &run(row.0, &d, &model)))
        .collect();
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        rows.len(),
        faults.join("\n\n")
    );
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn mistakes_in_options() {
    all_told(OPTIONS);
}

#[test]
fn mistakes_in_files_and_addresses() {
    all_told(FILES);
    assert!(OPTIONS.len() + FILES.len() > 100);
}

#[test]
fn habits_of_other_programs() {
    all_told(UNDERSTOOD);
}

#[test]
fn many_files_are_linted_with_settings() {
    let d = folder();
    d.file(
        "tpc.toml",
        "[lint]\nfiles = [\"two/*.gguf\", \"one\"]\ndevices = 2\nallow = [\"TPC0611\"]\n\
         [[lint.override]]\nfiles = [\"two/b.gguf\"]\ndevices = \"3\"\n",
    );
    fs::create_dir(d.path("below")).unwrap();
    let lint = |arguments: &[&str]| -> Ran {
        let words = std::iter::once(&"lint").chain(arguments);
        tpc_in(&d.path("below"), words)
    };
    let ran = lint(&["--format", "json"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let files = json["files"].as_array().unwrap();
    let of = |i: usize| {
        (
            files[i]["path"].as_str().unwrap(),
            files[i]["devices"][0].as_u64().unwrap(),
        )
    };
    assert_eq!(files.len(), 4, "{}", ran.stdout);
    assert!(
        of(0).0.ends_with("two/a.gguf") && of(0).1 == 2 && of(1).1 == 3,
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("TPC0611"), "{}", ran.stdout);
    // The command line overrides the settings; the worst status counts.
    let a = d.path("two/a.gguf");
    let a = a.to_str().unwrap();
    let ran = lint(&[
        a,
        d.path("empty.gguf").to_str().unwrap(),
        "--devices",
        "4",
        "--format",
        "json",
    ]);
    assert_eq!(ran.status, 2);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (
            json["verdict"].as_str(),
            json["files"][0]["devices"][0].as_u64()
        ),
        (Some("error"), Some(4))
    );
    let ran = lint(&[a, "--deny", "TPC0611", "--devices", "4"]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("TPC0611").count(), 1, "{}", ran.stderr);
    // A single device does not share tensors.
    let ran = lint(&[a, "--deny", "TPC0611", "--devices", "1"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let pattern = d.path("two/*.gguf");
    let pattern = pattern.to_str().unwrap();
    for format in ["text", "json", "sarif", "github"] {
        let ran = lint(&[pattern, "--devices", "8", "--format", format]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        for name in ["two/a.gguf", "two/b.gguf"] {
            assert!(ran.stdout.contains(name), "{format}: {}", ran.stdout);
        }
    }
    assert!(lint(&[pattern]).stdout.contains("2 files: "));
}

#[test]
fn inspect_as_json() {
    let model = path(SMALL);
    let ran = tpc([
        "inspect",
        &model,
        "--format",
        "json",
        "--tensors",
        "attn_k\\.",
        "--keys",
        "block_count",
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    for key in [
        "tpc",
        "version",
        "byte_order",
        "alignment",
        "data_offset",
        "has_data",
        "n_params",
        "bytes",
        "files",
        "missing",
        "metadata",
        "tensors",
    ] {
        assert!(!json[key].is_null(), "{key}");
    }
    assert_eq!(json["metadata"]["qwen3.block_count"], 28);
    let tensors = json["tensors"].as_array().unwrap();
    assert_eq!(tensors.len(), 28);
    let t = &tensors[0];
    assert_eq!(
        (&t["type"], &t["ne"], &t["bytes"]),
        (
            &"q8_0".into(),
            &serde_json::json!([1024, 1024, 1, 1]),
            &1_114_112.into()
        )
    );
    assert!(t["name"].is_string() && t["offset"].is_u64() && t["file"] == 0);
}
