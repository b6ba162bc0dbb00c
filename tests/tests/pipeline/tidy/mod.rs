//! Architecture invariants: allowed imports between crates and modules, the length of files and functions, and the
//! modules that may read names.

mod arrows;
mod circles;
mod functions;
mod names;
mod prose;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a source folder")
        .map(|e| e.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The folder of every crate, after the crates that it depends on.
const CRATES: [&str; 28] = [
    "ir",
    "passes",
    "runtime",
    "runtime/cpu",
    "runtime/cuda",
    "runtime/cuda-emulator",
    "runtime/testing",
    "runtime/testing/devices",
    "compiler/diag",
    "compiler/gguf",
    "compiler/text",
    "compiler/fetch",
    "compiler/store",
    "compiler/ggml",
    "compiler/models",
    "compiler/synth",
    "compiler/core",
    "compiler/lint",
    "compiler/numeric",
    "compiler/artefact",
    "compiler/rpc",
    "compiler/engine",
    "compiler/grammar",
    "compiler/serve",
    "compiler/filetest",
    "compiler/cli",
    "docs/reference",
    "tests",
];

#[test]
fn no_stage_takes_an_unverified_graph() {
    for krate in CRATES.iter().filter(|k| **k != "tests") {
        let mut files = Vec::new();
        sources(&root().join(krate).join("src"), &mut files);
        for f in files.iter().filter(|f| !f.ends_with("verify/stage.rs")) {
            let text = std::fs::read_to_string(f).expect("a source file");
            let used = text.contains("::unchecked(");
            assert!(!used, "{} takes a graph for verified", f.display());
        }
    }
}

#[test]
fn libraries_do_not_print_or_exit() {
    for krate in CRATES.iter().filter(|k| **k != "tests") {
        let mut files = Vec::new();
        sources(&root().join(krate).join("src"), &mut files);
        for f in files {
            let text = std::fs::read_to_string(&f).expect("a source file");
            for word in ["println!", "eprintln!", "print!(", "process::exit", "dbg!"] {
                let used = text
                    .lines()
                    .any(|l| l.contains(word) && !l.trim_start().starts_with("//"));
                assert!(!used, "{} uses {word}", f.display());
            }
        }
    }
}

#[test]
fn files_stay_readable() {
    for krate in CRATES.iter().filter(|k| **k != "tests") {
        let mut files = Vec::new();
        sources(&root().join(krate).join("src"), &mut files);
        for f in files {
            let lines = std::fs::read_to_string(&f)
                .expect("a source file")
                .lines()
                .count();
            assert!(
                lines <= 1000,
                "{} has {lines} lines: one concept per file",
                f.display()
            );
        }
    }
}

#[test]
fn the_page_on_architectures_shows_code_that_is_there() {
    let read = |path: &Path| std::fs::read_to_string(path).expect("a readable file");
    let mut files = Vec::new();
    sources(&root().join("compiler"), &mut files);
    let code: Vec<String> = files.iter().map(|f| read(f)).collect();
    let page = read(&root().join("docs/src/add-an-architecture.md"));
    let blocks = page.split("```rust\n").skip(1);
    let blocks = blocks.filter_map(|b| Some(b.split_once("```")?.0));
    // An ellipsis marks an excerpt.
    let whole: Vec<&str> = blocks.filter(|b| !b.contains('…')).collect();
    assert!(whole.len() >= 5);
    for block in whole {
        assert!(
            code.iter().any(|c| c.contains(block)),
            "no source has\n{block}"
        );
    }
}

/// The test data in the repository stay small.
#[test]
fn data_of_tests_take_no_more_than_20_megabytes() {
    fn bytes(folder: &Path) -> u64 {
        let entries = std::fs::read_dir(folder).expect("a folder of data");
        let size = |path: PathBuf| match path.is_dir() {
            true => bytes(&path),
            false => path.metadata().expect("a file").len(),
        };
        entries.map(|e| size(e.expect("an entry").path())).sum()
    }
    let found = bytes(&root().join("tests/data"));
    assert!(found <= 20_000_000, "tests/data takes {found} bytes");
}
