//! A chat in a slot, also beyond the context.

use tpc_diag::Diagnostic;

use super::generator::{Generator, PromptOrigin, WhenFull, fits};
use super::sink::TokenSink;
use super::slot::Slot;
use crate::codes::LONG_PROMPT;
use crate::error::Error;

/// The tokens of a chat, of which the caches may have forgotten the older half.
#[derive(Debug, Default)]
pub struct Conversation {
    /// All tokens that were read, those that are forgotten too.
    said: Vec<u32>,
    /// The tokens of the first message, with all before it.
    first: Option<usize>,
}

impl Conversation {
    /// That of a slot that has read something.
    pub fn of(slot: &Slot<'_, impl TokenSink>) -> Conversation {
        Conversation {
            said: slot.read.clone(),
            first: None,
        }
    }

    /// Generates the answer to the last of all messages, whose tokens these are.
    ///
    /// # Errors
    /// TPC0426 for a message that the context cannot take, with nothing changed; and those of the model.
    pub fn answer(
        &mut self,
        generator: &mut Generator<'_>,
        slot: &mut Slot<'_, impl TokenSink>,
        ids: &[u32],
    ) -> Result<(), Error> {
        if ids.len() <= generator.n_ctx {
            generator.rewind(slot, ids)?;
        } else if generator.when_full == WhenFull::End {
            return fits(ids.len(), generator.n_ctx, PromptOrigin::Chat);
        } else {
            self.continue_shifted(generator, slot, ids)?;
        }
        self.said.clear();
        self.said.extend_from_slice(ids);
        slot.prompt = *self.first.get_or_insert(ids.len());
        generator.answer(slot)?;
        let read = slot.answer.len().saturating_sub(slot.unread());
        self.said.extend_from_slice(&slot.answer[..read]);
        Ok(())
    }

    /// Lets a slot read what is new of a conversation that is longer than the context.
    fn continue_shifted(
        &self,
        generator: &mut Generator<'_>,
        slot: &mut Slot<'_, impl TokenSink>,
        ids: &[u32],
    ) -> Result<(), Error> {
        let alike = self
            .said
            .iter()
            .zip(ids)
            .take_while(|(a, b)| a == b)
            .count();
        let (new, gone) = (ids.len() - alike, self.said.len() - alike);
        let kept = match generator.when_full {
            WhenFull::Shift { keep } => keep.or(self.first).unwrap_or(0),
            WhenFull::End => 0,
        };
        let left = slot.read.len().saturating_sub(gone);
        let fits = new + kept + 2 <= generator.n_ctx && left > kept;
        if !fits || !generator.model.can_truncate(slot.seq, left as u64) {
            let n_ctx = generator.n_ctx;
            let message = format!(
                "the message has {new} tokens that are new, and a context of {n_ctx} cannot take them after a shift"
            );
            let d = Diagnostic::new(&LONG_PROMPT, "prompt", message);
            return Err(Error::usage(d.help(
                "a shorter message; /clear begins a new conversation; or a larger context, -c N",
            )));
        }
        generator.back_to(slot, left)?;
        slot.pending.extend_from_slice(&ids[alike..]);
        Ok(())
    }
}
