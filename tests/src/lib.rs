//! Test data of the pipeline tests.
//!
//! The repository has some golden models and headers in `tests/data`. Tests also use models in a folder `shared` next
//! to the checkout.

pub mod speeds;

use std::path::{Path, PathBuf};

/// The size of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// A fixed sample.
    Sample,
    /// The whole sweep; takes minutes longer.
    Full,
}

impl Sweep {
    /// Returns [`Sweep::Full`] if `TPC_FULL=1`.
    pub fn asked() -> Sweep {
        match std::env::var_os("TPC_FULL").is_some_and(|v| v == "1") {
            true => Sweep::Full,
            false => Sweep::Sample,
        }
    }

    /// Returns `sample` or `full`.
    pub fn pick<T>(self, sample: T, full: T) -> T {
        match self {
            Sweep::Sample => sample,
            Sweep::Full => full,
        }
    }
}

/// Parts of patterns for tensor names.
pub const TENSOR_NAMES: [&str; 20] = [
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_output",
    "attn",
    "norm",
    "ffn",
    "ffn_up",
    "ffn_gate",
    "ffn_down",
    "ffn_(up|gate)",
    "exps",
    "gate_inp",
    "bias",
    "token_embd",
    "output",
    "ssm",
    "shexp",
    "_[qk]",
    "weight",
];

/// Returns the folder `tests/data` of the repository, or the folder in `TPC_TEST_DATA`.
pub fn data() -> PathBuf {
    match std::env::var_os("TPC_TEST_DATA").filter(|v| !v.is_empty()) {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("data"),
    }
}

/// Returns the folder `shared` next to the checkout, if any.
pub fn shared() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    path.is_dir().then_some(path)
}

/// Returns the files in `folders` with this ending, sorted by name. If a name repeats, the first file counts.
pub fn files(folders: &[PathBuf], ending: &str) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for path in entries.filter_map(Result::ok).map(|e| e.path()) {
            let named = |p: &PathBuf| p.file_name().map(|n| n.to_string_lossy().into_owned());
            let name = named(&path).unwrap_or_default();
            if name.ends_with(ending)
                && !out
                    .iter()
                    .any(|p| named(p).as_deref() == Some(name.as_str()))
            {
                out.push(path);
            }
        }
    }
    out.sort_by_key(|p| p.file_name().map(std::ffi::OsStr::to_os_string));
    out
}

/// Returns the paths of all golden models.
pub fn goldens() -> Vec<PathBuf> {
    let mut folders = vec![data().join("golden")];
    folders.extend(shared().map(|s| s.join("golden")));
    files(&folders, ".gguf")
}

/// Returns the paths of all headers of real models.
pub fn headers() -> Vec<PathBuf> {
    let mut folders = vec![data().join("headers")];
    folders.extend(shared().map(|s| s.join("models")));
    files(&folders, ".header.gguf")
}

/// Returns the paths of all captured graphs.
pub fn captures() -> Vec<PathBuf> {
    let mut folders = vec![data().join("graphs")];
    folders.extend(shared().map(|s| s.join("graphs")));
    files(&folders, ".jsonl")
}
