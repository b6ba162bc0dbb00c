use std::ops::ControlFlow;

use tpc_text::TokenRecord;

use crate::error::Error;

/// A receiver of an answer's tokens.
pub trait TokenSink {
    /// Receives a token; returns `Break` to end the answer.
    ///
    /// # Errors
    /// Returns an error if the token cannot be decoded or its text cannot be written.
    fn push(&mut self, id: u32) -> Result<ControlFlow<()>, Error>;

    /// Receives a token with its log-probabilities, if the sampler [records](tpc_text::Sampler::record) them.
    ///
    /// # Errors
    /// Returns the errors of [`TokenSink::push`].
    fn push_recorded(
        &mut self,
        id: u32,
        _record: Option<TokenRecord>,
    ) -> Result<ControlFlow<()>, Error> {
        self.push(id)
    }
}

impl TokenSink for Vec<u32> {
    fn push(&mut self, id: u32) -> Result<ControlFlow<()>, Error> {
        Vec::push(self, id);
        Ok(ControlFlow::Continue(()))
    }
}
