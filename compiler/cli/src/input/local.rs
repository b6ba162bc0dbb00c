//! Paths of models, and help texts for paths that are not a model.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tpc_diag::{Diagnostic, suggest};
use tpc_ggml::llama_cpp::quote;
use tpc_gguf::{GgufError, GgufErrorKind, GgufFile, SplitName};

use super::{Place, codes};
use crate::output::Failure;

/// The maximum number of a folder's entries that are read.
const MAX_ENTRIES: usize = 10_000;
/// The maximum number of files that a message lists.
const MAX_LISTED: usize = 8;

/// Finds the model at a path: the file itself, or the only model of a folder.
pub(super) fn locate(path: &Path) -> Result<Place, Failure> {
    match path.is_dir() {
        true => in_folder(path),
        false => Ok(Place::Local(path.to_owned(), None)),
    }
}

/// True if a file is a captured graph, by its name or by its first bytes.
pub(crate) fn is_capture(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    if extension.is_some_and(|e| ["jsonl", "ndjson"].contains(&e.to_ascii_lowercase().as_str())) {
        return true;
    }
    if !path.is_file() {
        return false;
    }
    let mut head = [0; 16];
    let read = File::open(path).and_then(|mut f| f.read(&mut head));
    let head = &head[..read.unwrap_or(0)];
    let head: Vec<u8> = head.iter().copied().filter(|b| *b != b' ').collect();
    head.starts_with(b"{\"id\":")
}

/// Returns the paths in a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(read) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut out: Vec<PathBuf> = read
        .filter_map(Result::ok)
        .take(MAX_ENTRIES)
        .map(|e| e.path())
        .collect();
    out.sort();
    out
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns the models of a folder: the first shard of a split model, and no image encoders (`mmproj*`).
fn models(folder: &Path) -> Vec<PathBuf> {
    let all = entries(folder).into_iter();
    let files = all.filter(|p| has_extension(p, "gguf") && p.is_file());
    let first = |p: &PathBuf| SplitName::of_path(p).is_none_or(|s| s.number == 1);
    let mut out: Vec<PathBuf> = files
        .clone()
        .filter(|p| first(p) && !name(p).starts_with("mmproj"))
        .collect();
    if out.is_empty() {
        // If every model lacks its first shard, one file is enough: the error names the missing shard.
        out = files.take(1).collect();
    }
    out
}

fn listed(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths
        .iter()
        .take(MAX_LISTED)
        .map(|p| quote(&p.display().to_string()))
        .collect();
    match paths.len() > MAX_LISTED {
        true => format!("{} and {} more", shown.join(", "), paths.len() - MAX_LISTED),
        false => shown.join(", "),
    }
}

/// Returns the only model of a folder.
fn in_folder(folder: &Path) -> Result<Place, Failure> {
    let models = models(folder);
    if let [model] = models.as_slice() {
        let message = format!(
            "`{}` is a folder, and {} is its model",
            folder.display(),
            name(model)
        );
        let d = Diagnostic::new(&codes::CHOSEN, folder.display().to_string(), message);
        let note = d.help(format!(
            "give the file: {}",
            quote(&model.display().to_string())
        ));
        return Ok(Place::Local(model.clone(), Some(note)));
    }
    let help = if models.is_empty() {
        let folders: Vec<PathBuf> = entries(folder).into_iter().filter(|p| p.is_dir()).collect();
        let below: Vec<PathBuf> = folders
            .iter()
            .take(100)
            .flat_map(|f| self::models(f))
            .collect();
        let safetensors = entries(folder)
            .iter()
            .any(|p| has_extension(p, "safetensors"));
        match (below.is_empty(), safetensors) {
            (false, _) => format!("give one of the models in it: {}", listed(&below)),
            (true, true) => format!(
                "it holds safetensors: convert them with python convert_hf_to_gguf.py {} (of llama.cpp)",
                quote(&folder.display().to_string())
            ),
            (true, false) => "there is no .gguf file in it: give the path of one".to_owned(),
        }
    } else {
        format!(
            "it holds {} models; give one: {}",
            models.len(),
            listed(&models)
        )
    };
    // Opening the folder gives the reader's error, as for any path.
    match GgufFile::open(folder) {
        Err(e) => Err(Failure::usage(Diagnostic::from(e).help(help))),
        Ok(_) => Ok(Place::Local(folder.to_owned(), None)),
    }
}

