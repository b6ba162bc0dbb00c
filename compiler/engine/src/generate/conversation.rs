use tpc_diag::Diagnostic;

use super::generator::{Generator, PromptOrigin, WhenFull, fits};
use super::sink::TokenSink;
use super::slot::Slot;
use crate::codes::LONG_PROMPT;
use crate::error::Error;

/// The tokens of a chat. The caches may hold only some of them.
#[derive(Debug, Default)]
pub struct Conversation {
    /// All tokens that the model has read, including tokens removed from the caches.
    history: Vec<u32>,
    /// Tokens up to the end of the first message.
    first: Option<usize>,
}

impl Conversation {
    /// Starts a conversation from a slot's tokens.
    pub fn of(slot: &Slot<'_, impl TokenSink>) -> Conversation {
        Conversation {
            history: slot.read.clone(),
            first: None,
        }
    }

    /// Generates the answer to the last message. `ids` are the tokens of all messages.
    ///
    /// # Errors
    /// Returns TPC0426 if the new message does not fit the context; slot and conversation are then unchanged. Also
    /// returns the errors of [`Generator::answer`].
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
        self.history.clear();
        self.history.extend_from_slice(ids);
        slot.prompt = *self.first.get_or_insert(ids.len());
        generator.answer(slot)?;
        let read = slot.answer.len().saturating_sub(slot.unread());
        self.history.extend_from_slice(&slot.answer[..read]);
        Ok(())
    }

    /// Queues the new tokens if the conversation exceeds the context. Generation then shifts the context.
    fn continue_shifted(
        &self,
        generator: &mut Generator<'_>,
        slot: &mut Slot<'_, impl TokenSink>,
        ids: &[u32],
    ) -> Result<(), Error> {
        let common = self
            .history
            .iter()
            .zip(ids)
            .take_while(|(a, b)| a == b)
            .count();
        let (new, removed) = (ids.len() - common, self.history.len() - common);
        let kept = match generator.when_full {
            WhenFull::Shift { keep } => keep.or(self.first).unwrap_or(0),
            WhenFull::End => 0,
        };
        let left = slot.read.len().saturating_sub(removed);
        let fits = new + kept + 2 <= generator.n_ctx && left > kept;
        if !fits || !generator.model.can_truncate(slot.seq, left as u64) {
            let n_ctx = generator.n_ctx;
            let message = format!(
                "the message has {new} new tokens, which do not fit in the context of {n_ctx} after a shift"
            );
            let d = Diagnostic::new(&LONG_PROMPT, "prompt", message);
            return Err(Error::usage(d.help(
                "send a shorter message, begin a new conversation with /clear, or give a larger context with -c N",
            )));
        }
        generator.back_to(slot, left)?;
        slot.pending.extend_from_slice(&ids[common..]);
        Ok(())
    }
}
