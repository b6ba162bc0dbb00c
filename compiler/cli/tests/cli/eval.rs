//! `tpc eval`.

use std::fs;
use std::path::Path;

use super::support::{SMALL, Scratch, path, refuses, tpc};

fn reference(scratch: &Scratch) -> [String; 2] {
    let model = scratch.model("llama-tiny").to_str().unwrap().to_owned();
    let golden = scratch.path("golden.logits").to_str().unwrap().to_owned();
    let tokens = ["--tokens", "3,1,4,1,5", "--logits", &golden];
    assert_eq!(tpc([&["eval", &model][..], &tokens].concat()).status, 0);
    [model, golden]
}

#[test]
fn the_cpu_agrees_with_the_reference() {
    let scratch = Scratch::new();
    let [model, golden] = &reference(&scratch);
    let cpu = [
        "eval",
        model,
        "--golden",
        golden,
        "--executor",
        "cpu",
        "-t",
        "1",
    ];
    for options in [&[][..], &["-ub", "2"], &["--devices", "2"]] {
        let ran = tpc(cpu.iter().chain(options));
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{options:?}");
    }
}

#[test]
fn emulated_devices_agree_with_the_reference() {
    let scratch = Scratch::new();
    let [model, golden] = &reference(&scratch);
    let emulated = [
        "eval",
        model,
        "--golden",
        golden,
        "--executor",
        "emulated-cuda",
    ];
    for options in [
        &[][..],
        &["-ub", "2"],
        &["--devices", "cpu,cpu", "-sm", "tensor"],
        &["--devices", "2", "-ngl", "1"],
        &["--devices", "cuda:0,cuda:0"],
        &["--devices", "cuda:5,cuda:1,cuda:5"],
    ] {
        let ran = tpc(emulated.iter().chain(options));
        if ran.stderr.contains("no compiler for the kernels") {
            return;
        }
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{options:?}");
    }
    let checked = [
        "eval",
        model,
        "--golden",
        golden,
        "--executor",
        "checked-cuda",
    ];
    let ran = tpc(checked.iter().chain(&["--devices", "2"]));
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
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
    refuses(&eval(&with(16, i32::MAX)), 2, "TPC0400");
    let n = i32::from_le_bytes(bytes[8..12].try_into().unwrap());
    let mut other = with(8, n - 1);
    other.truncate(other.len() - 5 * 4);
    refuses(&eval(&other), 1, "TPC0406");
    // With wrong logits, the command prints the figures and exits with 1.
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