/// Returns the failure of a file that cannot be opened. If the path does not exist, it has a help text.
pub(super) fn unreadable(path: &Path, e: GgufError) -> Failure {
    let absent = matches!(e.kind(), GgufErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
    let d = Diagnostic::from(e);
    Failure::from_diagnostics(vec![match absent.then(|| cure(path)) {
        Some(help) => d.help(help),
        None => d,
    }])
}

/// Returns the help text for a path that does not exist.
fn cure(path: &Path) -> String {
    let text = path.to_string_lossy();
    if let Some(help) = slip(&text) {
        return help;
    }
    let folder = match path.parent() {
        Some(p) if p.as_os_str().is_empty() => Path::new("."),
        Some(p) => p,
        None => return "check that the path names a readable file".to_owned(),
    };
    if !folder.is_dir() {
        if let [_, _] = text.split('/').collect::<Vec<_>>().as_slice()
            && !has_extension(path, "gguf")
        {
            let repository = text.split(':').next().unwrap_or_default();
            return format!(
                "check the path; of a repository of Hugging Face give a file: \
                 https://huggingface.co/{repository}/resolve/main/FILE.gguf"
            );
        }
        return format!(
            "check the path: there is no folder {}",
            quote(&folder.display().to_string())
        );
    }
    let wanted = name(path);
    let here = entries(folder);
    let begun =
        [".part", ".incomplete", ".crdownload", ".download"].map(|e| format!("{wanted}{e}"));
    if let Some(part) = here.iter().find(|p| begun.contains(&name(p))) {
        return format!(
            "its download is not finished; its header may be: give {}",
            quote(&part.display().to_string())
        );
    }
    let stem = wanted.strip_suffix(".gguf").unwrap_or(&wanted).to_owned();
    let of_model = |p: &&PathBuf| {
        name(p) == format!("{stem}.gguf") || SplitName::of_path(p).is_some_and(|s| s.prefix == stem)
    };
    if let Some(model) = here.iter().find(of_model) {
        return format!("give {}", quote(&model.display().to_string()));
    }
    let models: Vec<PathBuf> = here
        .into_iter()
        .filter(|p| has_extension(p, "gguf"))
        .collect();
    let names: Vec<String> = models.iter().map(|p| name(p)).collect();
    if let Some(near) = suggest::nearest(&wanted, names.iter().map(String::as_str)) {
        return format!(
            "did you mean {}?",
            quote(&folder.join(near).display().to_string())
        );
    }
    match models.is_empty() {
        true => "check the path: it names nothing, and there is no .gguf file beside it".to_owned(),
        false => format!("check the path; beside it are {}", listed(&models)),
    }
}

/// Returns the help text for a word that is not a path.
fn slip(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("the path is empty: a variable of the shell may be unset".to_owned());
    }
    if text == "-" {
        return Some(
            "a model is read at any position, so not from standard input: save it as a file"
                .to_owned(),
        );
    }
    if let Some(option) = text.strip_prefix(['\u{2013}', '\u{2014}', '\u{2212}']) {
        let option = option.trim_start_matches(['-', '\u{2013}', '\u{2014}', '\u{2212}']);
        return Some(format!(
            "options begin with hyphens, not dashes (pages and documents change them): --{option}"
        ));
    }
    if text.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}', '\u{201e}']) {
        return Some("the shell knows straight quotes alone: type them again".to_owned());
    }
    if text.starts_with('-') {
        return Some(format!(
            "options stand before `--`: write {text} there, or ./{text} for a file of that name"
        ));
    }
    if text.chars().all(|c| c.is_ascii_digit() || c == ',') {
        return Some(format!(
            "`{text}` stands where a model does: an option takes one value, right behind it or after `=`"
        ));
    }
    let bare = text.strip_prefix("www.").unwrap_or(text);
    if bare.starts_with("huggingface.co/") || bare.starts_with("hf.co/") {
        return Some(format!("an address begins with https://: https://{bare}"));
    }
    if text.starts_with("~/") || text.starts_with("$HOME") || text.starts_with("${") {
        return Some("the shell replaces ~ and variables outside of single quotes alone: leave the quotes away".to_owned());
    }
    if text.contains(['*', '?']) {
        return Some("no file matches the pattern: check the folder; `tpc lint` takes patterns, the others one model".to_owned());
    }
    if text.contains('\\') && !cfg!(windows) {
        return Some(format!(
            "folders are separated by `/` here: {}",
            quote(&text.replace('\\', "/"))
        ));
    }
    if text.trim() != text {
        return Some(format!(
            "the path begins or ends with a blank: {}",
            quote(text.trim())
        ));
    }
    None
}
