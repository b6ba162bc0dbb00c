//! `tpc devices`, and the devices of plans.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::support::{Ran, SMALL, Scratch, TPC, finished, path, plan, refuses, tpc, words};

const GIB: u64 = 1 << 30;

/// Runs `tpc devices` with this script as `nvidia-smi`; without `nvidia-smi` if the script is empty.
fn devices(scratch: &Scratch, script: &str, arguments: &[&str]) -> Ran {
    let folder = scratch.path("bin");
    std::fs::create_dir_all(&folder).unwrap();
    if !script.is_empty() {
        program(&folder.join("nvidia-smi"), script);
    }
    let mut command = Command::new(TPC);
    command.arg("devices").args(arguments).stdin(Stdio::null());
    command.env("PATH", &folder).env("COLUMNS", "80");
    finished(&mut command)
}

#[cfg(unix)]
fn program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

const TWO: &str = "echo 'NVIDIA GeForce RTX 3090, 24576, 23000, 00000000:01:00.0, 4, 16'\n\
                   echo 'NVIDIA GeForce RTX 3090, 24576, 24100, 00000000:02:00.0, 4, 4'";

#[cfg(unix)]
#[test]
fn the_cards_and_this_machine() {
    let scratch = Scratch::new();
    let ran = devices(&scratch, TWO, &[]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for line in ran.stdout.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let text = words(&ran.stdout);
    for said in [
        "RTX 3090 Ti",
        "H100 SXM",
        "NVIDIA GeForce RTX 3090, 24.0 GiB, 22.5 GiB free, PCIe 4.0 x16, known as RTX 3090",
        "pcie_lanes: 4",
        "tpc plan MODEL --devices 2x3090",
    ] {
        assert!(text.contains(said), "{said}: {}", ran.stdout);
    }
    let ran = devices(&scratch, TWO, &["--format", "json"]);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert!(json["cards"].as_array().unwrap().len() >= 55);
    assert_eq!(json["here"]["devices"], "2x3090");
    assert_eq!(json["here"]["gpus"][0]["memory_bytes"], 24576_u64 << 20);
    assert_eq!(json["here"]["gpus"][1]["card"], "RTX 3090");
    let card = json["cards"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["name"] == "RTX 3090");
    let card = card.unwrap();
    assert_eq!(card["bandwidth"], 936e9);
    assert_eq!(card["memory_bytes"], 24154_u64 << 20);
}

#[cfg(unix)]
#[test]
fn a_driver_that_is_absent_fails_lies_or_hangs() {
    for (script, said) in [
        ("", "nvidia-smi is missing"),
        ("echo broken; exit 9", "failed"),
        (
            "echo 'Voodoo 2, many, [N/A], x, y, z'",
            "Voodoo 2, not in the table",
        ),
        ("while :; do echo 'a, 1, 1, b, 1, 1'; done", "nvidia-smi"),
        ("exec sleep 60", "did not answer"),
    ] {
        let scratch = Scratch::new();
        let script = script.replace("sleep", "/bin/sleep");
        let start = Instant::now();
        let ran = devices(&scratch, &script, &[]);
        assert!(start.elapsed() < Duration::from_secs(20), "{script}");
        assert_eq!(ran.status, 0, "{script}: {}", ran.stderr);
        assert!(
            words(&ran.stdout).contains(said),
            "{script}: {}",
            ran.stdout
        );
        assert!(
            !ran.stdout.contains("plan for this machine"),
            "{script}: {}",
            ran.stdout
        );
    }
}

#[test]
fn one_card_in_full() {
    let ran = tpc(["devices", "rtx", "3090"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        words(&ran.stdout).contains("llama-server --list-devices"),
        "{}",
        ran.stdout
    );
    let ran = tpc(["devices", "H100", "--format", "json"]);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["cards"][0]["name"], "H100 SXM");
    assert!(json["cards"].as_array().unwrap().len() >= 2);
    let ran = tpc(["devices", "3900"]);
    refuses(&ran, 2, "TPC0400");
    assert!(
        words(&ran.stderr).contains("did you mean RTX 3090?"),
        "{}",
        ran.stderr
    );
}

fn planned(options: &str) -> Vec<Json> {
    let ran = plan(SMALL, &format!("{options} -c 4096 --format json"));
    assert!(ran.status < 2, "{options}: {}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    json["devices"].as_array().unwrap().clone()
}

#[test]
fn cards_are_planned_for() {
    let found = planned("--devices 2x3090,4090");
    let field = |f: &str| found.iter().map(|d| d[f].clone()).collect::<Vec<_>>();
    assert_eq!(field("name"), ["3090#0", "3090#1", "4090#2"]);
    assert_eq!(field("card"), ["RTX 3090", "RTX 3090", "RTX 4090"]);
    assert_eq!(
        field("capacity_bytes"),
        [24154_u64 << 20, 24154 << 20, 24563 << 20]
    );
    assert_eq!(field("reserve_bytes"), [GIB; 3]);
    let found = planned("--devices 2x3090 --reserve 2GiB,0");
    assert_eq!(found[0]["reserve_bytes"], 2 * GIB);
    assert_eq!(found[1]["reserve_bytes"], 0);
    assert_eq!(planned("--devices cuda0,CUDA1")[1]["name"], "cuda:1#1");
    assert_eq!(planned("--devices 2")[0]["reserve_bytes"], 0);
}

#[test]
fn a_topologys_devices_are_planned_under_their_names() {
    let scratch = Scratch::new();
    let text = "(devices: [(card: \"3090\", name: \"left\"), (card: \"4090\", name: \"right\", memory: 20e9)])";
    let file = scratch.file("two.ron", text);
    let file = file.display();
    let names = |options: &str| {
        let found = planned(&format!("--topology {file} {options}"));
        found
            .iter()
            .map(|d| d["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["left", "right"]);
    assert_eq!(names("--devices 1"), ["left"]);
    assert_eq!(names("--devices Right,left"), ["right", "left"]);
    assert_eq!(names("--devices 3"), ["left", "right#1", "right#2"]);
    assert_eq!(
        planned(&format!("--topology {file}"))[1]["capacity_bytes"],
        20_000_000_000_u64
    );
    // A llama.cpp line without devices gets the same devices.
    let line = format!("lint --format json --topology {file} -- llama-server -c 4096 -m");
    let ran = tpc(line.split(' ').chain([path(SMALL).as_str()]));
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["devices"][0], 2, "{}", ran.stdout);
    assert!(ran.status < 2, "{}", ran.stderr);
    let ran = plan(SMALL, &format!("--topology {file} --devices middle"));
    refuses(&ran, 2, "TPC0400");
    assert!(words(&ran.stderr).contains("left, right"), "{}", ran.stderr);
}

#[test]
fn the_reserve_counts_to_the_byte() {
    let scratch = Scratch::new();
    let needed = planned("--devices 1 -sm none")[0]["total_bytes"]
        .as_u64()
        .unwrap();
    for (memory, status) in [(needed + GIB, 0), (needed + GIB - 1, 1)] {
        let text = format!(
            "(devices: [(name: \"one\", memory: {memory}, bandwidth: \"1 TB/s\", flops: \"200 TFLOP/s\")])"
        );
        let file = scratch.file("one.ron", text);
        let file = file.display().to_string();
        let options = format!("--topology {file} -sm none -c 4096");
        let ran = plan(SMALL, &options);
        assert_eq!(ran.status, status, "{memory}: {}", ran.stderr);
        let told = words(&ran.stderr).contains("less 1.00 GiB reserved): 1 B short");
        assert_eq!(told, status == 1, "{}", ran.stderr);
        assert_eq!(plan(SMALL, &format!("{options} --reserve 0")).status, 0);
    }
}

#[test]
fn names_that_there_are_not_are_told() {
    for (options, said) in [
        ("--devices 2x3900", "did you mean RTX 3090?"),
        ("--devices RTX6000", "RTX 6000 Ada"),
        ("--devices 3090,cpu", "--topology"),
        ("--devices 2x4090 --link nvlink", "pcie-p2p"),
        ("--devices 2 --link nvlink", "2x3090"),
        ("--devices 2x4090 --reserve 1024", "1GiB"),
        (
            "--devices 2x4090 --reserve 1GiB,1GiB,1GiB",
            "one per device",
        ),
    ] {
        let ran = plan(SMALL, options);
        refuses(&ran, 2, "TPC0400");
        assert!(
            words(&ran.stderr).replace("│ ", "").contains(said),
            "{options}: {}",
            ran.stderr
        );
    }
    for (options, code) in [
        ("--devices 2xH100", "TPC0440"),
        ("--devices 2x3090", "TPC0441"),
    ] {
        let ran = plan(SMALL, options);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains(code), "{options}: {}", ran.stderr);
        let ran = tpc(["lint", &path(SMALL), "--devices", &options[10..]]);
        assert!(ran.stderr.contains(code), "{options}: {}", ran.stderr);
    }
}

#[test]
fn one_device_is_named_by_its_position() {
    let ran = plan(
        SMALL,
        "--devices 3090,4090 -sm none -mg 1 -c 4096 --format json",
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    let devices = json["devices"].as_array().unwrap();
    let held = devices.iter().filter(|d| d["weights_bytes"] != 0);
    let held: Vec<&Json> = held.map(|d| &d["name"]).collect();
    assert_eq!(held, [&Json::from("4090#1")]);
    for engine in ["tpc", "llama.cpp"] {
        let command = json["commands"][engine].as_str().unwrap();
        assert!(command.contains("-sm none -mg 1"), "{command}");
    }
    let command = json["commands"]["tpc"].as_str().unwrap();
    let (_, options) = command.split_once(".gguf ").unwrap();
    let again = plan(SMALL, &format!("{options} --format json"));
    let again: Json = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["devices"], json["devices"]);
    // Of different cards, `auto` considers the one with the most memory, in any order.
    for (options, main) in [("3060,5090", "-sm none -mg 1"), ("5090,3060", "-sm none")] {
        let ran = plan(SMALL, &format!("--devices {options} -c 4096"));
        let said = words(&ran.stdout);
        assert!(
            said.contains(&format!("--devices {options} {main} -c")),
            "{said}"
        );
        assert!(said.contains("none, all on 5090#"), "{said}");
    }
    // Other split modes ignore `-mg` with a note. A missing device is an error.
    let ran = plan(SMALL, "--devices 2 -sm layer -mg 1 -c 4096");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("TPC0420"), "{}", ran.stderr);
    refuses(&plan(SMALL, "--devices 2 -sm none -mg 2"), 2, "TPC0400");
}
