//! Grammars in lexemes.

use std::collections::HashMap;

use super::rules::{ExprId, RuleId};

/// A part of a rule, in lexemes.
#[derive(Debug)]
pub(super) enum Part {
    /// The empty text.
    Empty,
    /// A lexeme, but not the empty text.
    Lexeme(usize),
    /// The text of a rule.
    Rule(RuleId),
    /// One part after the other.
    Seq(Vec<Part>),
    /// One of the parts.
    Alt(Vec<Part>),
    /// The part at least `min` times, and at most `max` times.
    Repeat {
        item: Box<Part>,
        min: u32,
        max: Option<u32>,
    },
}

impl Part {
    /// Calls a function for each rule of the part.
    pub(super) fn for_rules(&self, call: &mut dyn FnMut(RuleId)) {
        match self {
            Part::Empty | Part::Lexeme(_) => {}
            Part::Rule(rule) => call(*rule),
            Part::Seq(items) | Part::Alt(items) => {
                items.iter().for_each(|item| item.for_rules(call));
            }
            Part::Repeat { item, .. } => item.for_rules(call),
        }
    }
}

/// A part of a grammar that llguidance's lexer matches.
#[derive(Debug)]
pub(super) struct Lexeme {
    /// The regular expression.
    pub(super) regex: String,
    /// The expressions, which follow each other.
    pub(super) items: Vec<ExprId>,
    /// The expressions to divide if the lexeme is too large.
    pub(super) origins: Vec<ExprId>,
    /// True if the regular expression matches the empty text.
    pub(super) nullable: bool,
}

/// A grammar in lexemes.
#[derive(Debug, Default)]
pub(super) struct Division {
    pub(super) lexemes: Vec<Lexeme>,
    /// The rules that lexemes do not contain.
    pub(super) parts: HashMap<RuleId, Part>,
    /// The rules of `parts`, the root first.
    pub(super) order: Vec<RuleId>,
}
