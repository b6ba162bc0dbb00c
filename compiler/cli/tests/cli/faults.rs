//! CUDA launches that fail: `--dump-on-fault` and `tpc replay`, on emulated devices with planted faults.
//!
//! Without a C++ compiler, these tests print a note and pass.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tpc_cuda::dump::{LaunchDump, parse};

use super::support::{Ran, Scratch, TPC, finished, refuses, tpc, words};

fn with_fault(fault: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(TPC);
    command.args(arguments).stdin(Stdio::null());
    command.env("TPC_EMULATED_FAULT", fault);
    command.env("TPC_CUDA_CACHE", env!("CARGO_TARGET_TMPDIR"));
    finished(&mut command)
}

/// Runs a token of a small model on an emulated device.
fn run(scratch: &Scratch, fault: &str, more: &[&str]) -> Ran {
    let model = scratch.path("model.gguf");
    let model = model.to_str().unwrap();
    let executor = ["--executor", "emulated-cuda", "--devices", "cuda:0"];
    let tokens = ["--tokens", "1,2", "-n", "1", "-t", "1"];
    let command = ["run", model];
    with_fault(fault, &[&command[..], &tokens, &executor, more].concat())
}

/// True, after a report, if a C++ compiler is missing.
fn cannot_run(ran: &Ran) -> bool {
    let lacks = ran.stderr.contains("TPC0545");
    if lacks {
        tpc_op_cases::skip("no C++ compiler");
    }
    lacks
}

fn replay(dump: &Path, more: &[&str]) -> Ran {
    with_fault(
        "",
        &[&["replay", dump.to_str().unwrap()][..], more].concat(),
    )
}

/// Fails launch after launch until one has this op. Returns its number, its dump and the run.
fn failed(
    scratch: &Scratch,
    op: &str,
    (fault, more): (&str, &[&str]),
) -> Option<(u32, PathBuf, Ran)> {
    let folder = scratch.path("dumps");
    let option = ["--dump-on-fault", folder.to_str().unwrap()];
    for launch in 0..12 {
        let fault = format!("{fault}@{launch}");
        let ran = run(scratch, &fault, &[&option[..], more].concat());
        if cannot_run(&ran) {
            return None;
        }
        if words(&ran.stderr).contains(&format!("op {op},")) {
            let dump = folder.join(format!("launch-{launch}.tpcdump"));
            return Some((launch, dump, ran));
        }
    }
    panic!("no launch of {op}");
}

fn read(path: &Path) -> LaunchDump {
    parse(std::fs::read(path).unwrap()).unwrap()
}

fn write(path: &Path, dump: &LaunchDump) {
    dump.write(&mut std::fs::File::create(path).unwrap())
        .unwrap();
}

