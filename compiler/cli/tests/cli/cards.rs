//! Runs on a fake driver's cards: the checks before loading.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::support::{Ran, Scratch, TPC, finished, refuses, tpc, words};

/// Builds a folder with a fake driver; prints a message if there is no C compiler.
fn driver() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pretended-driver");
    std::fs::create_dir_all(&folder).unwrap();
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../runtime/cuda/tests/cards/fake.c"
    );
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let own = folder.join(format!("{}-{n}.so", std::process::id()));
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .args([&own, Path::new(source)])
        .status();
    match made {
        Ok(status) => assert!(status.success()),
        Err(e) => {
            tpc_op_cases::skip(format!("no C compiler: {e}"));
            return None;
        }
    }
    std::fs::rename(own, folder.join("libcuda.so")).unwrap();
    Some(folder)
}

/// Runs a small model with the fake driver, without NVRTC.
fn run(scratch: &Scratch, driver: &Path, variables: &[(&str, &str)], options: &[&str]) -> Ran {
    let model = scratch.path("model.gguf");
    let mut command = Command::new(TPC);
    command
        .arg("run")
        .arg(model)
        .args(["--tokens", "1", "-n", "1", "-t", "1"])
        .args(options)
        .env("LD_LIBRARY_PATH", driver)
        .env("TPC_NVRTC", "none")
        .env("TPC_CUDA_CACHE", scratch.path("kept"))
        .envs(variables.iter().copied());
    finished(&mut command)
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
        (
            &[("FAKE_DEVICES", "0")],
            &named,
            "TPC0540",
            "reports 0 devices",
        ),
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
        (&[], &named, "TPC0548", "(first)"),
        (
            &[],
            &["--devices", "cuda:1,cuda:1"],
            "TPC0548",
            "cuda:1 (second)",
        ),
        (&[], &["--executor", "cuda"], "TPC0548", "cuda:0 (first)"),
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
fn cards_are_listed_by_the_driver_where_its_program_is_missing() {
    let Some(driver) = driver() else { return };
    let mut command = Command::new(TPC);
    command
        .arg("devices")
        .env("PATH", "/nowhere")
        .env("LD_LIBRARY_PATH", driver);
    let ran = finished(&mut command);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for card in ["  first, 1.00 MiB", "  second, 1.00 MiB"] {
        assert!(ran.stdout.contains(card), "{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("nvidia-smi"), "{}", ran.stdout);
}

#[test]
fn a_machine_without_a_driver_says_how_to_run_otherwise() {
    let scratch = Scratch::new();
    let model = scratch.model("llama-tiny");
    let model = model.to_str().unwrap();
    let options = ["--tokens", "1", "-n", "1", "--devices", "cuda:63"];
    let ran = tpc(["run", model].iter().chain(&options));
    // A machine with a real driver has fewer cards.
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

fn compile(scratch: &Scratch, out: &str, nvrtc: Option<&str>, options: &[&str]) -> Ran {
    let mut command = Command::new(TPC);
    command
        .arg("compile")
        .arg(scratch.path("model.gguf"))
        .arg("-o")
        .arg(scratch.path(out))
        .args(["-c", "64", "-ub", "4"])
        .args(options)
        .env("TPC_CUDA_CACHE", scratch.path("kept"));
    if let Some(nvrtc) = nvrtc {
        command.env("TPC_NVRTC", nvrtc);
    }
    finished(&mut command)
}

#[test]
fn a_named_compiler_of_kernels_must_exist() {
    let scratch = Scratch::new();
    scratch.model("llama-tiny");
    let folder = scratch.path("");
    let folder = folder.to_str().unwrap();
    for (value, why) in [
        ("/nonexistent", "no such file or folder"),
        (folder, "libnvrtc.so is not in the folder"),
    ] {
        let ran = compile(&scratch, "m.tpc", Some(value), &["--devices", "cuda:0"]);
        refuses(&ran, 1, "TPC0555");
        let text = words(&ran.stderr);
        assert!(text.contains("TPC_NVRTC=") && text.contains(why), "{text}");
    }
}

#[test]
fn an_artefact_for_cards_needs_no_compiler_of_kernels() {
    let scratch = Scratch::new();
    scratch.model("llama-tiny");
    let ran = compile(
        &scratch,
        "m.tpc",
        Some("none"),
        &["--devices", "cuda:0,cuda:1"],
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("TPC0554"), "{}", ran.stderr);
    assert!(ran.stderr.contains("pip download"), "{}", ran.stderr);
    let out = scratch.path("m.tpc");
    let out = out.to_str().unwrap();
    let shown = tpc(["inspect", out]).stdout;
    assert!(shown.contains("cuda; weights as"), "{shown}");
    assert!(!shown.contains("kernels for cards"), "{shown}");
    let run = ["run", out, "--tokens", "1,2", "-n", "2", "-t", "1"];
    let ran = tpc(run.iter().chain(&["--executor", "cpu"]));
    refuses(&ran, 2, "TPC0401");
    let checked = tpc(["check", out]);
    assert_eq!(checked.status, 0, "{}", checked.stderr);
    // The artefact selects cards without `--executor`, and accepts other cards than the planned ones.
    for (options, told) in [
        (&[][..], "cuda:1"),
        (&["--devices", "cuda:7,cuda:9"], "cuda:7"),
    ] {
        let Some(driver) = driver() else { return };
        let mut command = Command::new(TPC);
        command
            .args(run)
            .args(options)
            .env("LD_LIBRARY_PATH", driver)
            .env("FAKE_DEVICES", "1")
            .env("TPC_CUDA_CACHE", scratch.path("kept"));
        let ran = finished(&mut command);
        refuses(&ran, 1, "TPC0542");
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    let ran = tpc(run.iter().chain(&["--executor", "emulated-cuda"]));
    if ran.stderr.contains("no compiler for the kernels") {
        return;
    }
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for pdl in ["on", "off"] {
        let options = ["--executor", "emulated-cuda", "--pdl", pdl];
        let other = tpc(run.iter().chain(&options));
        assert_eq!(
            (other.status, other.stdout),
            (0, ran.stdout.clone()),
            "{pdl}"
        );
    }
    refuses(&tpc(run.iter().chain(&["--pdl", "maybe"])), 2, "TPC0400");
}

#[test]
fn kernels_are_in_the_artefact_the_same_each_time() {
    let scratch = Scratch::new();
    scratch.model("llama-tiny");
    let options = ["--target", "cuda:sm_80,sm_90", "-v"];
    let ran = compile(&scratch, "a.tpc", None, &options);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    if ran.stderr.contains("TPC0554") {
        tpc_op_cases::skip("there is no NVRTC");
        return;
    }
    assert!(ran.stdout.starts_with("kernel "), "{}", ran.stdout);
    let line = ran
        .stdout
        .lines()
        .find(|l| l.starts_with("plane_columns_"))
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words.len(), 7, "{line}");
    // Without nvdisasm, instructions are not counted.
    let per_weight: Result<f64, _> = words[6].parse();
    assert!(
        per_weight.map_or(words[6] == "–", |n| n > 0.5 && n < 4.0),
        "{line}"
    );
    let numbers: Vec<u64> = words[2..6].iter().map(|w| w.parse().unwrap()).collect();
    assert!(
        numbers[0] > 8 && numbers[1] == 0 && numbers[3] > 100,
        "{line}"
    );
    let shown = tpc(["inspect", scratch.path("a.tpc").to_str().unwrap()]).stdout;
    for target in ["sm_80", "sm_90a"] {
        let line = shown
            .lines()
            .find(|l| l.contains("product") && l.contains(target));
        assert!(line.is_some_and(|l| l.contains("NVRTC")), "{shown}");
    }
    // Compile with the cache, then with another, empty cache folder.
    compile(&scratch, "b.tpc", None, &options);
    let other = Scratch::new();
    other.model("llama-tiny");
    compile(&other, "c.tpc", None, &options);
    let first = std::fs::read(scratch.path("a.tpc")).unwrap();
    assert!(first == std::fs::read(scratch.path("b.tpc")).unwrap());
    assert!(first == std::fs::read(other.path("c.tpc")).unwrap());
    let none = compile(&scratch, "d.tpc", None, &["--target", "cuda:sm_61"]);
    refuses(&none, 2, "TPC0400");
    let cpu = compile(
        &scratch,
        "d.tpc",
        None,
        &["--target", "cuda", "--devices", "cpu"],
    );
    refuses(&cpu, 2, "TPC0401");
    assert!(!scratch.path("d.tpc").exists());
}
