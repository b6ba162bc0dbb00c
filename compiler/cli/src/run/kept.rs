//! Sessions in files: what a run has read is kept for a later one.

use std::io;
use std::path::{Path, PathBuf};

use tpc_gguf::GgufFile;
use tpc_runtime::{Checksum, ExecError, SaveError};

use super::lane::Lane;
use crate::engine::{Model, execution_failure};
use crate::input;
use crate::output::{self, Failure};

/// The largest file that is read.
const LARGEST: u64 = 1 << 40;

/// The bytes of each tensor that tell models with equal headers apart.
const SAMPLE: usize = 256;

/// The files of the command line.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Session")]
pub(super) struct KeptArgs {
    /// Begin with what a run has saved there: of the prompt, what was read then is not read again.
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Save what was read and generated there, when the last answer has ended.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Both: load it, where there is such a file, and save it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load", "save"])]
    prompt_cache: Option<PathBuf>,
}

impl KeptArgs {
    /// Whether there are any.
    pub(super) fn is_asked(&self) -> bool {
        self.load.is_some() || self.save.is_some() || self.prompt_cache.is_some()
    }

    /// Fails where nothing can be saved, before there is something to save.
    ///
    /// # Errors
    /// Those of [`Model::save`].
    pub(super) fn check(&self, model: &dyn Model) -> Result<(), Failure> {
        if !self.is_asked() {
            return Ok(());
        }
        match model.save(0, &[], &mut io::sink()) {
            Err(SaveError::Exec(e)) => Err(execution_failure(&e)),
            // Nothing is written.
            Ok(()) | Err(SaveError::Io(_)) => Ok(()),
        }
    }

    /// Loads what was saved into the only sequence.
    ///
    /// # Errors
    /// A file that cannot be read, and those of [`Model::load`].
    pub(super) fn load(
        &self,
        model: &mut dyn Model,
        lane: &mut Lane<'_>,
        file: &GgufFile,
    ) -> Result<(), Failure> {
        let cached = self.prompt_cache.as_ref().filter(|p| p.exists());
        let Some(path) = self.load.as_ref().or(cached) else {
            return Ok(());
        };
        let bytes = input::read_file(path, LARGEST)?;
        let texts = model.load(checksum(file), &bytes);
        let texts = texts.map_err(|e| execution_failure(&e))?;
        let whole = |tokens: &[u32]| tokens.len() as u64 == model.next_position(lane.seq);
        match <[_; 1]>::try_from(texts) {
            Ok([(seq, tokens)]) if seq == lane.seq && whole(&tokens) => {
                tokens.iter().for_each(|&id| lane.sampler.accept(id));
                lane.read = tokens;
                Ok(())
            }
            _ => {
                model.clear();
                Err(execution_failure(&ExecError::StateFile {
                    what: "it has not one text, or another one than its caches".into(),
                }))
            }
        }
    }

    /// Saves the only sequence.
    ///
    /// # Errors
    /// A file that cannot be written, and those of [`Model::save`].
    pub(super) fn save(
        &self,
        model: &dyn Model,
        lane: &Lane<'_>,
        file: &GgufFile,
    ) -> Result<(), Failure> {
        match self.save.as_ref().or(self.prompt_cache.as_ref()) {
            Some(path) => write(path, model, lane, file),
            None => Ok(()),
        }
    }
}

fn write(path: &Path, model: &dyn Model, lane: &Lane<'_>, file: &GgufFile) -> Result<(), Failure> {
    let texts = [(lane.seq, lane.read.clone())];
    let mut refused = None;
    let written = output::replace_by(
        path,
        &mut |out| match model.save(checksum(file), &texts, out) {
            Ok(()) => Ok(()),
            Err(SaveError::Io(e)) => Err(e),
            Err(SaveError::Exec(e)) => {
                refused = Some(e);
                Err(io::Error::other("the session cannot be saved"))
            }
        },
    );
    match refused {
        Some(e) => Err(execution_failure(&e)),
        None => written.map_err(|e| Failure::file(path, &e)),
    }
}

/// A checksum of the model: of its header, and of the begin of each tensor.
fn checksum(file: &GgufFile) -> u64 {
    let mut sum = Checksum::default();
    let header = file.header();
    for entry in header.metadata().entries() {
        sum.update(entry.key.as_bytes());
    }
    for t in header.tensors() {
        sum.update(t.name.as_bytes());
        sum.update(t.dtype.to_string().as_bytes());
        t.ne.iter().for_each(|n| sum.update(&n.to_le_bytes()));
        if let Some(data) = file.tensor_data(t) {
            sum.update(&data[..data.len().min(SAMPLE)]);
        }
    }
    sum.value()
}
