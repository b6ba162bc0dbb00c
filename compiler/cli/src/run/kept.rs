//! Sessions in files: what a run has read is kept for a later one.

use std::io;
use std::path::{Path, PathBuf};

use tpc_gguf::GgufFile;
use tpc_runtime::{Checksum, ExecError, SaveError};
use tpc_text::Message;

use super::lane::Lane;
use super::turns;
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
    /// What prompts have in common with the text there is not read again; the text of this run is saved there.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load", "save"])]
    prompt_cache: Option<PathBuf>,
    /// Leave the file of --prompt-cache as it is.
    #[arg(long, requires = "prompt_cache")]
    prompt_cache_ro: bool,
}

/// A file that was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    bytes: Option<Vec<u8>>,
    /// The turns of the conversation that goes on.
    turns: Option<Vec<Message>>,
}

impl Read {
    /// The turns that a prompter goes on with.
    pub(super) fn turns(&self) -> &[Message] {
        self.turns.as_deref().unwrap_or_default()
    }
}

impl KeptArgs {
    /// Whether there are any.
    pub(super) fn is_asked(&self) -> bool {
        self.load.is_some() || self.save.is_some() || self.prompt_cache.is_some()
    }

    /// The file that is written at the end.
    fn target(&self) -> Option<&Path> {
        let cache = self.prompt_cache.as_ref().filter(|_| !self.prompt_cache_ro);
        self.save.as_ref().or(cache).map(PathBuf::as_path)
    }

    /// Whether there is a text that goes on.
    pub(super) const fn goes_on(&self) -> bool {
        self.load.is_some()
    }

    /// Reads the file that a run begins with, and tries whether the other can be written: before a model is loaded.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub(super) fn read(&self) -> Result<Read, Failure> {
        if let Some(path) = self.target() {
            output::try_replace(path).map_err(|e| Failure::file(path, &e))?;
        }
        let cached = self.prompt_cache.as_ref().filter(|p| p.exists());
        let Some(path) = self.load.as_ref().or(cached) else {
            return Ok(Read::default());
        };
        let mut bytes = input::read_file(path, LARGEST)?;
        let (session, found) = turns::read(&bytes);
        let n = session.len();
        bytes.truncate(n);
        Ok(Read {
            bytes: Some(bytes),
            // A cache has tokens that need not be read again, and says nothing.
            turns: found.filter(|_| self.load.is_some()),
        })
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
    /// Those of [`Model::load`].
    pub(super) fn load(
        read: &Read,
        model: &mut dyn Model,
        lane: &mut Lane<'_>,
        file: &GgufFile,
    ) -> Result<(), Failure> {
        let Some(bytes) = &read.bytes else {
            return Ok(());
        };
        let texts = model.load(checksum(file), bytes);
        let texts = texts.map_err(|e| execution_failure(&e))?;
        let whole = |tokens: &[u32]| tokens.len() as u64 == model.next_position(lane.seq);
        match <[_; 1]>::try_from(texts) {
            Ok([(seq, tokens)]) if seq == lane.seq && whole(&tokens) => {
                tokens.iter().for_each(|&id| lane.sampler.accept(id));
                lane.read = tokens;
                Ok(())
            }
            _ => {
                model.clear().map_err(|e| execution_failure(&e))?;
                Err(execution_failure(&ExecError::StateFile {
                    what: "it has not one text, or another one than its caches".into(),
                }))
            }
        }
    }

    /// Saves the only sequence, and the turns that it has.
    ///
    /// # Errors
    /// A file that cannot be written, and those of [`Model::save`].
    pub(super) fn save(
        &self,
        model: &dyn Model,
        lane: &Lane<'_>,
        (file, turns): (&GgufFile, Option<&[Message]>),
    ) -> Result<(), Failure> {
        match self.target() {
            Some(path) => write(path, model, lane, (file, turns)),
            None => Ok(()),
        }
    }
}

fn write(
    path: &Path,
    model: &dyn Model,
    lane: &Lane<'_>,
    (file, turns): (&GgufFile, Option<&[Message]>),
) -> Result<(), Failure> {
    let turns = turns.map_or_else(Vec::new, turns::written);
    let texts = [(lane.seq, lane.read.clone())];
    let mut refused = None;
    let written = output::replace_by(
        path,
        &mut |out| match model.save(checksum(file), &texts, out) {
            Ok(()) => out.write_all(&turns),
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
