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

fn depends(krate: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(krate).join("Cargo.toml")).expect("a manifest");
    let dependencies = text.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    let names = dependencies
        .lines()
        .filter_map(|l| l.split(['.', ' ', '=']).next());
    names
        .filter(|n| n.starts_with("tpc"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn dependencies_run_one_way() {
    assert!(
        depends("ir").is_empty(),
        "tpc-ir knows nothing of the others"
    );
    assert_eq!(depends("passes"), ["tpc-ir"]);
    assert_eq!(depends("runtime"), ["tpc-ir"]);
    assert_eq!(depends("compiler"), ["tpc-ir", "tpc-passes", "tpc-runtime"]);
}

#[test]
fn only_the_command_line_joins_compiler_and_runtime() {
    let mut files = Vec::new();
    sources(&root().join("compiler/src"), &mut files);
    for f in files {
        let text = std::fs::read_to_string(&f).expect("a source file");
        let allowed = f.components().any(|c| c.as_os_str() == "cli");
        assert!(
            allowed || !text.contains("tpc_runtime"),
            "{} names the runtime",
            f.display()
        );
    }
}

#[test]
fn libraries_do_not_print_or_exit() {
    for krate in ["ir", "passes", "compiler", "runtime"] {
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
    for krate in ["ir", "passes", "compiler", "runtime"] {
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
