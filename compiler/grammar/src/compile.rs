//! Preparation of a grammar for one answer.

use std::thread;

use llguidance::Matcher;
use llguidance::api::TopLevelGrammar;
use tpc_diag::Diagnostic;

use crate::errors::{refused, too_large};
use crate::limits;
use crate::matcher::GrammarConstraint;
use crate::vocabulary::Vocabulary;

/// Prepares a grammar. The function `place` finds the place of an error from the message.
///
/// A thread with a large stack does the work, because the parsers of llguidance are recursive.
///
/// # Errors
/// Returns TPC0596 if the grammar is invalid, TPC0597 if it needs too much work.
pub(crate) fn compile(
    source: &TopLevelGrammar,
    vocabulary: &Vocabulary,
    place: impl Fn(&str) -> String,
) -> Result<GrammarConstraint, Diagnostic> {
    let made = with_stack(|| {
        let parser = vocabulary.factory().create_parser(source.clone());
        let parser = parser.map_err(|e| format!("{e:#}"))?;
        GrammarConstraint::new(Matcher::new(Ok(parser)))
    });
    match made {
        Ok(Ok(constraint)) => Ok(constraint),
        Ok(Err(message)) => Err(refused(&message, place)),
        Err(message) => Err(too_large(&place(""), &message)),
    }
}

/// Runs a function with a large stack. Panics become errors.
pub(crate) fn with_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let builder = thread::Builder::new()
            .name("grammar".to_owned())
            .stack_size(limits::STACK);
        let started = builder.spawn_scoped(scope, run);
        let thread = started.map_err(|e| format!("the thread for the grammar fails: {e}"))?;
        thread
            .join()
            .map_err(|_| "the grammar is too complex".to_owned())
    })
}