#[test]
fn an_illegal_address_is_named_and_replayed() {
    let scratch = Scratch::new();
    scratch.model("llama-tiny");
    let of_fault = ("illegal-address", &[][..]);
    let Some((launch, path, ran)) = failed(&scratch, "get_rows", of_fault) else {
        return;
    };
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    let told = words(&ran.stderr);
    for part in [
        "TPC0558",
        &format!("launch {launch} on cuda:0#0 (kernel get_rows"),
        "op get_rows, tensor `",
        "f32 256×2)",
        &format!("which `tpc replay {}` repeats alone", path.display()),
        "a kernel accessed an illegal address (CUDA_ERROR_ILLEGAL_ADDRESS)",
        "help: report this bug in tpc with the message and the dump",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let alone = replay(&path, &[]);
    assert_eq!(alone.status, 0, "{}", alone.stderr);
    for part in [
        &format!("launch {launch} on cuda:0#0 (kernel get_rows")[..],
        "it failed: running a graph failed: a kernel accessed",
        "  operand  token_embd.weight: ",
        "the launch ended without a fault on checked CUDA",
        ", 0 NaN, SHA-256 ",
    ] {
        assert!(alone.stdout.contains(part), "{part}: {}", alone.stdout);
    }
    let plain = replay(&path, &["--executor", "emulated-cuda"]);
    let results = |ran: &Ran| ran.stdout.lines().last().unwrap().to_owned();
    assert_eq!(results(&plain), results(&alone));
    // The same launch with a token that the vocabulary lacks.
    let mut dump = read(&path);
    let ids = dump.header.tensors.iter().find(|t| t.dtype == "i32");
    let region = ids.unwrap().region.unwrap() as usize;
    let before = dump.header.regions[..region].iter();
    let at = before.map(|r| r.saved).sum::<u64>() + ids.unwrap().offset;
    dump.data[at as usize..][..4].copy_from_slice(&70_000_i32.to_ne_bytes());
    write(&path, &dump);
    let faulty = replay(&path, &[]);
    assert_eq!(faulty.status, 1, "{}", faulty.stderr);
    let told = words(&faulty.stderr);
    for part in [
        "TPC0506",
        "op get_rows, tensor `",
        "index 70000 is out of range",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // The checked build finds an access outside of a table that is too short.
    let mut dump = read(&path);
    dump.data[at as usize..][..4].copy_from_slice(&2_i32.to_ne_bytes());
    let start = usize::try_from(start_of(&dump, "token_embd.weight")).unwrap();
    let mut tensors = dump.header.tensors.iter_mut();
    let table = tensors.find(|t| t.name == "token_embd.weight").unwrap();
    let region = &mut dump.header.regions[table.region.unwrap() as usize];
    let saved = usize::try_from(region.saved).unwrap();
    (table.bytes, region.bytes, region.saved) = (0, 0, 0);
    dump.data.drain(start..start + saved);
    write(&path, &dump);
    let faulty = replay(&path, &[]);
    let told = words(&faulty.stderr);
    for part in [
        "TPC0551",
        "access out of bounds in kernel get_rows",
        "op get_rows",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// Returns the start of a tensor's region in the data.
fn start_of(dump: &LaunchDump, name: &str) -> u64 {
    let tensor = dump.header.tensors.iter().find(|t| t.name == name);
    let region = tensor.unwrap().region.unwrap() as usize;
    dump.header.regions[..region].iter().map(|r| r.saved).sum()
}

#[test]
fn a_launch_that_does_not_end_ends_the_program() {
    let scratch = Scratch::new();
    scratch.model("llama-tiny");
    let folder = scratch.path("dumps");
    let folder = folder.to_str().unwrap();
    let model = scratch.path("model.gguf");
    let begun = Instant::now();
    let mut command = Command::new(TPC);
    command.args(["eval", model.to_str().unwrap(), "--tokens", "1,2"]);
    command.args(["--logits", scratch.path("out").to_str().unwrap()]);
    command.args(["--executor", "emulated-cuda", "--devices", "cuda:0"]);
    command.args(["--dump-on-fault", folder, "-t", "1"]);
    command.env("TPC_EMULATED_FAULT", "hang@5");
    command.env("TPC_LAUNCH_LIMIT", "8");
    command.env("TPC_CUDA_CACHE", env!("CARGO_TARGET_TMPDIR"));
    let ran = finished(command.stdin(Stdio::null()));
    if cannot_run(&ran) {
        return;
    }
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let told = words(&ran.stderr);
    for part in [
        "TPC0577",
        "launch 5 on cuda:0#0 (kernel",
        "did not end within 8 s",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(begun.elapsed() < Duration::from_secs(300));
    let dump = Path::new(folder).join("launch-5.tpcdump");
    assert_eq!(replay(&dump, &[]).status, 0);
    let mut command = Command::new(TPC);
    command.args(["replay", dump.to_str().unwrap()]);
    command.env("TPC_EMULATED_FAULT", "hang@5");
    command.env("TPC_LAUNCH_LIMIT", "2");
    command.env("TPC_CUDA_CACHE", env!("CARGO_TARGET_TMPDIR"));
    let ran = finished(command.stdin(Stdio::null()));
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("TPC0577"), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("launch 5 on cuda:0"),
        "{}",
        ran.stdout
    );
}

#[test]
fn without_dumps_the_command_that_writes_one_is_named() {
    let scratch = Scratch::new();
    scratch.model("llama-tiny");
    let ran = run(&scratch, "device-lost@4", &[]);
    if cannot_run(&ran) {
        return;
    }
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let told = words(&ran.stderr);
    let model = scratch.path("model.gguf");
    for part in [
        "TPC0559",
        "the driver lost the device (CUDA_ERROR_UNKNOWN). The launch is unknown",
        &format!(
            "run `tpc run --dump-on-fault faults {} --tokens 1,2",
            model.display()
        ),
        "--devices cuda:0`: it names the launch",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn damaged_and_foreign_dumps_are_refused() {
    let scratch = Scratch::new();
    scratch.model("llama-tiny");
    let of_fault = ("device-lost", &["-sm", "none"][..]);
    let Some((_, path, ran)) = failed(&scratch, "get_rows", of_fault) else {
        return;
    };
    assert!(ran.stderr.contains("TPC0559"), "{}", ran.stderr);
    let whole = std::fs::read(&path).unwrap();
    let part = scratch.path("part.tpcdump");
    for end in [
        0,
        1,
        15,
        16,
        40,
        100,
        1000,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        std::fs::write(&part, &whole[..end]).unwrap();
        refuses(&replay(&part, &[]), 2, "TPC0578");
    }
    for at in (0..whole.len()).step_by(whole.len() / 20) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        std::fs::write(&part, &changed).unwrap();
        refuses(&replay(&part, &[]), 2, "TPC0578");
    }
    let mut dump = read(&path);
    dump.source.push_str("// another version\n");
    write(&part, &dump);
    refuses(&replay(&part, &[]), 2, "TPC0579");
    let trusted = replay(&part, &["--trust-kernel"]);
    assert_eq!(trusted.status, 0, "{}", trusted.stderr);
    dump.header.regions[0].bytes = 1 << 39;
    write(&part, &dump);
    let large = replay(&part, &["--trust-kernel"]);
    assert_eq!(large.status, 1, "{}", large.stderr);
    assert!(large.stderr.contains("TPC0548"), "{}", large.stderr);
}

#[test]
fn wrong_usage_is_refused() {
    let scratch = Scratch::new();
    scratch.model("llama-tiny");
    let model = scratch.path("model.gguf");
    let model = model.to_str().unwrap();
    let folder = scratch.path("dumps");
    let folder = folder.to_str().unwrap();
    let tokens = ["run", model, "--tokens", "1", "--dump-on-fault"];
    refuses(&tpc([&tokens[..], &[folder]].concat()), 2, "TPC0401");
    assert!(!Path::new(folder).exists());
    let executor = ["--executor", "emulated-cuda"];
    let file = tpc([&tokens[..], &[model], &executor].concat());
    refuses(&file, 2, "TPC0402");
    refuses(&run(&scratch, "gremlin@3", &[]), 2, "TPC0400");
    refuses(&tpc(["replay"]), 2, "TPC0400");
    refuses(&tpc(["replay", "missing.tpcdump"]), 2, "TPC0402");
    refuses(&tpc(["replay", model]), 2, "TPC0578");
    refuses(&tpc(["replay", model, "--devices", "cpu"]), 2, "TPC0401");
    let two = ["replay", model, "--devices", "cuda:0,cuda:1"];
    refuses(&tpc(two), 2, "TPC0400");
    let mut command = Command::new(TPC);
    command.args(["replay", model]).env("TPC_LAUNCH_LIMIT", "x");
    refuses(&finished(&mut command), 2, "TPC0400");
}
