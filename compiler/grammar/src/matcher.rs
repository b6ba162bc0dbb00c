//! A grammar's constraint on one answer.

use std::fmt;

use llguidance::Matcher;
use llguidance::toktrie::SimpleVob;
use tpc_diag::Diagnostic;
use tpc_text::{Constraint, TokenMask};

use crate::codes;
use crate::errors::first_line;

/// A grammar with the part of the answer that it has read.
pub(crate) struct GrammarConstraint {
    matcher: Matcher,
    /// The first mask, until the first token.
    first: Option<SimpleVob>,
    /// The number of tokens read.
    tokens: usize,
}

impl fmt::Debug for GrammarConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarConstraint")
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

impl GrammarConstraint {
    /// Creates the constraint of an empty answer.
    ///
    /// # Errors
    /// Returns an error if the grammar permits no answer, or needs too much work for the first token.
    pub(crate) fn new(mut matcher: Matcher) -> Result<GrammarConstraint, String> {
        let first = matcher
            .compute_mask_or_eos()
            .map_err(|e| format!("{e:#}"))?;
        Ok(GrammarConstraint {
            matcher,
            first: Some(first),
            tokens: 0,
        })
    }

    fn failed(&self, why: &str) -> Diagnostic {
        let message = format!("the grammar fails after {} tokens: {why}", self.tokens);
        Diagnostic::new(&codes::FAILED, "grammar", message)
            .help("simplify the grammar: avoid ambiguous rules and large bounds")
    }
}

impl Constraint for GrammarConstraint {
    fn mask(&mut self, allowed: &mut TokenMask) -> Result<(), Diagnostic> {
        if let Some(first) = &self.first {
            allowed.intersect(first.as_slice());
            return Ok(());
        }
        match self.matcher.compute_mask_or_eos() {
            Ok(mask) => allowed.intersect(mask.as_slice()),
            Err(e) => return Err(self.failed(&first_line(&e.to_string()))),
        }
        Ok(())
    }

    fn accept(&mut self, id: u32) -> Result<(), Diagnostic> {
        self.first = None;
        if self.matcher.is_stopped() && !self.matcher.is_error() {
            // The end token after a complete answer.
            return Ok(());
        }
        match self.matcher.try_consume_tokens(&[id]) {
            Ok(1) => {
                self.tokens += 1;
                Ok(())
            }
            Ok(_) => Err(self.failed(&format!("token {id} does not fit"))),
            Err(e) => Err(self.failed(&first_line(&e.to_string()))),
        }
    }
}
