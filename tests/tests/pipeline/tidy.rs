//! Architecture invariants, many of them absences.

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

/// The folder of every crate, those that need less before those that need more.
const CRATES: [&str; 13] = [
    "ir",
    "passes",
    "runtime",
    "compiler/diag",
    "compiler/gguf",
    "compiler/ggml",
    "compiler/models",
    "compiler/synth",
    "compiler/core",
    "compiler/lint",
    "compiler/numeric",
    "compiler/cli",
    "tests",
];

/// The crates of this workspace that a manifest names as dependencies.
fn depends(krate: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(krate).join("Cargo.toml")).expect("a manifest");
    let dependencies = text.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    let names = dependencies
        .lines()
        .filter_map(|l| l.split(['.', ' ', '=']).next());
    let mut names: Vec<String> = names
        .filter(|n| n.starts_with("tpc"))
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

#[test]
fn dependencies_run_one_way() {
    let arrows: [(&str, &[&str]); 12] = [
        ("ir", &[]),
        ("passes", &["tpc-ir"]),
        ("runtime", &["tpc-ir"]),
        ("compiler/diag", &["tpc-ir"]),
        ("compiler/gguf", &["tpc-diag", "tpc-ir"]),
        (
            "compiler/ggml",
            &["tpc-diag", "tpc-gguf", "tpc-ir", "tpc-passes"],
        ),
        ("compiler/models", &["tpc-diag", "tpc-gguf", "tpc-ir"]),
        (
            "compiler/synth",
            &["tpc-diag", "tpc-gguf", "tpc-ir", "tpc-models"],
        ),
        (
            "compiler/core",
            &[
                "tpc-diag",
                "tpc-ggml",
                "tpc-gguf",
                "tpc-ir",
                "tpc-models",
                "tpc-passes",
            ],
        ),
        (
            "compiler/lint",
            &[
                "tpc-core",
                "tpc-diag",
                "tpc-ggml",
                "tpc-gguf",
                "tpc-ir",
                "tpc-models",
                "tpc-passes",
            ],
        ),
        (
            "compiler/numeric",
            &[
                "tpc-core",
                "tpc-diag",
                "tpc-ir",
                "tpc-passes",
                "tpc-runtime",
                "tpc-synth",
            ],
        ),
        (
            "compiler/cli",
            &[
                "tpc-core",
                "tpc-diag",
                "tpc-ggml",
                "tpc-gguf",
                "tpc-ir",
                "tpc-lint",
                "tpc-models",
                "tpc-numeric",
                "tpc-passes",
                "tpc-runtime",
                "tpc-synth",
            ],
        ),
    ];
    for (krate, allowed) in arrows {
        for name in depends(krate) {
            assert!(
                allowed.contains(&name.as_str()),
                "{krate} must not depend on {name}"
            );
        }
    }
}

#[test]
fn only_numeric_and_the_command_line_know_the_runtime() {
    let joins = ["compiler/numeric", "compiler/cli", "tests"];
    for krate in CRATES {
        let knows = depends(krate).iter().any(|n| n == "tpc-runtime");
        assert!(
            !knows || joins.contains(&krate),
            "{krate} names the runtime"
        );
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
    sources(&root().join("compiler/models/src"), &mut files);
    let code: Vec<String> = files.iter().map(|f| read(f)).collect();
    let page = read(&root().join("docs/src/add-an-architecture.md"));
    let blocks = page.split("```rust\n").skip(1);
    let blocks = blocks.filter_map(|b| Some(b.split_once("```")?.0));
    // An excerpt says so by an ellipsis.
    let whole: Vec<&str> = blocks.filter(|b| !b.contains('…')).collect();
    assert!(whole.len() >= 5);
    for block in whole {
        assert!(
            code.iter().any(|c| c.contains(block)),
            "no source has\n{block}"
        );
    }
}

/// The folders of `passes/src` (files at its root included), each with those that it may import: none above itself.
const PASSES: [(&str, &[&str]); 12] = [
    ("gcd", &[]),
    ("users", &[]),
    ("layers", &[]),
    ("machine", &[]),
    ("footprint", &[]),
    ("place", &["layers", "machine"]),
    ("factors", &["gcd", "place", "users"]),
    (
        "plan",
        &["factors", "gcd", "layers", "machine", "place", "users"],
    ),
    ("shard", &["factors", "plan"]),
    ("rewrite", &["layers", "machine"]),
    ("lower", &[]),
    ("prove", &["gcd"]),
];

/// The modules that a file names as `crate::MODULE`, tests included, comments not.
fn imported(text: &str) -> Vec<String> {
    let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let paths = code.split("crate::").skip(1);
    let names = paths.map(|p| p.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    names.flatten().map(str::to_owned).collect()
}

#[test]
fn passes_import_one_way() {
    let src = root().join("passes/src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut arrows = 0;
    for f in files {
        let path = f.strip_prefix(&src).expect("a file of passes");
        let first = path.iter().next().expect("a name").to_string_lossy();
        let module = first.trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let at = PASSES.iter().position(|(m, _)| *m == module);
        let at = at.unwrap_or_else(|| panic!("passes/src/{module} is not in the table of arrows"));
        let text = std::fs::read_to_string(&f).expect("a source file");
        for name in imported(&text).iter().filter(|n| *n != module) {
            let (allowed, below) = (PASSES[at].1, &PASSES[..at]);
            assert!(
                allowed.contains(&name.as_str()) && below.iter().any(|(m, _)| m == name),
                "{} imports crate::{name}, which passes/src/{module} must not know",
                path.display()
            );
            arrows += 1;
        }
    }
    assert!(arrows > 20, "the arrows of {arrows} imports were checked");
}

#[test]
fn passes_never_decide_by_a_name() {
    let mut files = Vec::new();
    sources(&root().join("passes/src"), &mut files);
    let questions = [
        ".tensor ==",
        ".tensor !=",
        ".name ==",
        ".name !=",
        "name.contains(",
        "name.starts_with(",
        "name.ends_with(",
        "name.split",
        "name.strip_",
        "tensor.contains(",
        "tensor.starts_with(",
        "tensor.ends_with(",
        "tensor.split",
        "tensor.strip_",
        "name.cmp(",
        "match name",
    ];
    // The proof pairs the leaves of two graphs by the names that both have of them, and plans nothing.
    files.retain(|f| !f.starts_with(root().join("passes/src/prove")));
    for f in files {
        let text = std::fs::read_to_string(&f).expect("a source file");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (n, line) in code.lines().enumerate() {
            let asks = questions.iter().find(|q| line.contains(*q));
            assert!(
                asks.is_none() || line.trim_start().starts_with("//"),
                "{}:{} asks for a name: {line}",
                f.display(),
                n + 1
            );
        }
    }
}
