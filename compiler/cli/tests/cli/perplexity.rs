//! `tpc perplexity`.

use std::fs;
use std::path::Path;

use super::support::{Ran, Scratch, json, refuses, tpc};
use super::worded::{VOCAB, worded};

const SPEC: &str =
    "llama:layers=2,embd=64,heads=2,kv_heads=2,head_dim=32,ff=96,vocab=286,ctx=256,type=f32";

struct Files {
    scratch: Scratch,
    model: String,
    text: String,
}

/// Returns a model, and a text of 300 letters and spaces.
fn files() -> Files {
    let scratch = Scratch::new();
    let model = worded(&scratch, "worded.gguf", SPEC);
    let letters = (0_u32..300).map(|i| match i % 7 {
        6 => ' ',
        _ => char::from(b'a' + (i * i % 23) as u8),
    });
    let text = scratch.file("text.txt", letters.collect::<String>());
    Files {
        model: model.to_str().unwrap().to_owned(),
        text: text.to_str().unwrap().to_owned(),
        scratch,
    }
}

impl Files {
    fn words<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let first = ["perplexity", &self.model, "-f", &self.text, "-t", "1"];
        [&first[..], more].concat()
    }

    fn run(&self, more: &[&str]) -> Ran {
        let ran = tpc(self.words(more));
        assert_eq!(ran.status, 0, "{more:?}: {}", ran.stderr);
        ran
    }
}

