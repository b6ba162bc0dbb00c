//! Finds models at paths, and suggests cures for other paths.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tpc_diag::{Diagnostic, suggest};
use tpc_ggml::llama_cpp::quote;
use tpc_gguf::{GgufError, GgufErrorKind, GgufFile, SplitName};

use super::{Place, codes};
use crate::output::Failure;

/// The maximum number of folder entries that tpc reads.
const MAX_ENTRIES: usize = 10_000;
/// The maximum number of file names in a message.
const MAX_LISTED: usize = 8;

/// Finds the model at a path: the file, or the only model in a folder.
pub(super) fn locate(path: &Path) -> Result<Place, Failure> {
    match path.is_dir() {
        true => in_folder(path),
        false => Ok(Place::Local(path.to_owned(), None)),
    }
}

/// True if the name or the first bytes of a file are a captured graph's.
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

/// Returns a folder's models. A split model is listed once, as its first shard. Image encoders (`mmproj*`) are omitted.
fn models(folder: &Path) -> Vec<PathBuf> {
    let all = entries(folder).into_iter();
    let files = all.filter(|p| has_extension(p, "gguf") && p.is_file());
    let first = |p: &PathBuf| SplitName::of_path(p).is_none_or(|s| s.number == 1);
    let mut out: Vec<PathBuf> = files
        .clone()
        .filter(|p| first(p) && !name(p).starts_with("mmproj"))
        .collect();
    if out.is_empty() {
        // If every model lacks its first shard, list one file; the reader's error names the missing shard.
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

fn in_folder(folder: &Path) -> Result<Place, Failure> {
    let models = models(folder);
    if let [model] = models.as_slice() {
        let message = format!(
            "`{}` is a folder: using its model {}",
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
            (false, _) => format!("give one of the folder's models: {}", listed(&below)),
            (true, true) => format!(
                "the folder holds safetensors: convert them with llama.cpp's python convert_hf_to_gguf.py {}",
                quote(&folder.display().to_string())
            ),
            (true, false) => {
                "the folder does not hold a .gguf file: give the path of one".to_owned()
            }
        }
    } else {
        format!(
            "the folder holds {} models; give one: {}",
            models.len(),
            listed(&models)
        )
    };
    match GgufFile::open(folder) {
        Err(e) => Err(Failure::usage(Diagnostic::from(e).help(help))),
        Ok(_) => Ok(Place::Local(folder.to_owned(), None)),
    }
}

/// Returns the failure of a file that cannot be opened, with help if the path does not exist.
pub(super) fn unreadable(path: &Path, e: GgufError) -> Failure {
    let absent = matches!(e.kind(), GgufErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
    let d = Diagnostic::from(e);
    Failure::from_diagnostics(vec![match absent.then(|| cure(path)) {
        Some(help) => d.help(help),
        None => d,
    }])
}

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
            return format!(
                "check the path; for a Hugging Face repository, write -hf {text}; `tpc models` lists the models here"
            );
        }
        return format!(
            "check the path: folder {} does not exist",
            quote(&folder.display().to_string())
        );
    }
    let wanted = name(path);
    let here = entries(folder);
    let begun =
        [".part", ".incomplete", ".crdownload", ".download"].map(|e| format!("{wanted}{e}"));
    if let Some(part) = here.iter().find(|p| begun.contains(&name(p))) {
        return format!(
            "the download is not finished, but the header may be complete: give {}",
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
        true => "check the path: its folder does not hold a .gguf file".to_owned(),
        false => format!("check the path; its folder holds {}", listed(&models)),
    }
}

fn slip(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("the path is empty: a shell variable may be unset".to_owned());
    }
    if text == "-" {
        return Some(
            "models need random access, so standard input does not work: save the model as a file"
                .to_owned(),
        );
    }
    if let Some(option) = text.strip_prefix(['\u{2013}', '\u{2014}', '\u{2212}']) {
        let option = option.trim_start_matches(['-', '\u{2013}', '\u{2014}', '\u{2212}']);
        return Some(format!(
            "options begin with hyphens, not dashes (web pages often show dashes instead): --{option}"
        ));
    }
    if text.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}', '\u{201e}']) {
        return Some("use straight quotes: the shell does not know typographic ones".to_owned());
    }
    if text.starts_with('-') {
        return Some(format!(
            "write {text} before `--`, or ./{text} for a file of that name"
        ));
    }
    if text.chars().all(|c| c.is_ascii_digit() || c == ',') {
        return Some(format!(
            "`{text}` is in the place of a model: an option takes one value, as the next word or after `=`"
        ));
    }
    let bare = text.strip_prefix("www.").unwrap_or(text);
    if bare.starts_with("huggingface.co/") || bare.starts_with("hf.co/") {
        return Some(format!("write an address with https://: https://{bare}"));
    }
    if text.starts_with("~/") || text.starts_with("$HOME") || text.starts_with("${") {
        return Some(
            "remove the quotes: the shell does not expand ~ or variables in single quotes"
                .to_owned(),
        );
    }
    if text.contains(['*', '?']) {
        return Some(
            "no file matches the pattern: check the folder; only `tpc lint` takes patterns"
                .to_owned(),
        );
    }
    if text.contains('\\') && !cfg!(windows) {
        return Some(format!(
            "separate folders by `/`: {}",
            quote(&text.replace('\\', "/"))
        ));
    }
    if text.trim() != text {
        return Some(format!(
            "the path begins or ends with a space; write {}",
            quote(text.trim())
        ));
    }
    None
}
