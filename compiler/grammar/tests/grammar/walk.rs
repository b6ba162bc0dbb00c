//! Random answers that follow a grammar.

use tpc_grammar::Grammar;
use tpc_text::{Constraint, Show, Start, TokenMask};

use super::vocabularies::Model;

/// The number of tokens after which a walk closes strings, arrays and objects.
const WANDERING: usize = 120;

/// The maximum number of tokens of an answer.
const LONGEST: usize = 3_000;

/// A small generator of random numbers (Marsaglia's xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// Returns a random answer: its tokens and its text. The walk ends at the first end token.
pub(crate) fn walk(grammar: &Grammar, model: &Model, seed: u64) -> (Vec<u32>, String) {
    let mut constraint = grammar.constraint(&model.vocabulary).unwrap();
    let mut random = Random::new(seed);
    let mut ids = Vec::new();
    while ids.len() < LONGEST {
        let mut mask = TokenMask::all(model.tokenizer.len());
        constraint.mask(&mut mask).unwrap();
        let id = choose(model, &mask, &mut random, ids.len());
        constraint.accept(id).unwrap();
        if model.tokenizer.ends_generation(id) {
            let text = model
                .tokenizer
                .decode(&ids, Start::Continuation, Show::Text);
            return (ids, text.unwrap());
        }
        ids.push(id);
    }
    let text = model
        .tokenizer
        .decode(&ids, Start::Continuation, Show::Text);
    panic!("{}: the answer does not end: {text:?}", model.name);
}

/// Chooses an allowed token. Long answers prefer tokens that close strings, arrays and objects.
fn choose(model: &Model, mask: &TokenMask, random: &mut Random, n: usize) -> u32 {
    let allowed: Vec<u32> = (0..mask.len() as u32)
        .filter(|&id| mask.allows(id))
        .collect();
    let ends = |id: &u32| model.tokenizer.ends_generation(*id);
    let end = allowed.iter().copied().find(ends);
    let wandering = n < WANDERING;
    if let Some(end) = end.filter(|_| !wandering || random.below(4) == 0) {
        return end;
    }
    let first = |id: u32| {
        let mut bytes = Vec::new();
        model.tokenizer.piece(id, &mut bytes).unwrap();
        bytes.first().copied()
    };
    let closing = |rank: &[u8]| -> Vec<u32> {
        let fits = |id: &u32| first(*id).is_some_and(|b| rank.contains(&b));
        allowed
            .iter()
            .copied()
            .filter(|id| !ends(id))
            .filter(fits)
            .collect()
    };
    let ranks: [&[u8]; 3] = [b"\"", b"]}", b",:"];
    let preferred = ranks.iter().map(|r| closing(r)).find(|c| !c.is_empty());
    let pool = match preferred {
        Some(pool) if !wandering || random.below(4) == 0 => pool,
        _ => allowed,
    };
    assert!(!pool.is_empty(), "{}: no token is allowed", model.name);
    pool[random.below(pool.len())]
}

/// Feeds a text token by token; returns true if the grammar permits it and may end there.
pub(crate) fn permits(grammar: &Grammar, model: &Model, text: &str) -> bool {
    let mut constraint = grammar.constraint(&model.vocabulary).unwrap();
    let ids = tokens(model, text);
    let end = (0..model.tokenizer.len() as u32).find(|&id| model.tokenizer.ends_generation(id));
    ids.into_iter()
        .chain(end)
        .all(|id| step(&mut *constraint, model, id))
}

fn step(constraint: &mut dyn Constraint, model: &Model, id: u32) -> bool {
    let mut mask = TokenMask::all(model.tokenizer.len());
    constraint.mask(&mut mask).unwrap();
    let allowed = mask.allows(id);
    if allowed {
        constraint.accept(id).unwrap();
    }
    allowed
}

/// Returns the tokens of a text within a longer one: no space precedes it.
fn tokens(model: &Model, text: &str) -> Vec<u32> {
    use tpc_text::{Markers, SpecialText};
    let ids = model
        .tokenizer
        .encode(text, SpecialText::Plain, Markers::Omit);
    let found = model
        .tokenizer
        .decode(&ids, Start::Continuation, Show::Text);
    if found.unwrap() == text {
        return ids;
    }
    // The tokenizer adds a space, so take single bytes.
    let byte = |b: u8| model.tokenizer.find(&format!("<0x{b:02X}>"));
    text.bytes().map(|b| byte(b).unwrap()).collect()
}
