//! The artefact that a command line names: file, model, compile options.

use std::io::Read;
use std::path::{Path, PathBuf};

use tpc_artefact::{Artefact, MAX_BYTES, codes};
use tpc_diag::{Diagnostic, codes as common};
use tpc_engine::artefact::{
    Mismatch, STORAGE_FORMATS, TargetDevices, command, in_memory, mismatches, of_model,
    of_topology, on_devices,
};
use tpc_ggml::llama_cpp::quote;
use tpc_gguf::GgufFile;

use crate::args::PlacementArgs;
use crate::input;
use crate::output::{self, Failure};

/// An artefact's path, and its model's path if given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) artefact: &'a Path,
    model: Option<&'a Path>,
}

/// Finds the artefact among one or two paths, in either order.
pub(super) fn named<'a>(first: &'a Path, second: Option<&'a Path>) -> Option<Named<'a>> {
    let second_is = |p: &&Path| !is_artefact(first) && is_artefact(p);
    match second.filter(second_is) {
        Some(artefact) => Some(Named {
            artefact,
            model: Some(first),
        }),
        None => is_artefact(first).then_some(Named {
            artefact: first,
            model: second,
        }),
    }
}

/// True if the name or the first bytes of a file are an artefact's.
pub(super) fn is_artefact(path: &Path) -> bool {
    if path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("tpc"))
    {
        return true;
    }
    let mut head = [0; 4];
    let read = path
        .is_file()
        .then(|| std::fs::File::open(path).ok())
        .flatten();
    read.is_some_and(|mut f| f.read_exact(&mut head).is_ok() && head == *b"PK\x03\x04")
}

pub(super) fn no_second(second: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = second else { return Ok(()) };
    let message = format!("unexpected second file `{}`", path.display());
    let d = Diagnostic::new(&common::COMMAND_LINE, path.display().to_string(), message);
    let help = match path.exists() {
        true => "give one model, or an artefact (.tpc) and its model; options begin with hyphens"
            .to_owned(),
        false => format!(
            "for a prompt: tpc run MODEL -p {}",
            quote(&path.display().to_string())
        ),
    };
    Err(Failure::usage(d.help(help)))
}

pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    input::read_file(path, MAX_BYTES)
}

/// Reads an artefact and verifies its program.
pub(super) fn read(path: &Path) -> Result<Artefact, Failure> {
    let bytes = bytes(path)?;
    let name = path.display().to_string();
    Artefact::read(&bytes, STORAGE_FORMATS).map_err(|e| Failure::usage(e.diagnostic(&name)))
}

/// Checks that the placement options except `--devices` equal the artefact's.
///
/// # Errors
/// Returns TPC0587 if an option differs, or if links, reserved memory or host memory are given.
pub(super) fn options_are_free(
    (path, model): (&Path, Option<&Path>),
    artefact: &Artefact,
    options: &PlacementArgs,
) -> Result<(), Failure> {
    let made = PlacementArgs::read(&artefact.manifest().options.words);
    let same = made.is_ok_and(|made| options.agree_with(&made));
    if same && !options.says_links() {
        return Ok(());
    }
    let name = path.display().to_string();
    let words: Vec<String> = artefact
        .manifest()
        .options
        .words
        .iter()
        .map(|w| quote(w))
        .collect();
    let message = format!(
        "{name} was compiled with {}; placement options cannot change it",
        words.join(" ")
    );
    let d = Diagnostic::new(&codes::FIXED, name, message);
    let again = command((path, artefact.manifest()), model, None, None);
    Err(Failure::usage(d.help(format!(
        "leave out these options, or compile again with other values: {again}"
    ))))
}

impl Named<'_> {
    pub(super) fn files(&self) -> (&Path, Option<&Path>) {
        (self.artefact, self.model)
    }

    /// Returns the given model path, or else the model's file name in the artefact's folder.
    pub(super) fn model_path(&self, artefact: &Artefact) -> PathBuf {
        let beside = || {
            let file = artefact.manifest().model.files.first();
            self.artefact
                .with_file_name(file.map_or("", String::as_str))
        };
        self.model.map_or_else(beside, Path::to_owned)
    }

    /// Opens the artefact's model, if its file exists.
    pub(super) fn model(&self, artefact: &Artefact) -> Result<Option<GgufFile>, Failure> {
        let path = self.model_path(artefact);
        match self.model.is_none() && !path.exists() {
            true => Ok(None),
            false => input::open_whole(&path).map(Some),
        }
    }
}

/// Checks that an artefact, its model, and the devices and topology of the options match; returns the model. A
/// different topology is a warning.
///
/// # Errors
/// Returns TPC0584 without a model, TPC0585, TPC0586, TPC0588 or TPC0592 for a mismatch, and TPC0405 for a bare header.
pub(super) fn bind(
    named: &Named<'_>,
    artefact: &Artefact,
    devices: Option<&TargetDevices>,
    options: &PlacementArgs,
) -> Result<GgufFile, Failure> {
    let told = |m: &Mismatch| {
        let name = named.artefact.display().to_string();
        let model = named.model_path(artefact);
        let other = devices.filter(|_| m.field == "devices");
        let of = (named.artefact, artefact.manifest());
        m.diagnostic(
            name,
            command(of, Some(&model), other, options.topology_path()),
        )
    };
    let refuse = |m: Mismatch| Failure::findings(vec![told(&m)]);
    let found = mismatches(artefact)
        .into_iter()
        .chain(on_devices(artefact, devices))
        .chain(in_memory(artefact, devices));
    if let Some(m) = found.into_iter().next() {
        return Err(refuse(m));
    }
    if let Some(file) = options.topology_bytes()? {
        let other = of_topology(artefact, &file);
        other.iter().for_each(|m| output::diagnostic(&told(m)));
    }
    let Some(file) = named.model(artefact)? else {
        return Err(Failure::usage(not_there(named, artefact)));
    };
    if let Some(m) = of_model(artefact, &file) {
        return Err(refuse(m));
    }
    input::with_data(file, &named.model_path(artefact))
}

fn not_there(named: &Named<'_>, artefact: &Artefact) -> Diagnostic {
    let path = named.model_path(artefact);
    let name = named.artefact.display().to_string();
    let message = format!("model not found at {}", path.display());
    Diagnostic::new(&codes::NO_MODEL, name, message).help("give the model's file: --model PATH")
}

pub(super) fn without_model(named: &Named<'_>, artefact: &Artefact) -> Diagnostic {
    let d = not_there(named, artefact);
    Diagnostic {
        code: &codes::UNCHECKED,
        severity: codes::UNCHECKED.severity,
        ..d
    }
}
