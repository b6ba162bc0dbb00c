//! Limits on untrusted grammars.

use llguidance::api::ParserLimits;

/// The maximum length of a schema or grammar, in bytes.
pub(crate) const LONGEST: usize = 128 << 10;

/// The maximum nesting of a JSON schema, or of brackets in a grammar.
pub(crate) const DEEPEST: usize = 64;

/// The maximum number of entries of an object in a JSON schema, such as `properties`.
pub(crate) const WIDEST: usize = 1_000;

/// The maximum number of repetitions in one bound, such as `maxItems`, `minLength` or `{m,n}`.
pub(crate) const MOST_REPEATED: f64 = 10_000.0;

/// The largest bound of a number, 2^63: llguidance computes with 64-bit integers.
pub(crate) const LARGEST: f64 = 9_223_372_036_854_775_808.0;

/// The stack of the thread that prepares a grammar, in bytes. The system commits only the used part.
pub(crate) const STACK: usize = 128 << 20;

/// Returns the limits of the parser. A token takes a few milliseconds at most.
pub(crate) fn parser() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2_000,
        initial_lexer_fuel: 500_000,
        step_lexer_fuel: 200_000,
        step_max_items: 100_000,
        max_lexer_states: 50_000,
        max_grammar_size: 200_000,
        // Precomputation pays only over many answers.
        precompute_large_lexemes: false,
        // Long errors hold the answer, which is private.
        verbose_errors: false,
    }
}
