//! The receiver of an answer's tokens.

use std::ops::ControlFlow;

use crate::error::Error;

/// Receives the tokens of an answer, one after the other.
pub trait TokenSink {
    /// Receives a token. `Break` ends the answer: nobody reads it any more.
    ///
    /// # Errors
    /// Returns an error if the token has no text, or the text cannot be written.
    fn push(&mut self, id: u32) -> Result<ControlFlow<()>, Error>;
}

/// Tokens are kept as they are.
impl TokenSink for Vec<u32> {
    fn push(&mut self, id: u32) -> Result<ControlFlow<()>, Error> {
        Vec::push(self, id);
        Ok(ControlFlow::Continue(()))
    }
}
