//! Runs the program.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value as Json;

use super::validation;

pub(crate) const TPC: &str = env!("CARGO_BIN_EXE_tpc");

pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tpc-cli-{}-{n}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn model(&self, spec: &str) -> PathBuf {
        let path = self.path("model.gguf");
        let out = tpc(["synth", spec, "-o", path.to_str().unwrap()]);
        assert_eq!(out.status, 0, "{}", out.stderr);
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(o: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ran = Ran {
            status: o.status.code().expect("ended by itself"),
            stdout: text(o.stdout),
            stderr: text(o.stderr),
        };
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }
}

/// Environment variables that the program reads: output width, proxies, a token, caches, hubs.
const VARIABLES: [&str; 16] = [
    "COLUMNS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HF_TOKEN",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_ENDPOINT",
    "MODEL_ENDPOINT",
    "LLAMA_CACHE",
    "OLLAMA_MODELS",
    "HUGGINGFACE_HUB_CACHE",
];

fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(TPC);
    command.args(arguments).stdin(Stdio::null());
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// Runs a command of the program to its end. JSON on standard output must match the command's schema.
#[track_caller]
pub(crate) fn finished(command: &mut Command) -> Ran {
    let ran: Ran = command.output().unwrap().into();
    let words: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    validation::check(&words, &ran.stdout);
    ran
}

#[track_caller]
pub(crate) fn tpc<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    finished(&mut command(arguments))
}

/// Runs the program with environment variables.
pub(crate) fn tpc_with<S: AsRef<OsStr>>(
    variables: &[(&str, &str)],
    arguments: impl IntoIterator<Item = S>,
) -> Ran {
    let mut command = command(arguments);
    command.envs(variables.iter().copied());
    command.output().unwrap().into()
}

pub(crate) fn tpc_in<S: AsRef<OsStr>>(
    folder: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Ran {
    let mut command = command(arguments);
    finished(command.current_dir(folder))
}

pub(crate) fn plan(header: &str, options: &str) -> Ran {
    let mut arguments = vec!["plan".to_owned(), path(header)];
    arguments.extend(options.split_whitespace().map(str::to_owned));
    tpc(arguments)
}

pub(crate) fn headers() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/headers");
    let mut all: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path().to_str().unwrap().to_owned())
        .filter(|p| p.ends_with(".gguf"))
        .collect();
    all.sort();
    assert!(all.len() >= 10, "{all:?}");
    all
}

pub(crate) fn path(name: &str) -> String {
    let of = |p: &&String| {
        Path::new(p)
            .file_name()
            .is_some_and(|f| f.to_str().unwrap().starts_with(name))
    };
    headers()
        .iter()
        .find(of)
        .unwrap_or_else(|| panic!("no header {name}"))
        .clone()
}

/// Checks the status and the code. The program must print a cure, and no result.
#[track_caller]
pub(crate) fn refuses(ran: &Ran, status: i32, code: &str) {
    assert_eq!(ran.status, status, "{}", ran.stderr);
    assert!(ran.stderr.contains(code), "{code}: {}", ran.stderr);
    assert!(ran.stderr.contains("help: "), "no cure: {}", ran.stderr);
    assert_eq!(ran.stdout, "");
}

pub(crate) const SMALL: &str = "qwen3-0.6b";

pub(crate) fn words(text: &str) -> String {
    let words = text.split_whitespace().filter(|w| *w != "│");
    words.collect::<Vec<_>>().join(" ")
}

pub(crate) fn json(words: &[&str]) -> Json {
    let ran = tpc(words);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}
