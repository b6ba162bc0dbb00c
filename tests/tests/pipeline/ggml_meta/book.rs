//! Compares the generated tables in the book with the code.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tpc_ggml::capture;
use tpc_ggml::meta::Setup;
use tpc_ggml::meta::repair::{EQUATIONS, Limits, repair};

use super::forms::FORMS;
use super::verdicts::{DIFFERENT, agreement};

fn forms() -> String {
    let mut out = String::new();
    for f in FORMS {
        let records = capture::records(&f.text()).unwrap_or_else(|e| panic!("{e}"));
        let found = repair(&records, &Setup::new(2), EQUATIONS, Limits::default());
        let diff: String = found.repairs.iter().map(|c| c.diff.as_str()).collect();
        let _ = write!(out, "{}:\n\n```text\n{diff}```\n\n", f.name);
    }
    out.trim_end().to_owned() + "\n"
}

fn differences() -> String {
    let mut out =
        String::from("| model | column | observed | here | why |\n|---|---|---|---|---|\n");
    for d in DIFFERENT {
        let (name, column) = (d.model, d.column);
        let _ = writeln!(
            out,
            "| {name} | {column} | {} | {} | {} |",
            d.observed, d.found, d.why
        );
    }
    out
}

/// Replaces the text between `<!-- NAME -->` and the next `<!-- end -->`.
fn with(page: &str, name: &str, text: &str) -> String {
    let open = format!("<!-- {name} -->\n");
    let (before, rest) = page.split_once(&open).expect("the page has the mark");
    let (_, after) = rest.split_once("<!-- end -->").expect("and its end");
    format!("{before}{open}{text}<!-- end -->{after}")
}

#[test]
fn the_page_of_the_book_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/ggml-meta.md");
    let found = fs::read_to_string(&path).expect("the page");
    let mut expected = with(&found, "forms", &forms());
    expected = with(&expected, "differences", &differences());
    if let Some(table) = agreement() {
        expected = with(&expected, "agreement", &table);
    }
    if std::env::var_os("TPC_BLESS").is_some_and(|v| v == "1") {
        fs::write(&path, &expected).expect("the book can be written");
    }
    assert!(
        fs::read_to_string(&path).expect("the page") == expected,
        "docs/src/ggml-meta.md is stale; rewrite it with TPC_BLESS=1 cargo test -p tpc-tests"
    );
}
