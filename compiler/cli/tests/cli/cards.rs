//! Runs on cards that a pretended driver has: what is told before anything is loaded.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Ran, Scratch, TPC, refuses, tpc};

/// A folder with a library that pretends to be the driver's; `None`, in words, without a C compiler.
fn driver() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pretended-driver");
    std::fs::create_dir_all(&folder).unwrap();
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../runtime/cuda/tests/cards/fake.c"
    );
    let own = folder.join(format!("{}.so", std::process::id()));
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .args([&own, Path::new(source)])
        .status();
    match made {
        Ok(status) => assert!(status.success()),
        Err(e) => {
            eprintln!("skipped: no C compiler: {e}");
            return None;
        }
    }
    std::fs::rename(own, folder.join("libcuda.so")).unwrap();
    Some(folder)
}

/// `tpc run` of a small model with that driver, and without an NVRTC.
fn run(scratch: &Scratch, driver: &Path, variables: &[(&str, &str)], options: &[&str]) -> Ran {
    let model = scratch.path("model.gguf");
    let mut command = Command::new(TPC);
    command
        .arg("run")
        .arg(model)
        .args(["--tokens", "1", "-n", "1", "-t", "1"])
        .args(options)
        .env("LD_LIBRARY_PATH", driver)
        .env("TPC_NVRTC", scratch.path("none"))
        .env("TPC_CUDA_CACHE", scratch.path("kept"))
        .envs(variables.iter().copied());
    command.output().unwrap().into()
}

#[test]
fn what_cards_lack_is_told_before_anything_is_loaded() {
    let Some(driver) = driver() else { return };
    let scratch = Scratch::new();
    scratch.model("llama-tiny");
    let named = ["--devices", "cuda:0"];
    for (variables, options, code, told) in [
        (
            &[("FAKE_VERSION", "12020")][..],
            &named[..],
            "TPC0541",
            "12.2",
        ),
        (&[("FAKE_DEVICES", "0")], &named, "TPC0540", "no device"),
        (
            &[("FAKE_DEVICES", "1")],
            &["--devices", "cuda:0,cuda:1"],
            "TPC0542",
            "cuda:1",
        ),
        (
            &[],
            &["--devices", "2x3090", "--executor", "cuda", "-sm", "layer"],
            "TPC0548",
            "cuda:0",
        ),
        (
            &[("FAKE_MAJOR", "6")],
            &named,
            "TPC0543",
            "compute capability 6.0",
        ),
        // A card of 1 MiB.
        (&[], &named, "TPC0548", "(first)"),
        (
            &[],
            &["--devices", "cuda:1,cuda:1"],
            "TPC0548",
            "cuda:1 (second)",
        ),
        (&[], &["--executor", "cuda"], "TPC0548", "cuda:0 (first)"),
        // No compiler for the kernels.
        (&[("FAKE_MEMORY", "1000000000")], &named, "TPC0543", "NVRTC"),
    ] {
        let ran = run(&scratch, &driver, variables, options);
        refuses(&ran, 1, code);
        assert!(
            ran.stderr.replace("\n", " ").contains(told),
            "{told}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_machine_without_a_driver_says_how_to_run_otherwise() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    let options = ["--tokens", "1", "-n", "1", "--devices", "cuda:63"];
    let ran = tpc(["run", model].iter().chain(&options));
    // Where there is one, it has fewer cards.
    let code = match ran.stderr.contains("TPC0542") {
        true => "TPC0542",
        false => "TPC0540",
    };
    refuses(&ran, 1, code);
    assert!(
        code == "TPC0542" || ran.stderr.contains("emulated-cuda"),
        "{}",
        ran.stderr
    );
}