/// Returns the perplexity of the second halves of windows, from the logits of `tpc eval`.
fn expected(files: &Files, context: usize) -> f64 {
    let ids = tpc(["tokenize", &files.model, "-f", &files.text]);
    let ids: Vec<u32> = (ids.stdout.trim().split(','))
        .map(|id| id.parse().unwrap())
        .collect();
    let logits = files.scratch.path("logits");
    let (mut sum, mut count) = (0.0, 0);
    for window in ids.chunks_exact(context) {
        let mut read = window.to_vec();
        read[0] = 1;
        let read: Vec<String> = read.iter().map(u32::to_string).collect();
        let read = read.join(",");
        let out = logits.to_str().unwrap();
        let ran = tpc(["eval", &files.model, "--tokens", &read, "--logits", out]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let bytes = fs::read(&logits).unwrap();
        let body = &bytes[bytes.len() - context * VOCAB * 4..];
        let body: Vec<f64> = (body.chunks_exact(4))
            .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
            .collect();
        for at in context / 2..context - 1 {
            let row = &body[at * VOCAB..][..VOCAB];
            let all: f64 = row.iter().map(|x| x.exp()).sum();
            sum += all.ln() - row[window[at + 1] as usize];
            count += 1;
        }
    }
    f64::exp(sum / f64::from(count))
}

fn estimate(ran: &Ran) -> f64 {
    let line = ran.stdout.lines().last().unwrap();
    let number = line.strip_prefix("Final estimate: PPL = ").unwrap();
    number.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_perplexity_is_that_of_the_models_logits() {
    let files = files();
    let f32s = ["-c", "64", "-ctk", "f32", "-ctv", "f32"];
    let want = expected(&files, 64);
    for executor in ["cpu", "reference"] {
        let ran = files.run(&[&f32s[..], &["--executor", executor]].concat());
        let found = estimate(&ran);
        assert!(
            (found / want - 1.0).abs() < 1e-4,
            "{executor}: {found} {want}"
        );
        assert!(ran.stdout.starts_with("[1]") && ran.stdout.contains(",[4]"));
        assert!(!ran.stdout.contains("[5]"), "{}", ran.stdout);
    }
}

#[test]
fn batches_threads_devices_and_artefacts_do_not_change_a_perplexity() {
    let files = files();
    let first = files.run(&["-c", "64"]).stdout;
    for more in [
        &["-ub", "7"][..],
        &["-t", "2"],
        &["--devices", "cpu,cpu", "-sm", "layer"],
    ] {
        let ran = files.run(&[&["-c", "64"], more].concat());
        assert_eq!(ran.stdout, first, "{more:?}");
    }
    let tensor = ["--devices", "cpu,cpu", "-sm", "tensor"];
    let split = files.run(&[&["-c", "64"], &tensor[..]].concat());
    let whole = estimate(&files.run(&["-c", "64"]));
    assert!(
        (estimate(&split) / whole - 1.0).abs() < 1e-5,
        "{}",
        split.stdout
    );
    let artefact = files.scratch.path("worded.tpc");
    let artefact = artefact.to_str().unwrap();
    let made = tpc(["compile", &files.model, "-o", artefact, "-c", "64"]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    let of = |more: &[&str]| {
        let words = ["perplexity", artefact, "-f", &files.text, "-t", "1"];
        tpc([&words[..], more].concat())
    };
    assert_eq!(
        of(&[]).stdout,
        first,
        "the artefact's context is the window"
    );
    refuses(&of(&["--ppl-stride", "8"]), 2, "TPC0400");
}

#[test]
fn forms_and_limits_are_llama_perplexitys() {
    let files = files();
    let table = files.run(&["-c", "32", "--ppl-output-type", "1", "--chunks", "2"]);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", table.stdout);
    assert!(lines[1].starts_with("      32  "), "{}", lines[1]);
    let found = json(&files.words(&["-c", "32", "--chunks", "2", "--format", "json"]));
    assert_eq!(found["scored"], 30);
    assert_eq!(found["by_chunk"].as_array().unwrap().len(), 2);
    let last = found["by_chunk"][1].as_f64().unwrap();
    assert!((last - estimate(&table)).abs() < 1e-4);
    // With a stride, the context is rounded up to 256 tokens, and text is too short for it.
    let strided = tpc(files.words(&["-c", "32", "--ppl-stride", "16"]));
    refuses(&strided, 2, "TPC0429");
    let longer = files.scratch.file(
        "long.txt",
        fs::read_to_string(&files.text).unwrap().repeat(2),
    );
    let words = ["perplexity", &files.model, "-f", longer.to_str().unwrap()];
    let ran = tpc([&words[..], &["-c", "32", "--ppl-stride", "100"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains(",[4]") && !ran.stdout.contains("[5]"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_saved_base_is_compared_with_other_caches() {
    let files = files();
    let base = files.scratch.path("base.kld");
    let base = base.to_str().unwrap();
    let plain = files.run(&["-c", "64"]);
    let saved = files.run(&["-c", "64", "--save-all-logits", base]);
    assert_eq!(saved.stdout, plain.stdout);
    let bytes = fs::read(base).unwrap();
    let (windows, row) = (4, (VOCAB + 4) * 2);
    assert_eq!(&bytes[..8], b"_logits_");
    assert_eq!(bytes.len(), 20 + windows * (64 * 4 + 31 * row));
    let with = |more: &[&str]| {
        let words = [
            "perplexity",
            &files.model,
            "--kl-divergence",
            "--kl-divergence-base",
            base,
        ];
        let words = [&words[..], &["-t", "1", "--format", "json"], more].concat();
        json(&words)
    };
    let number = |report: &serde_json::Value, key: &str| report[key]["value"].as_f64().unwrap();
    let same = with(&[]);
    assert!(number(&same, "kld").abs() < 1e-5, "{same}");
    assert!(number(&same, "same_top") > 0.97, "{same}");
    assert!((number(&same, "perplexity") / estimate(&plain) - 1.0).abs() < 1e-4);
    let other = with(&["-ctk", "q4_0", "-ctv", "q4_0"]);
    assert!(
        number(&other, "kld") > 10.0 * number(&same, "kld").abs(),
        "{other}"
    );
    let text = tpc([
        "perplexity",
        &files.model,
        "--kl-divergence",
        "--save-all-logits",
        base,
    ]);
    for part in [
        "Mean PPL(Q)",
        "Maximum KLD",
        "99.9%   KLD",
        "RMS Δp",
        "Same top p",
    ] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
}

#[test]
fn settings_are_compared_in_one_run() {
    let files = files();
    let options = [
        "--compare",
        "-ctk q4_0 -ctv q4_0",
        "--compare",
        "--devices cpu,cpu -sm layer",
    ];
    let words = [&["-c", "64", "--format", "json"], &options[..]].concat();
    let found = json(&files.words(&words));
    let settings = found["settings"].as_array().unwrap();
    let kld: Vec<f64> = (settings.iter())
        .map(|s| s["kld"]["value"].as_f64().unwrap())
        .collect();
    assert_eq!(kld.len(), 3);
    assert!(
        kld[0].abs() < 1e-6 && kld[1] > 1e-5 && kld[2].abs() < 1e-6,
        "{kld:?}"
    );
    let own = settings[0]["perplexity"]["value"].as_f64().unwrap();
    assert!((own - estimate(&files.run(&["-c", "64"]))).abs() < 1e-3);
    let table = files.run(&[&["-c", "64"], &options[..]].concat());
    assert_eq!(table.stdout.lines().count(), 4, "{}", table.stdout);
    refuses(&tpc(files.words(&["--compare", "--no-such"])), 2, "TPC0400");
}

#[test]
fn unusable_texts_and_bases_are_refused() {
    let files = files();
    let file = |name: &str, bytes: &[u8]| {
        let path = files.scratch.file(name, bytes);
        path.to_str().unwrap().to_owned()
    };
    let text = |path: &str| tpc(["perplexity", &files.model, "-f", path, "-c", "64"]);
    refuses(&text(&file("empty", b"")), 2, "TPC0429");
    refuses(&text(&file("short", b"abc abc")), 2, "TPC0429");
    refuses(&text(&file("binary", b"\xff\xfe\x00\x01")), 2, "TPC0402");
    refuses(&text("no/such/file"), 2, "TPC0402");
    let base = files.scratch.path("base.kld");
    files.run(&["-c", "64", "--save-all-logits", base.to_str().unwrap()]);
    let bytes = fs::read(&base).unwrap();
    let with = |path: &str, more: &[&str]| {
        let words = [
            "perplexity",
            &files.model,
            "--kl-divergence",
            "--kl-divergence-base",
            path,
        ];
        tpc([&words[..], more].concat())
    };
    let base = base.to_str().unwrap();
    refuses(
        &with(&file("cut", &bytes[..bytes.len() - 1]), &[]),
        2,
        "TPC0436",
    );
    refuses(&with(&file("head", &bytes[..12]), &[]), 2, "TPC0436");
    refuses(&with(&files.model, &[]), 2, "TPC0436");
    refuses(&with(base, &["-c", "32"]), 2, "TPC0400");
    let mut huge = bytes.clone();
    huge[8..20].fill(0xff);
    refuses(&with(&file("huge", &huge), &[]), 2, "TPC0436");
    let other = files.scratch.path("other");
    fs::create_dir(&other).unwrap();
    let mut unlike = bytes;
    unlike[12] = 20;
    unlike[13] = 0;
    refuses(&with(&file("unlike", &unlike), &[]), 2, "TPC0436");
    refuses(
        &tpc(["perplexity", &files.model, "--kl-divergence"]),
        2,
        "TPC0400",
    );
    let folder = Path::new(&files.model).parent().unwrap();
    refuses(&with(folder.to_str().unwrap(), &[]), 2, "TPC0402");
}
