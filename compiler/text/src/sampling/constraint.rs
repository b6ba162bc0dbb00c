//! Constraints on an answer.

use std::fmt::Debug;

use tpc_diag::Diagnostic;

use super::mask::TokenMask;

/// A rule that each token of an answer must follow, such as a grammar.
pub trait Constraint: Debug + Send {
    /// Bans the tokens that must not come next. The mask may hold more tokens than the tokenizer: logits may be padded.
    ///
    /// # Errors
    /// Returns an error if the constraint cannot decide.
    fn mask(&mut self, allowed: &mut TokenMask) -> Result<(), Diagnostic>;

    /// Appends a token to the answer.
    ///
    /// # Errors
    /// Returns an error if the constraint bans the token.
    fn accept(&mut self, id: u32) -> Result<(), Diagnostic>;
}
