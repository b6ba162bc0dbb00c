//! Inputs of a command: files, folders, addresses.
//!
//! - `local` finds models at paths;
//! - `stored` finds models in the caches of other programs, and downloads them;
//! - `web` reads headers over HTTPS;
//! - `regular` reads whole files and refuses endless ones;
//! - `text` reads prompts.

mod local;
mod regular;
mod stored;
mod text;
mod web;

use std::io::Read;
use std::path::{Path, PathBuf};

use tpc_core::format::bytes;
use tpc_diag::Diagnostic;
use tpc_fetch::Address;
use tpc_gguf::GgufFile;

use super::codes;
use super::foreign::is_address;
use super::output::Failure;
use super::progress::Progress;
pub(super) use local::is_capture;
pub(super) use regular::read as read_file;
pub(super) use stored::{HubArgs, Need, stores};
pub(super) use text::{given_or_piped as text, of_file as text_of_file};

/// An open model; tensor data may be missing.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) file: GgufFile,
    /// Notes on how the model was found.
    pub(super) notes: Vec<Diagnostic>,
}

pub(super) enum Place {
    /// A file, with a note if tpc found it in a folder.
    Local(PathBuf, Option<Diagnostic>),
    Web(Address),
}

/// Finds the model that a word names: a file, a folder with one model, or an address.
pub(super) fn locate(word: &Path) -> Result<Place, Failure> {
    if is_artefact(word) {
        return Err(Failure::usage(is_compiled(word)));
    }
    match word.to_str() {
        Some(text) if is_address(text) || text.contains("://") => {
            match text.strip_prefix("file://") {
                Some(path) => local::locate(Path::new(path)),
                None => Ok(Place::Web(Address::parse(text).map_err(Failure::usage)?)),
            }
        }
        _ => local::locate(word),
    }
}

/// Returns a word for reports, without secret parts of an address.
pub(super) fn shown(word: &Path) -> String {
    let address = word.to_str().filter(|t| is_address(t));
    match address.and_then(|t| Address::parse(t).ok()) {
        Some(address) => address.display_name(),
        None => word.display().to_string(),
    }
}

/// Opens a model for planning. A header or an unfinished download is enough.
pub(super) fn open(word: &Path) -> Result<Model, Failure> {
    let (path, note) = match locate(word)? {
        Place::Local(path, note) => (path, note),
        Place::Web(address) => {
            let _progress =
                Progress::start(format!("reading the header of {}", address.display_name()));
            let file = web::open(address)?;
            let notes = file.missing().iter().map(unfinished).collect();
            return Ok(Model { file, notes });
        }
    };
    let file = GgufFile::open_unfinished(&path).map_err(|e| local::unreadable(&path, e))?;
    let mut notes: Vec<Diagnostic> = note.into_iter().collect();
    notes.extend(file.missing().iter().map(unfinished));
    Ok(Model { file, notes })
}

/// Opens a complete model on this machine.
pub(super) fn open_whole(word: &Path) -> Result<GgufFile, Failure> {
    match locate(word)? {
        Place::Local(path, _) => GgufFile::open(&path).map_err(|e| local::unreadable(&path, e)),
        Place::Web(address) => {
            let message = "an address gives only the header, but this command needs the data";
            let d = Diagnostic::new(
                &tpc_diag::codes::NO_TENSOR_DATA,
                address.display_name(),
                message,
            );
            Err(Failure::usage(d.help(downloadable(word))))
        }
    }
}

/// Returns the cure for an address in place of a model with data.
fn downloadable(word: &Path) -> String {
    match word.to_str().and_then(stored::of_address) {
        Some((repository, file)) => {
            format!("tpc downloads files of a hub's repository: -hf {repository} -hff {file}")
        }
        None => "download the file and give its path; only plan, verify, lint and inspect take an address".to_owned(),
    }
}

/// Checks that a model has its tensor data.
pub(super) fn with_data(file: GgufFile, word: &Path) -> Result<GgufFile, Failure> {
    if file.has_data() {
        return Ok(file);
    }
    let message = "a header without data cannot run";
    let d = Diagnostic::new(&tpc_diag::codes::NO_TENSOR_DATA, shown(word), message);
    Err(Failure::usage(d.help(
        "give the whole model; `tpc run -hf USER/NAME` downloads one, `tpc synth` makes a small one",
    )))
}

/// True if the name and the first bytes are an artefact's.
fn is_artefact(word: &Path) -> bool {
    let named = word
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("tpc"));
    let mut head = [0; 4];
    let file = (named && word.is_file()).then(|| std::fs::File::open(word).ok());
    let read = file.flatten().map(|mut f| f.read_exact(&mut head));
    read.is_some_and(|r| r.is_ok()) && head == *b"PK\x03\x04"
}

fn is_compiled(word: &Path) -> Diagnostic {
    let name = word.display().to_string();
    let message = format!("{name} is an artefact, but this command needs its model");
    let d = Diagnostic::new(&tpc_diag::codes::COMMAND_LINE, name, message);
    d.help(
        "give the .gguf file; only run, bench, perplexity, eval, check, verify, inspect and dump take an artefact",
    )
}

fn unfinished(missing: &tpc_gguf::MissingData) -> Diagnostic {
    let name = missing.path.display().to_string();
    let message = format!(
        "{} of {} are missing: the data of {} tensors, from {} on; the header is complete and suffices for planning",
        bytes(missing.bytes),
        bytes(missing.whole),
        missing.tensors,
        missing.first
    );
    let d = Diagnostic::new(&codes::UNFINISHED, name, message);
    d.help(match missing.path.to_str().is_some_and(is_address) {
        true => "the file at the address is incomplete: use another one to run the model",
        false => "finish the download before you run the model",
    })
}
