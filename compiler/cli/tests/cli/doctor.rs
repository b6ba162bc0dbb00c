//! `tpc doctor` on emulated devices, sound and with planted faults.
//!
//! Without a C++ compiler, these tests print a note and pass.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::support::{Ran, SMALL, Scratch, TPC, finished, plan, refuses, tpc};

/// Runs `tpc doctor` on emulated devices with a fault.
fn doctor(fault: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(TPC);
    command.args(["doctor", "--executor", "emulated-cuda"]);
    command.args(arguments).stdin(Stdio::null());
    command.env("TPC_EMULATED_FAULT", fault);
    command.env_remove("COLUMNS");
    command.env("TPC_CUDA_CACHE", env!("CARGO_TARGET_TMPDIR"));
    finished(&mut command)
}

/// A check of a report: its name, status and finding.
struct Found {
    name: String,
    status: String,
    finding: String,
    json: Json,
}

/// Returns the checks of a JSON report; `None` without a C++ compiler.
fn checks(ran: &Ran) -> Option<Vec<Found>> {
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["tpc"], 1);
    let text = |c: &Json, key: &str| c[key].as_str().unwrap().to_owned();
    let found = json["checks"].as_array().unwrap().iter().map(|c| Found {
        name: text(c, "name"),
        status: text(c, "status"),
        finding: text(c, "finding"),
        json: c.clone(),
    });
    let found: Vec<Found> = found.collect();
    let absent = |c: &&Found| c.finding.contains("TPC0545") && !c.finding.contains("CXX=");
    if let Some(c) = found.iter().find(absent) {
        tpc_op_cases::skip(&c.finding);
        return None;
    }
    let failed = found.iter().any(|c| c.status == "failed");
    assert_eq!(json["verdict"] == "fails", failed);
    assert_eq!(ran.status, i32::from(failed), "{}", ran.stderr);
    Some(found)
}

