//! Compares the memory of a running process with the plan's bytes.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value as Json;

use super::support::{Scratch, TPC, tpc};

/// A model above 500 MB, so that the loader's temporary memory (up to 8 MB) cannot hide a leak.
const LARGE: &str =
    "llama:layers=11,embd=2048,heads=16,kv_heads=4,ff=5632,vocab=16384,ctx=256,type=q8_0";
/// A tiny model, to measure the program without weights.
const SMALL: &str = "llama-tiny";
const BATCH: usize = 16;
const MB: u64 = 1 << 20;
/// The limit for the program without weights: code, threads, header, plan, proof.
const FIXED: u64 = 64 * MB;

#[derive(Clone, Copy, Debug, Default)]
struct Resident {
    own: u64,
    files: u64,
}

impl Resident {
    fn of(process: u32) -> Option<Resident> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let bytes = |key: &str| -> Option<u64> {
            let line = status.lines().find_map(|l| l.strip_prefix(key))?;
            let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
            Some(kilobytes * 1024)
        };
        Some(Resident {
            own: bytes("RssAnon:")?,
            files: bytes("RssFile:")?,
        })
    }
}

/// Runs a model and polls its memory. Returns the peak, and the plan's bytes.
fn measured(spec: &str) -> (Resident, u64) {
    let scratch = Scratch::new();
    let model = scratch.model(spec);
    let model = model.to_str().unwrap();
    let options = ["--devices", "cpu", "-c", "256", "-ub", "16"];
    let planned = tpc([&["plan", model, "--format", "json"][..], &options[..]].concat());
    assert_eq!(planned.status, 0, "{}", planned.stderr);
    let planned: Json = serde_json::from_str(&planned.stdout).unwrap();
    let devices = planned["devices"].as_array().unwrap().iter();
    let places = devices.chain([&planned["host"]]);
    let plan = places.map(|p| p["total_bytes"].as_u64().unwrap()).sum();
    let prompt: Vec<String> = (0..BATCH).map(|i| (i % 7).to_string()).collect();
    let prompt = prompt.join(",");
    let what = ["run", model, "--tokens", &prompt, "-n", "4", "--ignore-eos"];
    let mut child = Command::new(TPC)
        .args(what)
        .args(options)
        .args(["-t", "2"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut most = Resident::default();
    let status = loop {
        if let Some(now) = Resident::of(child.id()) {
            most.own = most.own.max(now.own);
            most.files = most.files.max(now.files);
        }
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    assert!(status.success());
    (most, plan)
}

/// Anonymous memory must equal the plan's bytes within 2 %, plus a fixed cost. Pages of the file do not count: the
/// system keeps them while it has room.
#[test]
fn a_running_model_takes_the_bytes_of_its_plan() {
    let (small, small_plan) = measured(SMALL);
    let (large, plan) = measured(LARGE);
    println!("{small:?} for {small_plan} planned, {large:?} for {plan} planned");
    assert!(plan > 500 * MB);
    let fixed = small.own.saturating_sub(small_plan);
    assert!(fixed <= FIXED, "{fixed} bytes of the program itself");
    let taken = large.own.saturating_sub(fixed);
    let off = taken.abs_diff(plan) as f64 / plan as f64;
    assert!(
        off <= 0.02,
        "{taken} bytes taken, {plan} planned: {off:.3} off"
    );
}
