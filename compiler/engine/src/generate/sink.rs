use std::ops::ControlFlow;

use crate::error::Error;

/// A receiver of an answer's tokens.
pub trait TokenSink {
    /// Receives a token; returns `Break` to end the answer.
    ///
    /// # Errors
    /// Returns an error if the token cannot be decoded or its text cannot be written.
    fn push(&mut self, id: u32) -> Result<ControlFlow<()>, Error>;
}

impl TokenSink for Vec<u32> {
    fn push(&mut self, id: u32) -> Result<ControlFlow<()>, Error> {
        Vec::push(self, id);
        Ok(ControlFlow::Continue(()))
    }
}
