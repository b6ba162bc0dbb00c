//! The program that mdBook calls.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tpc-reference"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The program may end before it reads.
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

fn book(content: &str) -> String {
    let inner = json!({"Chapter": {"name": "b", "content": "as it is", "sub_items": []}});
    let chapter = json!({"Chapter": {"name": "a", "content": content, "sub_items": [inner]}});
    json!([{"root": "/"}, {"items": [chapter, "Separator"]}]).to_string()
}

#[test]
fn chapters_are_filled() {
    let out = run(&[], &book("before\n\n{{#reference cards}}\n\nafter"));
    assert!(out.status.success(), "{out:?}");
    let book: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let chapter = &book["items"][0]["Chapter"];
    let content = chapter["content"].as_str().expect("text");
    assert!(content.starts_with("before\n\n```text\n"), "{content}");
    assert!(content.contains("RTX 3090") && content.ends_with("after"));
    let inner = &chapter["sub_items"][0]["Chapter"]["content"];
    assert_eq!(inner, "as it is");
}

#[test]
fn every_renderer_is_supported() {
    assert!(run(&["supports", "html"], "").status.success());
}

#[test]
fn wrong_input_is_an_error() {
    let book = book("{{#reference nothing}}");
    for (arguments, input, message) in [
        (&[][..], "", "standard input"),
        (&[], "[]", "[context, book]"),
        (&[], &*book, "lacks the part `nothing`"),
        (&["one"], "", "usage"),
        (&["/nowhere", "/nowhere/out"], "", "/nowhere"),
    ] {
        let out = run(arguments, input);
        let text = String::from_utf8(out.stderr).expect("UTF-8");
        assert_eq!(out.status.code(), Some(1), "{text}");
        assert!(text.contains(message), "{text}");
    }
}

#[test]
fn a_folder_of_pages_is_written() {
    let folder = std::env::temp_dir().join(format!("tpc-reference-{}", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../src");
    let out = run(&[source, folder.to_str().expect("UTF-8")], "");
    assert!(out.status.success(), "{out:?}");
    let page = std::fs::read_to_string(folder.join("codes.md")).expect("a page");
    std::fs::remove_dir_all(&folder).expect("it is there");
    assert!(page.contains("### TPC0300: ") && !page.contains("{{#"));
}
