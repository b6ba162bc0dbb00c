//! Models in the caches of other programs.

use std::path::Path;

use super::Scratch;
use crate::{Entry, Source, State, Stores, Wanted, find, find_name, list};

const MAIN: &str = "0123456789abcdef0123456789abcdef01234567";
const OLDER: &str = "00000000000000000000000000000000000000aa";

fn ollama(scratch: &Scratch, name: &str, digit: char, bytes: usize) {
    let digest = digit.to_string().repeat(64);
    let manifest = format!(
        r#"{{"schemaVersion":2,"layers":[{{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:{}","size":1}},
            {{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:{digest}","size":{bytes}}}]}}"#,
        "f".repeat(64)
    );
    scratch.write(&format!("ollama/manifests/{name}"), manifest);
    scratch.write(&format!("ollama/blobs/sha256-{digest}"), vec![0; bytes]);
}

/// Makes caches of every layout.
fn filled() -> Scratch {
    let s = Scratch::new();
    for file in [
        "m-Q4_K_M.gguf",
        "m-Q8_0.gguf",
        "mmproj-m-f16.gguf",
        "BF16/m-BF16-00001-of-00002.gguf",
        "BF16/m-BF16-00002-of-00002.gguf",
    ] {
        s.hub("ggml-org/m-GGUF", MAIN, file);
    }
    s.hub("u/only-GGUF", MAIN, "weights.gguf");
    s.write("llama/u_flat_flat-Q5_K_M.gguf", "12345");
    s.write(
        "llama/manifest=u=flat=latest.json",
        r#"{"ggufFile":{"rfilename":"flat-Q5_K_M.gguf"}}"#,
    );
    s.write("llama/v_w_stray-Q4_0.gguf", "123");
    ollama(&s, "registry.ollama.ai/library/llama3/8b", 'a', 7);
    ollama(&s, "registry.ollama.ai/library/llama3/latest", 'b', 8);
    ollama(&s, "hf.co/x/y-GGUF/Q4_K_M", 'c', 9);
    s.write("home/.lmstudio/models/lm/studio-GGUF/studio-Q6_K.gguf", "1");
    s
}

fn path_of(stores: &Stores, name: &str) -> Option<String> {
    let found = match name.strip_prefix("hf://") {
        Some(wanted) => find(stores, &Wanted::parse(wanted).unwrap()),
        None => find_name(stores, name).unwrap(),
    };
    found.map(|f| f.path.display().to_string())
}

#[test]
fn every_listed_name_finds_its_file() {
    let s = filled();
    let stores = s.stores();
    let all = list(&stores);
    let names: Vec<(&str, Source)> = all.iter().map(|e| (e.name.as_str(), e.source)).collect();
    assert_eq!(
        names,
        [
            ("ggml-org/m-GGUF:BF16", Source::Hub),
            ("ggml-org/m-GGUF:Q4_K_M", Source::Hub),
            ("ggml-org/m-GGUF:Q8_0", Source::Hub),
            ("u/only-GGUF", Source::Hub),
            ("u/flat:Q5_K_M", Source::LlamaCpp),
            ("v_w_stray-Q4_0.gguf", Source::LlamaCpp),
            ("hf.co/x/y-GGUF:Q4_K_M", Source::Ollama),
            ("llama3:8b", Source::Ollama),
            ("llama3:latest", Source::Ollama),
            ("lm/studio-GGUF:Q6_K", Source::LmStudio),
        ]
    );
    for Entry {
        name, path, state, ..
    } in &all
    {
        assert_eq!(*state, State::Ready, "{name}");
        assert_eq!(
            path_of(&stores, name),
            Some(path.display().to_string()),
            "{name}"
        );
    }
    // A split model has the bytes of all its shards: here, the lengths of two names.
    assert_eq!(all[0].bytes, 62);
}

#[test]
fn names_that_users_write() {
    let s = filled();
    let stores = s.stores();
    for (name, end) in [
        ("ggml-org/m-GGUF", "m-Q4_K_M.gguf"),
        ("GGML-org/m-gguf:q8_0", "m-Q8_0.gguf"),
        (
            "hf://ggml-org/m-GGUF:bf16",
            "BF16/m-BF16-00001-of-00002.gguf",
        ),
        (
            "hf://ggml-org/m-GGUF/BF16/m-BF16-00002-of-00002.gguf",
            "BF16/m-BF16-00002-of-00002.gguf",
        ),
        ("m", "m-Q4_K_M.gguf"),
        ("M-GGUF:Q8_0", "m-Q8_0.gguf"),
        ("m-q8_0", "m-Q8_0.gguf"),
        ("m-Q8_0.gguf", "m-Q8_0.gguf"),
        ("hf://u/flat", "u_flat_flat-Q5_K_M.gguf"),
        ("hf://u/flat/flat-Q5_K_M.gguf", "u_flat_flat-Q5_K_M.gguf"),
        ("hf://v/w:Q4_0", "v_w_stray-Q4_0.gguf"),
        ("llama3", &"b".repeat(64)),
        ("hf://x/y-GGUF:Q4_K_M", &"c".repeat(64)),
        ("studio", "studio-Q6_K.gguf"),
        ("studio-Q6_K", "studio-Q6_K.gguf"),
    ] {
        let path = path_of(&stores, name).unwrap_or_default();
        assert!(path.ends_with(end), "{name}: {path}");
    }
    for name in [
        "hf://ggml-org/m-GGUF:Q2_K",
        "hf://ggml-org/m-GGUF/absent.gguf",
        "hf://u/flat/../v_w_stray-Q4_0.gguf",
        "llama3:70b",
        "unknown",
        "mmproj-m-f16",
        "../m",
        "",
        "-m",
    ] {
        let wanted = name.strip_prefix("hf://").map(Wanted::parse);
        match wanted {
            Some(Err(d)) => assert_eq!(d.code.id, "TPC0445", "{name}"),
            _ => assert_eq!(path_of(&stores, name), None, "{name}"),
        }
    }
    // The default is reported as a choice.
    let chosen = |name: &str| find_name(&stores, name).unwrap().unwrap().chosen;
    assert!(chosen("m") && chosen("ggml-org/m-GGUF"));
    assert!(!chosen("ggml-org/m-GGUF:Q8_0") && !chosen("llama3:8b"));
}

#[test]
fn a_name_of_several_models_is_refused() {
    let s = filled();
    s.hub("other/m-GGUF", MAIN, "m-Q4_K_M.gguf");
    let d = find_name(&s.stores(), "m").unwrap_err();
    let help = d.help.as_ref().map(ToString::to_string).unwrap_or_default();
    assert_eq!(d.code.id, "TPC0448");
    for name in ["ggml-org/m-GGUF:Q4_K_M", "other/m-GGUF:Q4_K_M"] {
        assert!(help.contains(name), "{help}");
    }
}

#[test]
fn files_of_older_snapshots_are_found() {
    let s = Scratch::new();
    s.hub("u/n", OLDER, "n-Q8_0.gguf");
    s.hub("u/n", OLDER, "n-Q4_K_M.gguf");
    s.hub("u/n", MAIN, "n-Q4_K_M.gguf");
    let stores = s.stores();
    let commit = |name: &str| {
        let path = path_of(&stores, name).unwrap();
        path.split('/').rev().nth(1).map(str::to_owned)
    };
    assert_eq!(commit("u/n:Q4_K_M").as_deref(), Some(MAIN));
    assert_eq!(commit("u/n:Q8_0").as_deref(), Some(OLDER));
}

#[test]
fn incomplete_models_are_listed_and_not_found() {
    let s = filled();
    let gone = s.path("hub/models--ggml-org--m-GGUF/snapshots").join(MAIN);
    std::fs::remove_file(gone.join("BF16/m-BF16-00001-of-00002.gguf")).unwrap();
    let blob = std::fs::canonicalize(gone.join("m-Q4_K_M.gguf")).unwrap();
    std::fs::remove_file(blob).unwrap();
    s.write("hub/models--u--only-GGUF/blobs/0a.incomplete", "12");
    s.write("llama/u_flat_flat-Q8_0.gguf.downloadInProgress", "1");
    ollama(&s, "registry.ollama.ai/library/cut/latest", 'd', 5);
    s.write(&format!("ollama/blobs/sha256-{}", "d".repeat(64)), "1234");
    s.write(
        "ollama/manifests/registry.ollama.ai/library/odd/latest",
        "{",
    );
    let stores = s.stores();
    let all = list(&stores);
    let state = |name: &str| {
        let found = all
            .iter()
            .find(|e| e.name == name && e.state != State::Ready);
        found.map(|e| format!("{:?}", e.state)).unwrap_or_default()
    };
    assert!(state("ggml-org/m-GGUF:BF16").contains("1 of 2 shards"));
    assert!(state("ggml-org/m-GGUF:Q4_K_M").contains("missing file"));
    assert!(state("u/only-GGUF").contains("0a.incomplete"));
    assert!(state("u_flat_flat-Q8_0.gguf").contains("not ended"));
    assert!(state("cut:latest").contains("4 of 5 bytes"));
    assert!(state("odd:latest").contains("not JSON"));
    // The broken default is skipped.
    assert!(
        path_of(&stores, "ggml-org/m-GGUF")
            .unwrap()
            .ends_with("m-Q8_0.gguf")
    );
    for name in [
        "ggml-org/m-GGUF:BF16",
        "ggml-org/m-GGUF:Q4_K_M",
        "cut",
        "odd",
    ] {
        assert_eq!(path_of(&stores, name), None, "{name}");
    }
    assert!(Path::new(&path_of(&stores, "llama3:8b").unwrap()).is_file());
}
