//! `bisect` names the op with a planted fault, in captures of many architectures.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::path::{Path, PathBuf};

use tpc_ggml::capture::{self, Record};
use tpc_numeric::bisect::{BISECT_TOLERANCE, Bisection, OpOf, bisect};

mod faults;

/// True if all captures are asked for.
fn full() -> bool {
    std::env::var_os("TPC_FULL").is_some_and(|v| v == "1")
}

/// Returns the captures of the repository; in a full sweep, all.
fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [
        root.join("tests/data/graphs"),
        root.join("../shared/graphs"),
    ];
    let mut out: Vec<PathBuf> = Vec::new();
    let n = if full() { folders.len() } else { 1 };
    for folder in &folders[..n] {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for path in entries.map(|e| e.unwrap().path()) {
            if !out.iter().any(|p| p.file_name() == path.file_name()) {
                out.push(path);
            }
        }
    }
    out.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    out
}

fn read(path: &Path) -> Vec<Record> {
    capture::records(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn compare(a: &[Record], b: &[Record]) -> Bisection {
    bisect(a, b, BISECT_TOLERANCE).unwrap()
}

#[test]
fn equal_captures_have_no_difference() {
    for path in captures() {
        let records = read(&path);
        let found = compare(&records, &records);
        assert_eq!(found.first, None, "{}", path.display());
        assert!(found.structure.is_empty(), "{}", path.display());
    }
}

/// The line of the op that the comparison names in the graph that should have it, and the report in short.
fn named(records: &[Record], fault: &faults::Fault) -> (Option<usize>, String) {
    let found = match bisect(records, &fault.records, BISECT_TOLERANCE) {
        Ok(found) => found,
        Err(e) => return (None, e.to_string()),
    };
    let Some(first) = found.first else {
        return (None, "no difference".to_owned());
    };
    let op = if fault.in_first { &first.a } else { &first.b };
    let short = |op: &Option<OpOf>| op.as_ref().map(|o| (o.line, o.op.clone()));
    let (relation, nmse) = (first.relation, first.nmse);
    let text = format!(
        "{relation:?} {:?} {:?} {nmse:?}",
        short(&first.a),
        short(&first.b)
    );
    (op.as_ref().map(|o| o.line), text)
}

#[test]
fn a_planted_fault_is_named() {
    let mut wrong = Vec::new();
    let mut tried = [0; faults::KINDS];
    let paths = captures();
    assert!(paths.len() >= 20, "{} captures", paths.len());
    for (seed, path) in paths.iter().enumerate() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let records = read(path);
        for (kind, tried) in tried.iter_mut().enumerate() {
            let Some(fault) = faults::plant(&records, kind, seed) else {
                continue;
            };
            *tried += 1;
            let (line, found) = named(&records, &fault);
            if line != Some(fault.line) {
                let text = format!("{name}: {} at line {}: {found}", fault.what, fault.line);
                println!("{text}");
                wrong.push(text);
            }
        }
    }
    println!("faults of each kind: {tried:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried.iter().all(|n| *n > 0), "{tried:?}");
}
