//! Models by name: from the caches of other programs, and from a hub.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use super::hub_server::{HubFile, HubServer};
use super::support::{Ran, SMALL, Scratch, TPC, path, refuses, tpc, tpc_with, words};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// Runs the program with all caches below a folder.
fn with(scratch: &Scratch, more: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let home = scratch.path("home");
    let hub = scratch.path("hub");
    let mut variables = vec![
        ("HOME", home.to_str().unwrap()),
        ("HF_HUB_CACHE", hub.to_str().unwrap()),
        ("XDG_CACHE_HOME", ""),
    ];
    variables.extend(more);
    tpc_with(&variables, arguments)
}

/// Adds a file to the hub cache as huggingface_hub does; returns the link.
#[cfg(unix)]
fn cache(scratch: &Scratch, repository: &str, file: &str, content: &Path) -> PathBuf {
    let folder = scratch.path(&format!("hub/models--{}", repository.replace('/', "--")));
    let snapshot = folder.join("snapshots").join(COMMIT);
    for part in ["blobs", "refs"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    fs::create_dir_all(&snapshot).unwrap();
    fs::write(folder.join("refs/main"), COMMIT).unwrap();
    let blob = format!("{:0>64}", file.len());
    fs::copy(content, folder.join("blobs").join(&blob)).unwrap();
    let link = snapshot.join(file);
    std::os::unix::fs::symlink(format!("../../blobs/{blob}"), &link).unwrap();
    link
}

/// Returns a small model with data, and its SHA-256.
fn small(scratch: &Scratch) -> (PathBuf, String) {
    let model = scratch.model("llama-tiny");
    let sum = Command::new("sha256sum").arg(&model).output().unwrap();
    let text = String::from_utf8(sum.stdout).unwrap();
    (model, text.split(' ').next().unwrap().to_owned())
}

fn plan_json(ran: &Ran) -> Json {
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
#[cfg(unix)]
fn a_repository_is_found_in_the_hub_cache() {
    let s = Scratch::new();
    let link = cache(&s, "u/n-GGUF", "n-Q4_K_M.gguf", Path::new(&path(SMALL)));
    let json = |model: &[&str]| {
        let options = [
            "--offline",
            "-c",
            "4k",
            "--format",
            "json",
            "--devices",
            "2",
        ];
        let arguments: Vec<&str> = ["plan"]
            .iter()
            .chain(model)
            .chain(&options)
            .copied()
            .collect();
        plan_json(&with(&s, &[], &arguments))
    };
    let file = link.display().to_string();
    let plain = json(&[&file]);
    for model in [
        &["-hf", "u/n-GGUF:Q4_K_M"][..],
        &["-hf", "u/n-GGUF"],
        &["--hf-repo=U/N-gguf", "-hff", "n-Q4_K_M.gguf"],
        &["hf://u/n-GGUF"],
        &["u/n-GGUF:q4_k_m"],
        &["n"],
        &["n-Q4_K_M.gguf"],
    ] {
        let found = json(model);
        assert_eq!(found["model"]["path"], file.as_str(), "{model:?}");
        assert_eq!(found["tensors"], plain["tensors"], "{model:?}");
    }
    // A choice is reported, a full name is not.
    let notes = |model: &str| with(&s, &[], &["inspect", "-hf", model]).stderr;
    assert!(notes("u/n-GGUF").contains("TPC0449"));
    assert_eq!(notes("u/n-GGUF:Q4_K_M"), "");
    for arguments in [
        &["lint", "-hf", "u/n-GGUF", "-c", "4k"][..],
        &["verify", "-hf", "u/n-GGUF", "--devices", "2", "-c", "4k"],
        &["inspect", "u/n-GGUF"],
        &["dump", "-hf", "u/n-GGUF", "--stage", "model"],
        &["tokenize", "-hf", "u/n-GGUF", "Hello"],
    ] {
        let ran = with(&s, &[("HF_HUB_OFFLINE", "1")], arguments);
        let other = ["TPC0100", "TPC0400", "TPC0446"]
            .iter()
            .any(|code| ran.stderr.contains(code));
        assert!(!other, "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn absent_models_have_cures() {
    let s = Scratch::new();
    for (arguments, variables, code, cure) in [
        (
            &["plan", "-hf", "u/n:Q4_K_M", "--offline"][..],
            &[][..],
            "TPC0446",
            "tpc models",
        ),
        (
            &["run", "-hf", "u/n"],
            &[("HF_HUB_OFFLINE", "1")],
            "TPC0446",
            "HF_HUB_OFFLINE",
        ),
        (&["plan", "u/n"], &[], "TPC0100", "-hf u/n"),
        (
            &["plan", "-hf", "u/n"],
            &[("HF_ENDPOINT", "http://127.0.0.1:1")],
            "TPC0432",
            "check the address",
        ),
        (
            &["plan", "-hf", "u/n"],
            &[("HF_ENDPOINT", "ftp://h")],
            "TPC0430",
            "https://",
        ),
        (
            &["run", "https://huggingface.co/u/n/resolve/main/f.gguf"],
            &[],
            "TPC0405",
            "-hf u/n -hff f.gguf",
        ),
        (
            &["run", "--offline", "http://h/f.gguf"],
            &[],
            "TPC0454",
            "--offline",
        ),
    ] {
        let ran = with(&s, variables, arguments);
        refuses(&ran, 2, code);
        assert!(
            words(&ran.stderr).contains(cure),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_plan_reads_only_the_header_of_a_hubs_file() {
    let s = Scratch::new();
    let (model, hash) = small(&s);
    let mut bytes = fs::read(model).unwrap();
    // The data of a larger file is not read.
    let whole = 8 << 20;
    bytes.resize(whole, 0);
    let server = HubServer::new(vec![HubFile {
        name: "n-Q4_K_M.gguf",
        hash,
        bytes,
    }]);
    let hub = [("MODEL_ENDPOINT", server.url.as_str())];
    for command in [&["plan"][..], &["lint"], &["inspect"]] {
        let arguments: Vec<&str> = command.iter().copied().chain(["-hf", "u/n"]).collect();
        let ran = with(&s, &hub, &arguments);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
    }
    let read: usize = server.sent().iter().map(|(_, n)| n).sum();
    assert!(read > 0 && read < whole / 2, "{read}");
    assert!(!s.path("hub").exists());
}

#[test]
fn a_run_downloads_the_model_once() {
    let s = Scratch::new();
    let (model, hash) = small(&s);
    let server = HubServer::new(vec![HubFile {
        name: "n-Q8_0.gguf",
        hash: hash.clone(),
        bytes: fs::read(&model).unwrap(),
    }]);
    let hub = [
        ("HF_ENDPOINT", server.url.as_str()),
        ("HF_TOKEN", "hf_secret"),
    ];
    let tail = ["--tokens", "1,2,3", "-n", "4", "--temp", "0"];
    let run = |model: &[&str], variables: &[(&str, &str)]| {
        let arguments: Vec<&str> = ["run"].iter().chain(model).chain(&tail).copied().collect();
        let ran = with(&s, variables, &arguments);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(!ran.stderr.contains("secret"));
        ran.stdout
    };
    let answer = run(&[model.to_str().unwrap()], &[]);
    assert_eq!(run(&["-hf", "u/n:Q8_0"], &hub), answer);
    assert_eq!(run(&["-hf", "u/n:Q8_0"], &hub), answer);
    assert_eq!(run(&["-hf", "u/n", "--offline"], &[]), answer);
    assert_eq!(run(&["n"], &[]), answer);
    assert_eq!(server.sent().len(), 1);
    let blob = s.path(&format!("hub/models--u--n/blobs/{hash}"));
    assert_eq!(fs::read(blob).unwrap(), fs::read(&model).unwrap());
    let out = s.path("out.tpc");
    let ran = with(
        &s,
        &hub,
        &["compile", "-hf", "u/n:Q8_0", "-o", out.to_str().unwrap()],
    );
    assert!(ran.status == 0 && out.is_file(), "{}", ran.stderr);
}

#[test]
fn two_processes_download_one_file() {
    let s = Scratch::new();
    let (model, hash) = small(&s);
    let server = HubServer::new(vec![HubFile {
        name: "n-Q8_0.gguf",
        hash,
        bytes: fs::read(model).unwrap(),
    }]);
    let start = || {
        Command::new(TPC)
            .args(["run", "-hf", "u/n:Q8_0", "--tokens", "1,2", "-n", "2"])
            .env("HF_ENDPOINT", &server.url)
            .env("HF_HUB_CACHE", s.path("hub"))
            .env("HOME", s.path("home"))
            .env_remove("http_proxy")
            .env_remove("HTTP_PROXY")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [start(), start()];
    for process in both {
        let ran = Ran::from(process.wait_with_output().unwrap());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
    }
    assert_eq!(server.sent().len(), 1);
}

#[test]
fn a_wrong_checksum_is_not_kept() {
    let s = Scratch::new();
    let server = HubServer::new(vec![HubFile {
        name: "n-Q8_0.gguf",
        hash: "a".repeat(64),
        bytes: vec![1; 100],
    }]);
    let hub = [("HF_ENDPOINT", server.url.as_str())];
    let ran = with(&s, &hub, &["run", "-hf", "u/n", "-p", "x"]);
    refuses(&ran, 2, "TPC0451");
    assert_eq!(
        fs::read_dir(s.path("hub/models--u--n/blobs"))
            .unwrap()
            .count(),
        0
    );
    let ran = with(&s, &hub, &["run", "-hf", "u/n:Q4_K_M", "-p", "x"]);
    refuses(&ran, 2, "TPC0447");
    assert!(ran.stderr.contains(":Q8_0"), "{}", ran.stderr);
}

#[test]
#[cfg(unix)]
fn models_are_listed_with_their_condition() {
    let s = Scratch::new();
    let (model, _) = small(&s);
    let link = cache(&s, "u/n-GGUF", "n-F32.gguf", &model);
    cache(&s, "u/n-GGUF", "head-Q4_K_M.gguf", Path::new(&path(SMALL)));
    let text = s.file("text", "Lorem ipsum dolor sit amet");
    cache(&s, "u/text-GGUF", "text.gguf", &text);
    let gone = cache(&s, "u/gone", "gone-Q8_0.gguf", &model);
    fs::remove_file(fs::canonicalize(gone).unwrap()).unwrap();
    let json = |options: &[&str]| -> Json {
        let arguments: Vec<&str> = ["models", "--format", "json"]
            .iter()
            .chain(options)
            .copied()
            .collect();
        plan_json(&with(&s, &[], &arguments))
    };
    let listed = json(&["--devices", "2x3090"]);
    let of = |listed: &Json, name: &str| {
        let models = listed["models"].as_array().unwrap();
        models
            .iter()
            .find(|m| m["name"] == name)
            .unwrap_or_else(|| panic!("{listed}"))
            .clone()
    };
    assert_eq!(
        (&listed["tpc"], &listed["devices"]),
        (&Json::from(1), &Json::from("2x3090"))
    );
    let small = of(&listed, "u/n-GGUF:F32");
    assert_eq!(small["path"], link.display().to_string());
    assert_eq!(
        (&small["state"], &small["fits"]),
        (&Json::from("ready"), &Json::from(true))
    );
    assert_eq!(small["arch"], "llama");
    assert!(small["bytes"].as_u64() == Some(fs::metadata(&model).unwrap().len()));
    let head = of(&listed, "u/n-GGUF:Q4_K_M");
    assert_eq!(
        (&head["state"], &head["arch"]),
        (&Json::from("unfinished"), &Json::from("qwen3"))
    );
    assert_eq!(of(&listed, "u/text-GGUF")["state"], "broken");
    assert_eq!(of(&listed, "u/gone:Q8_0")["state"], "broken");
    // A card without free memory does not fit the model.
    let full = json(&["F32", "--devices", "3090", "--reserve", "24GiB"]);
    assert_eq!(full["models"].as_array().unwrap().len(), 1);
    assert_eq!(of(&full, "u/n-GGUF:F32")["fits"], false);
    let ran = with(&s, &[], &["models", "--devices", "3090"]);
    let text = words(&ran.stdout);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for part in [
        "u/n-GGUF:F32",
        "F32",
        "llama",
        "hub yes",
        "broken",
        "unfinished",
        "is broken: the link points",
    ] {
        assert!(text.contains(part), "{part}: {}", ran.stdout);
    }
    let ran = with(&Scratch::new(), &[], &["models"]);
    assert!(
        ran.status == 0 && ran.stdout.contains("tpc run -hf"),
        "{}",
        ran.stdout
    );
    refuses(&tpc(["models", "--devices", "0"]), 2, "TPC0400");
}
