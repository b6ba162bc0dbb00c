//! `tpc lint --target ggml-meta`.

use super::support::{Ran, refuses, tpc, words};

fn ported(file: &str, options: &str) -> Ran {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/../../tests/data/{file}.jsonl");
    let mut arguments = vec!["lint".to_owned(), "--graph".to_owned(), path];
    arguments.extend(["--target", "ggml-meta"].map(str::to_owned));
    arguments.extend(options.split_whitespace().map(str::to_owned));
    tpc(arguments)
}

#[test]
fn a_refused_graph_is_shown_with_its_equivalent() {
    let ran = ported("ggml-meta/flattened-rotation", "--devices 2");
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let told = words(&ran.stderr);
    assert!(
        told.contains("line 6: RESHAPE: ggml aborts here: shape mismatch"),
        "{told}"
    );
    let guide = include_str!("../../../../docs/src/user-guide.md");
    for line in ran.stderr.lines() {
        if let Some(at) = line.find("%new1 = ") {
            assert!(guide.contains(&line[at..]), "{line}");
        }
    }
    assert!(
        told.contains("+ %new1 = MUL_MAT(attn_rot, %5) f32 [128, 4, 8]"),
        "{told}"
    );
}

#[test]
fn options_say_what_the_engine_is_asked_for() {
    let status = |options: &str| ported("graphs/llama-dense", options).status;
    assert_eq!(status("--devices 2"), 0);
    assert_eq!(status("--devices 2 -ctk q8_0 -ctv q4_0"), 0);
    for (options, code) in [
        ("--devices 2 -nkvo", "TPC0718"),
        ("--devices 2 -ot blk.0.attn=CPU", "TPC0713"),
        ("--devices 17", "TPC0701"),
        ("--devices 2 --architecture mpt", "TPC0700"),
    ] {
        let ran = ported("graphs/llama-dense", options);
        assert_eq!(ran.status, 1, "{options}");
        assert!(ran.stderr.contains(code), "{options}: {}", ran.stderr);
    }
    let ran = ported("graphs/llama-dense", "--devices 2..3 -nkvo --format json");
    assert!(ran.stdout.contains("\"TPC0718\""), "{}", ran.stdout);
}

#[test]
fn it_takes_captures_only() {
    let ran = tpc(["lint", "model.gguf", "--target", "ggml-meta"]);
    refuses(&ran, 2, "TPC0400");
}
