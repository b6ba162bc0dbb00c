//! Deliberate mistakes: each message has a cure.

use super::support::{Ran, SMALL, Scratch, path, tpc, words};

#[track_caller]
fn told(ran: &Ran, status: i32, code: &str, cure: &[&str]) {
    assert_eq!(ran.status, status, "{}", ran.stderr);
    let text = words(&ran.stderr);
    assert!(text.contains(code), "{code}: {text}");
    let found = text.split_once(code);
    let help = found.and_then(|(_, t)| Some(t.split_once("help: ")?.1));
    let help = help.unwrap_or_else(|| panic!("{code} has no cure: {text}"));
    for part in cure {
        assert!(help.contains(part), "{part}: {help}");
    }
}

fn lint(options: &str) -> Ran {
    let mut arguments = vec!["lint".to_owned(), path(SMALL)];
    arguments.extend(options.split_whitespace().map(str::to_owned));
    tpc(arguments)
}

#[test]
fn a_misspelt_option() {
    told(&lint("--devises 2"), 2, "TPC0400", &["--devices"]);
}

#[test]
fn no_devices() {
    told(&lint("--devices 0"), 2, "TPC0400", &["from 1 to 64"]);
}

#[test]
fn a_range_that_runs_backwards() {
    told(
        &lint("--devices 8..2"),
        2,
        "TPC0400",
        &["the smaller first"],
    );
}

#[test]
fn a_bad_topology_file() {
    let scratch = Scratch::new();
    let file = scratch.file("t.ron", "Topology(devices: [(name: \"a\", memmory: 1)])");
    let ran = lint(&format!("--devices 2 --topology {}", file.display()));
    told(&ran, 2, "TPC0403", &["did you mean `memory`?"]);
    assert!(words(&ran.stderr).contains("line 1"), "{}", ran.stderr);
}

#[test]
fn a_misspelt_regex() {
    let ran = lint("--devices 2 -ot ffn_dwn=CPU");
    told(&ran, 0, "TPC0311", &["ffn_"]);
    told(&lint("--devices 2 -ot (ffn=CPU"), 2, "TPC0410", &["blk"]);
}

#[test]
fn a_truncated_file() {
    let scratch = Scratch::new();
    let bytes = std::fs::read(path(SMALL)).unwrap();
    let file = scratch.file("cut.gguf", &bytes[..bytes.len() / 2]);
    let ran = tpc(["lint", file.to_str().unwrap()]);
    told(&ran, 2, "TPC0105", &["fetch it again"]);
}

#[test]
fn a_wrong_cache_type() {
    told(&lint("-ctk q8"), 2, "TPC0400", &["q8_0", "iq4_nl"]);
}

#[test]
fn an_unknown_code() {
    told(
        &lint("--deny TPC0310x"),
        2,
        "TPC0407",
        &["did you mean TPC0310?"],
    );
    told(&lint("--allow warnings"), 2, "TPC0407", &["tpc explain"]);
    told(&tpc(["explain", "TPC9999"]), 2, "TPC0407", &["tpc explain"]);
}

#[test]
fn a_line_without_a_model() {
    let ran = tpc(["lint", "--", "llama-server", "-sm", "tensor"]);
    told(&ran, 2, "TPC0400", &["-m MODEL.gguf"]);
}

#[test]
fn a_capture_that_is_none() {
    let scratch = Scratch::new();
    let file = scratch.file("c.jsonl", "{\"id\":0}\n");
    let ran = tpc(["lint", "--graph", file.to_str().unwrap()]);
    told(&ran, 2, "TPC0180", &["capture"]);
    let ran = tpc(["lint", "--graph", &path(SMALL)]);
    told(&ran, 2, "TPC0180", &["capture"]);
}

#[test]
fn too_many_proportions() {
    told(
        &lint("--devices 2 -ts 1,1,1"),
        2,
        "TPC0400",
        &["one per device"],
    );
}

#[test]
fn a_file_that_is_not_there() {
    told(&tpc(["lint", "nowhere.gguf"]), 2, "TPC0100", &["path"]);
}

#[test]
fn a_model_of_another_kind() {
    let scratch = Scratch::new();
    let file = scratch.file("m.safetensors", b"\x10\0\0\0\0\0\0\0{\"a\":1}        ");
    told(
        &tpc(["lint", file.to_str().unwrap()]),
        2,
        "TPC0101",
        &["convert"],
    );
}

#[test]
fn shares_that_heads_do_not_allow() {
    let ran = lint("--devices 2 -sm layer -ts 28.05,0.95");
    told(&ran, 0, "TPC0307", &["proportions near"]);
}
