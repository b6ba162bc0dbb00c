//! # Grammars: answers in a given form
//!
//! - A [`Vocabulary`] holds the bytes of a model's tokens. It is built once per model.
//! - A [`Grammar`] is a JSON schema, a regular expression, or a context-free grammar.
//! - [`Grammar::constraint`] gives a [`tpc_text::Constraint`] for one answer, which a [`tpc_text::Sampler`] follows.
//!
//! The crate `llguidance` computes the tokens that may come next. This crate checks its input, bounds its work, and
//! turns its errors into diagnostics.
//!
//! Invariants:
//!
//! - The allowed tokens depend only on the grammar, the vocabulary and the tokens of the answer.
//! - Grammars come from clients and are untrusted: a bad grammar gives a diagnostic within the limits of `limits`.

mod closed;
mod codes;
mod compile;
mod errors;
mod gbnf;
mod grammar;
mod limits;
mod matcher;
mod schema;
mod vocabulary;

pub use codes::CODES;
pub use grammar::Grammar;
pub use schema::prepared;
pub use vocabulary::Vocabulary;
