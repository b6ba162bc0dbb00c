//! Diagnostics for wrong usage and for unusable files.

use std::ffi::OsStr;
use std::fs;

use super::support::{SMALL, Scratch, path, plan, refuses, tpc};

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
        "--ctx-size 4294967297",
        "--ctx-size 1000000000000000000",
        "--ctx-size 99999999999999999999",
        "--ctx-size 1e18",
        "--ctx-size -5",
        "--ubatch-size 0",
        "--ubatch-size 18446744073709551615",
        "--parallel 0",
        "--parallel x",
        "--spec-type draft-eagle3",
        "--spec-type",
        "--format xml",
        "--flash-attention on",
        "--unknown",
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
            "line 2, column 49: flops: `lots` is not a number",
        ),
        (format!("Topology(devices: [{device}]"), "line 1, column "),
        (
            format!("Topology(devices: [{device}], spped: 1)"),
            "line 1, column ",
        ),
        ("Topology(devices: [])".to_owned(), "empty"),
        (
            "Topology(devices: [(card: \"3090\", memory: 24)])".to_owned(),
            "column 43: memory: 24 is 24 bytes",
        ),
        (
            "Topology(devices: [(card: \"3091\")])".to_owned(),
            "column 27: unknown card `3091`",
        ),
        (String::new(), "line 1, column "),
        (
            "Topology(devices: [(name: \"a\", bandwidth: -1e12, flops: 1e14)])".to_owned(),
            "column 43: bandwidth: `-1e12` is not a possible number",
        ),
        (
            "Topology(devices: [(name: \"a\", bandwidth: 1e12, flops: NaN)])".to_owned(),
            "column 56: flops: `NaN` is not a number",
        ),
        (
            "Topology(devices: [(name: \"a\", memory: Some(0), bandwidth: 1e12, flops: 1e14)])"
                .to_owned(),
            "column 45: memory is 0",
        ),
        (
            format!(
                "Topology(devices: [{device}], links: [(a: 0, b: 7, link: (bandwidth: 1e9, latency_us: 1))])"
            ),
            "device 7",
        ),
        (
            format!("Topology(devices: [{device}], link: (bandwidth: 1e9, latency_us: inf))"),
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
