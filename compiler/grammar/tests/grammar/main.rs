//! Tests of constrained answers: random walks through the allowed tokens, and hostile grammars.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod forms;
mod gbnf;
mod hostile;
mod schemas;
mod vocabularies;
mod walk;
