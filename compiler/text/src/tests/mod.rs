//! Tests on the vocabularies of published models.

mod chat;
mod chat_requests;
mod hostile;
mod known;
mod round_trips;
mod small;

use std::path::{Path, PathBuf};

use crate::Tokenizer;
use tpc_gguf::GgufFile;

/// Returns the vocabularies in both folders, sorted by path. If file names repeat, the first file wins.
fn vocabularies() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut out: Vec<PathBuf> = Vec::new();
    for folder in ["tests/data/vocab", "../shared/vocab"] {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
            continue;
        };
        for path in entries.map(|e| e.unwrap().path()) {
            let name = |p: &PathBuf| p.file_name().unwrap().to_owned();
            let is_file = path.extension().is_some_and(|e| e == "gguf");
            if is_file && !out.iter().any(|p| name(p) == name(&path)) {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

fn open(path: &Path) -> Tokenizer {
    Tokenizer::from_gguf(&GgufFile::open(path).unwrap()).unwrap()
}
