//! Session files: save and restore a run's tokens and caches.

mod trailer;
mod turns;
mod unread;

use std::io::Write;

use tpc_gguf::GgufFile;
use tpc_runtime::{Checksum, ExecError, Executor, SaveError, Session};
use tpc_text::Message;

use crate::error::Error;
use crate::generate::{Slot, TokenSink};

/// Bytes per tensor that the model's checksum includes, to distinguish models with equal headers.
const SAMPLE: usize = 256;

/// The content of a session file.
#[derive(Debug)]
pub struct SessionFile {
    session: Vec<u8>,
    /// Turns of a conversation; `None` for plain text.
    pub turns: Option<Vec<Message>>,
    /// Tokens at the end of the answer that the caches do not hold.
    pub unread: Vec<u32>,
}

impl SessionFile {
    /// Splits a file into session, turns and unread tokens. [`load`](Self::load) verifies the session.
    pub fn parse(mut bytes: Vec<u8>) -> SessionFile {
        let (rest, unread) = unread::split(&bytes);
        let (session, turns) = turns::split(rest);
        let n = session.len();
        bytes.truncate(n);
        SessionFile {
            session: bytes,
            turns,
            unread,
        }
    }

    /// Loads the file's sequence into a slot.
    ///
    /// # Errors
    /// Returns an error if the file is damaged or belongs to another model. If the file does not have exactly one text
    /// that matches the caches, the session is also cleared.
    pub fn load<E: Executor + ?Sized>(
        &self,
        session: &mut Session<E>,
        slot: &mut Slot<'_, impl TokenSink>,
        model: &GgufFile,
    ) -> Result<(), Error> {
        let texts = session.load(checksum(model), &self.session)?;
        let whole = |tokens: &[u32]| tokens.len() as u64 == session.next_position(slot.seq);
        match <[_; 1]>::try_from(texts) {
            Ok([(seq, tokens)]) if seq == slot.seq && whole(&tokens) => {
                tokens.iter().for_each(|&id| slot.sampler.accept(id));
                slot.read = tokens;
                Ok(())
            }
            _ => {
                session.clear()?;
                Err(Error::from(ExecError::StateFile {
                    what: "the file does not hold exactly one text that matches its caches".into(),
                }))
            }
        }
    }
}

/// Writes a session with one slot, the turns of its conversation, and the tokens that the model has not read.
///
/// # Errors
/// Returns an error if the executor cannot export its states, or writing fails.
pub fn save<E: Executor + ?Sized>(
    session: &Session<E>,
    slot: &Slot<'_, impl TokenSink>,
    (model, turns): (&GgufFile, Option<&[Message]>),
    out: &mut dyn Write,
) -> Result<(), SaveError> {
    let texts = [(slot.seq, slot.read.clone())];
    session.save(checksum(model), &texts, out)?;
    let turns = turns.map_or_else(Vec::new, turns::encode);
    out.write_all(&turns).map_err(SaveError::Io)?;
    let unread = unread::encode(&slot.unread_tokens());
    out.write_all(&unread).map_err(SaveError::Io)
}

/// Checks that the executor can save sessions.
///
/// # Errors
/// Returns an error if the executor cannot export its states.
pub fn check<E: Executor + ?Sized>(session: &Session<E>) -> Result<(), Error> {
    match session.save(0, &[], &mut std::io::sink()) {
        Err(SaveError::Exec(e)) => Err(Error::from(e)),
        // `sink` discards all bytes and never fails.
        Ok(()) | Err(SaveError::Io(_)) => Ok(()),
    }
}

/// Computes a checksum of the header and the first [`SAMPLE`] bytes of each tensor.
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
