//! The Python package: its dataclasses are those of the schemas, and its functions run the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::support::{Scratch, TPC};

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../release/python")
}

/// Runs Python with the package. Returns `None` if Python is missing.
fn python(words: &[&str]) -> Option<Output> {
    let ran = Command::new("python3")
        .args(words)
        .env("PYTHONPATH", package().join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TPC", TPC)
        .output();
    ran.map_err(|e| println!("skipped: python3: {e}")).ok()
}

#[test]
fn the_dataclasses_are_those_of_the_schemas() {
    let types = package().join("types");
    let Some(made) = python(&[types.to_str().unwrap(), TPC]) else {
        return;
    };
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let stored = fs::read_to_string(package().join("src/tpc/_types.py")).unwrap();
    assert!(
        String::from_utf8_lossy(&made.stdout) == stored,
        "run release/python/types target/debug/tpc > release/python/src/tpc/_types.py"
    );
}

#[test]
fn functions_return_dataclasses_and_raise_errors() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let artefact = scratch.path("model.tpc");
    let script = r#"
import sys, tpc
model, artefact = sys.argv[1:]
plan = tpc.plan(model, devices=["cpu", "cpu"], split_mode="tensor", ctx_size=64, no_kv_offload=True)
assert (plan.verdict, plan.split_mode, len(plan.devices)) == ("ok", "tensor", 2), plan
assert plan.model.n_layer == 2 and isinstance(plan.estimate.decode_tps, float)
full = tpc.plan(model, devices="2x3060", ctx_size=10**9)
assert full.verdict == "error" and any(d.severity == "error" for d in full.diagnostics)
found = tpc.lint(model, devices=2, override_tensor=["nothing=CPU", "also=CPU"])
assert {"nothing", "also"} <= {f.entity for f in found.findings}, found
assert tpc.verify(model, devices=2).verdict in ("ok", "proved")
assert any(card.name == "RTX 3090" for card in tpc.devices().cards)
import subprocess
subprocess.run([tpc.program(), "compile", model, "-o", artefact, "-c", "64"], check=True, capture_output=True)
assert tpc.check(artefact).verdict == "valid", tpc.check(artefact)
try:
    tpc.plan("/no/such/file.gguf")
except tpc.Error as e:
    assert e.status == 2 and "TPC0100" in str(e), e
else:
    raise AssertionError("no error")
"#;
    let words = [
        "-c",
        script,
        model.to_str().unwrap(),
        artefact.to_str().unwrap(),
    ];
    let Some(ran) = python(&words) else { return };
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
