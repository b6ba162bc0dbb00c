//! Sessions in files: what a run has read is kept for a later one.

mod turns;

use std::io::Write;

use tpc_gguf::GgufFile;
use tpc_runtime::{Checksum, ExecError, Executor, SaveError, Session};
use tpc_text::Message;

use crate::error::Error;
use crate::generate::{Slot, TokenSink};

/// The bytes of each tensor that tell models with equal headers apart.
const SAMPLE: usize = 256;

/// The content of a file.
#[derive(Debug)]
pub struct SessionFile {
    session: Vec<u8>,
    /// The turns of the conversation that goes on; `None` for a text that was continued as it is.
    pub turns: Option<Vec<Message>>,
}

impl SessionFile {
    /// Separates the session from the turns. Nothing is verified yet: [`load`](Self::load) does.
    pub fn parse(mut bytes: Vec<u8>) -> SessionFile {
        let (session, turns) = turns::read(&bytes);
        let n = session.len();
        bytes.truncate(n);
        SessionFile {
            session: bytes,
            turns,
        }
    }

    /// Loads the session into the only slot.
    ///
    /// # Errors
    /// Returns an error if the file is of another model, is damaged, or has more than one text. The session is empty then.
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
                    what: "it has not one text, or another one than its caches".into(),
                }))
            }
        }
    }
}

/// Writes the only slot of a session, and the turns of its conversation.
///
/// # Errors
/// Returns an error if the session keeps no states, or the writer fails.
pub fn save<E: Executor + ?Sized>(
    session: &Session<E>,
    slot: &Slot<'_, impl TokenSink>,
    (model, turns): (&GgufFile, Option<&[Message]>),
    out: &mut dyn Write,
) -> Result<(), SaveError> {
    let texts = [(slot.seq, slot.read.clone())];
    session.save(checksum(model), &texts, out)?;
    let turns = turns.map_or_else(Vec::new, turns::written);
    out.write_all(&turns).map_err(SaveError::Io)
}

/// Checks that a session can be saved, before there is something to save.
///
/// # Errors
/// Returns the executor's error if it keeps no states.
pub fn check<E: Executor + ?Sized>(session: &Session<E>) -> Result<(), Error> {
    match session.save(0, &[], &mut std::io::sink()) {
        Err(SaveError::Exec(e)) => Err(Error::from(e)),
        // Nothing is written.
        Ok(()) | Err(SaveError::Io(_)) => Ok(()),
    }
}

/// Computes a checksum of a model's header and of the begin of each tensor.
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