#[test]
fn sound_devices_pass_all_checks() {
    let start = Instant::now();
    let ran = doctor("", &["--format", "json", "--limit", "150"]);
    let Some(found) = checks(&ran) else { return };
    for c in &found {
        let skipped = c.status == "skipped" && c.json["section"] == "system";
        // The machine's own memory and C library may give a warning.
        let own = c.status == "warning" && c.json["section"] == "system";
        assert!(
            c.status == "ok" || skipped || own,
            "{}: {}",
            c.name,
            c.finding
        );
    }
    let names: Vec<&str> = found.iter().map(|c| c.name.as_str()).collect();
    for name in [
        "operating system",
        "devices",
        "write and read on cuda:1",
        "copies during launches on cuda:1",
        "exchange cuda:1 to cuda:0",
        "exchange during launches cuda:0 to cuda:1",
        "flags on cuda:0,cuda:1",
        "product kernels on cuda:0",
        "prompt attention kernels on cuda:1",
        "dense logits on cuda:0,cuda:1",
        "expert logits on cuda:1,cuda:1",
        "early launches on cuda:0",
        "all-reduce on cuda:0,cuda:0",
        "all-reduce on cuda:0,cuda:1",
        "link cuda:0 to cuda:1",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for c in found.iter().filter(|c| c.name.contains("all-reduce")) {
        let figures = &c.json["figures"];
        for size in ["16_kib", "256_kib", "4_mib"] {
            let time = figures[format!("all_reduce_{size}_us")].as_f64();
            assert!(time.unwrap() > 0.0, "{}: {figures}", c.name);
        }
    }
    for c in found.iter().filter(|c| c.json["section"] == "kernels") {
        let cases = c.json["figures"]["cases"].as_f64();
        assert!(cases.unwrap() >= 3.0, "{}: {}", c.name, c.finding);
    }
    let link = found.iter().find(|c| c.name == "link cuda:0 to cuda:1");
    let figures = &link.unwrap().json["figures"];
    assert!(figures["bandwidth_gb_per_s"].as_f64().unwrap() > 0.0);
    assert!(start.elapsed() < Duration::from_secs(400));
}

/// Checks that only these checks warn or fail, each at least once, and that each has a cure.
fn only(found: &[Found], status: &str, names: &[&str]) {
    let of_status = found.iter().filter(|c| c.status == status);
    for c in of_status.filter(|c| c.json["section"] != "system") {
        let named = names.iter().any(|n| c.name.starts_with(n));
        assert!(named, "{} {status}: {}", c.name, c.finding);
        assert!(c.json["cure"].is_string(), "{}", c.name);
    }
    for name in names {
        let of_name = |c: &&Found| c.name.starts_with(name) && c.status == status;
        assert!(found.iter().any(|c| of_name(&c)), "{name} is not {status}");
    }
}

#[test]
fn every_planted_fault_is_found() {
    for (fault, status, names) in [
        ("wrong-peer-data", "failed", &["exchange"][..]),
        ("slow-link", "warning", &["link"]),
        ("wrong-kernel", "failed", &["dense logits"]),
        ("wrong-norm", "failed", &["norm kernels", "dense logits"]),
        (
            "unordered-writes",
            "failed",
            &[
                "order of writes",
                "copies during launches",
                "exchange during",
            ],
        ),
        (
            "missing-symbol",
            "failed",
            &[
                "flags",
                "norm kernels",
                "product kernels",
                "dense kernels",
                "all-reduce",
            ],
        ),
        ("out-of-memory", "failed", &["allocation"]),
        ("no-link", "warning", &["peer access"]),
        ("wrong-link", "failed", &["peer access"]),
    ] {
        let words = ["--quick", "--format", "json", "--limit", "150"];
        let ran = doctor(fault, &words);
        let Some(found) = checks(&ran) else { return };
        only(&found, status, names);
        if fault == "wrong-norm" {
            let failed = found.iter().find(|c| c.status == "failed").unwrap();
            let finding = &failed.finding;
            for part in ["rms_norm of f", " with seed ", ": element "] {
                assert!(finding.contains(part), "{part}: {finding}");
            }
            assert!(failed.json["cure"].as_str().unwrap().contains("--seed"));
        }
        let other = if status == "failed" {
            "warning"
        } else {
            "failed"
        };
        only(&found, other, &[]);
    }
}

#[test]
fn a_check_that_hangs_ends_the_report() {
    let start = Instant::now();
    let words = ["--quick", "--limit", "10", "--format", "json"];
    let Some(found) = checks(&doctor("hanging-copy", &words)) else {
        return;
    };
    only(&found, "failed", &["exchange cuda:0 to cuda:1"]);
    let failed = found.iter().find(|c| c.status == "failed").unwrap();
    assert!(failed.finding.contains("10 s"), "{}", failed.finding);
    let at = found.iter().position(|c| c.status == "failed").unwrap();
    let after = &found[at + 1..];
    assert!(after.len() > 5 && after.iter().all(|c| c.status == "skipped"));
    assert!(start.elapsed() < Duration::from_secs(300));
}

#[test]
fn the_text_has_a_line_per_check_and_a_verdict() {
    let ran = doctor("out-of-memory", &["--quick", "--devices", "cuda:3"]);
    if ran.stdout.contains("TPC0545") {
        return tpc_op_cases::skip("no C++ compiler");
    }
    assert_eq!((ran.status, ran.stderr.as_str()), (1, ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    for line in [
        "system",
        "  ok       devices: 1 emulated",
        "  skipped  write and read on cuda:3: `allocation on cuda:3` failed",
    ] {
        assert!(lines.contains(&line), "{line}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("\n           cure: end other"));
    assert!(lines.iter().all(|l| l.chars().count() <= 100));
    let last = lines.last().unwrap();
    let verdict = "tpc does not work on this machine: 1 check failed";
    assert!(last.starts_with(verdict), "{last}");
}

#[test]
fn plans_read_the_measured_links() {
    let scratch = Scratch::new();
    let path = scratch.path("measured.ron");
    let path = path.to_str().unwrap();
    let words = ["--quick", "--format", "json", "--limit", "150"];
    let ran = doctor("", &[&words[..], &["--write-topology", path]].concat());
    if checks(&ran).is_none() {
        return;
    }
    let options = format!("--topology {path} -c 512 --format json");
    let planned = plan(SMALL, &options);
    assert!(planned.status < 2, "{}", planned.stderr);
    let json: Json = serde_json::from_str(&planned.stdout).unwrap();
    assert_eq!(json["devices"][1]["name"], "cuda:1");
    assert_eq!(json["devices"][1]["capacity_bytes"], 16_u64 << 30);
}

#[test]
fn a_machine_without_a_driver_fails() {
    let ran = tpc(["doctor", "--quick", "--format", "json"]);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    let checks = json["checks"].as_array().unwrap();
    let driver = checks.iter().find(|c| c["name"] == "driver").unwrap();
    if driver["status"] == "ok" {
        return tpc_op_cases::skip("this machine has a driver");
    }
    assert_eq!((ran.status, &json["verdict"]), (1, &Json::from("fails")));
    assert!(driver["finding"].as_str().unwrap().contains("TPC054"));
    let of_device = ["copies", "peers", "kernels", "models", "measurements"];
    let of_device = |c: &&Json| of_device.contains(&c["section"].as_str().unwrap());
    let later: Vec<&Json> = checks.iter().filter(of_device).collect();
    assert!(!later.is_empty());
    assert!(later.iter().all(|c| c["status"] == "skipped"));
}

#[test]
fn wrong_usage_is_refused() {
    let wrong = |more: &[&str]| tpc([&["doctor"][..], more].concat());
    refuses(&wrong(&["--devices", "cpu"]), 2, "TPC0401");
    refuses(&wrong(&["--devices", "cuda:"]), 2, "TPC0400");
    refuses(&wrong(&["--executor", "cpu"]), 2, "TPC0400");
    refuses(&wrong(&["--limit", "0"]), 2, "TPC0400");
    refuses(&wrong(&["--seed", "x"]), 2, "TPC0400");
    refuses(&wrong(&["model.gguf"]), 2, "TPC0400");
    let folder = ["--write-topology", "no/such/folder/t.ron"];
    refuses(&wrong(&folder), 2, "TPC0402");
    refuses(&doctor("gremlin", &["--quick"]), 2, "TPC0400");
}

#[test]
fn another_seed_has_other_cases() {
    let words = ["--quick", "--format", "json", "--limit", "150", "--seed"];
    let ran = doctor("wrong-norm", &[&words[..], &["7"]].concat());
    let Some(found) = checks(&ran) else { return };
    let failed = found.iter().find(|c| c.status == "failed").unwrap();
    let seeds = ["seed 7:", "seed 8:", "seed 9:"];
    let finding = &failed.finding;
    assert!(seeds.iter().any(|s| finding.contains(s)), "{finding}");
}

#[test]
fn devices_are_measured() {
    let probe = |format: &str| -> Ran {
        let mut command = Command::new(TPC);
        command.args(["devices", "--probe", "--executor", "emulated-cuda"]);
        command
            .args(["--devices", "cuda:0,cuda:2", "--format", format])
            .stdin(Stdio::null())
            .env("TPC_CUDA_CACHE", env!("CARGO_TARGET_TMPDIR"));
        finished(&mut command)
    };
    let ran = probe("json");
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    let probe_checks = json["probe"].as_array().unwrap();
    let named = |name: &str| probe_checks.iter().find(|c| c["name"] == name);
    if ran.stdout.contains("TPC0545") {
        return tpc_op_cases::skip("no C++ compiler");
    }
    assert_eq!(ran.status, 0, "{}", ran.stdout);
    assert!(json["here"]["cpu"].is_object());
    let sum = named("all-reduce on cuda:0,cuda:2").unwrap();
    assert!(sum["figures"]["all_reduce_16_kib_us"].as_f64().unwrap() > 0.0);
    let link = named("link cuda:2 to cuda:0").unwrap();
    assert!(link["figures"]["bandwidth_gb_per_s"].as_f64().unwrap() > 0.0);
    assert!(named("dense kernels on cuda:0").is_none());
    let ran = probe("table");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for part in ["this machine\n", "measurements\n", "all-reduce on"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    refuses(
        &tpc(["devices", "--executor", "emulated-cuda"]),
        2,
        "TPC0400",
    );
    refuses(&tpc(["devices", "3090", "--probe"]), 2, "TPC0400");
}

#[test]
fn a_named_compiler_must_run() {
    let mut command = Command::new(TPC);
    command.args(["doctor", "--executor", "emulated-cuda", "--quick"]);
    command.args(["--format", "json"]).stdin(Stdio::null());
    command.env("CXX", "/nonexistent/c++");
    let ran = finished(&mut command);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("CXX=/nonexistent/c++"),
        "{}",
        ran.stdout
    );
}
