//! Session files, whose tokens a later run reuses.

use std::io;
use std::path::{Path, PathBuf};

use tpc_engine::AnySession;
use tpc_engine::generate::{Slot, TokenSink};
use tpc_engine::session_file::{self, SessionFile};
use tpc_gguf::GgufFile;
use tpc_runtime::SaveError;
use tpc_text::Message;

use crate::input;
use crate::output::{self, Failure};

const LARGEST: u64 = 1 << 40;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Session")]
pub(super) struct KeptArgs {
    /// Load a saved session and continue it; tokens already in the session are not processed again.
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Save the session after the last answer.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Reuse this file's session up to its first difference from the prompt; save this run's session there.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load", "save"])]
    prompt_cache: Option<PathBuf>,
    /// Do not change the file of --prompt-cache.
    #[arg(long, requires = "prompt_cache")]
    prompt_cache_ro: bool,
}

impl KeptArgs {
    pub(super) fn is_asked(&self) -> bool {
        self.load.is_some() || self.save.is_some() || self.prompt_cache.is_some()
    }

    fn target(&self) -> Option<&Path> {
        let cache = self.prompt_cache.as_ref().filter(|_| !self.prompt_cache_ro);
        self.save.as_ref().or(cache).map(PathBuf::as_path)
    }

    pub(super) const fn goes_on(&self) -> bool {
        self.load.is_some()
    }

    /// Reads the session file, and checks before the model is loaded that the output file is writable.
    pub(super) fn read(&self) -> Result<Option<SessionFile>, Failure> {
        if let Some(path) = self.target() {
            output::try_replace(path).map_err(|e| Failure::file(path, &e))?;
        }
        let cached = self.prompt_cache.as_ref().filter(|p| p.exists());
        let Some(path) = self.load.as_ref().or(cached) else {
            return Ok(None);
        };
        let mut file = SessionFile::parse(input::read_file(path, LARGEST)?);
        // From a prompt cache, use only tokens, not the conversation.
        file.turns = file.turns.filter(|_| self.load.is_some());
        Ok(Some(file))
    }

    /// Checks before generation that the executor can save and load a session.
    pub(super) fn check(&self, session: &AnySession<'_>) -> Result<(), Failure> {
        match self.is_asked() {
            true => Ok(session_file::check(session)?),
            false => Ok(()),
        }
    }

    /// Saves the only slot and its conversation.
    pub(super) fn save(
        &self,
        session: &AnySession<'_>,
        slot: &Slot<'_, impl TokenSink>,
        (file, turns): (&GgufFile, Option<&[Message]>),
    ) -> Result<(), Failure> {
        let Some(path) = self.target() else {
            return Ok(());
        };
        let mut refused = None;
        let written = output::replace_by(path, &mut |out| match session_file::save(
            session,
            slot,
            (file, turns),
            out,
        ) {
            Ok(()) => Ok(()),
            Err(SaveError::Io(e)) => Err(e),
            Err(SaveError::Exec(e)) => {
                refused = Some(e);
                Err(io::Error::other("the session cannot be saved"))
            }
        });
        match refused {
            Some(e) => Err(Failure::from(e)),
            None => written.map_err(|e| Failure::file(path, &e)),
        }
    }
}
