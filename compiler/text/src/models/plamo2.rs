//! PLaMo 2's tokenizer: of all ways to cut a text into tokens the one with the greatest sum of scores, found from its end.
//!
//! As in `tokenization_plamo.py` of the model. Scores count in ten-thousandths, a character without a token
//! as -1,000, and of equally good tokens the longest is taken. A text's byte-order mark is dropped.

use tpc_diag::Diagnostic;
use tpc_gguf::Metadata;

use crate::merge::NONE;
use crate::trie::Trie;
use crate::vocabulary::{TokenKind, Vocabulary, byte_of, unusable};

/// The cost of a character that no token has.
const UNKNOWN: i64 = 10_000_000;

/// Costs from which on a token is not used.
const WORST: i64 = 20_000_000;

/// PLaMo 2's tokenizer by a vocabulary.
#[derive(Clone, Debug)]
pub(crate) struct Plamo2 {
    tokens: Trie,
    /// What each token costs: its score, negated, in ten-thousandths.
    costs: Vec<i64>,
    bytes: Box<[u32; 256]>,
}

impl Plamo2 {
    /// The tokenizer of a file.
    ///
    /// # Errors
    /// A byte without a token.
    pub(crate) fn read(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<Plamo2, Diagnostic> {
        let mut tokens = Trie::default();
        let mut costs = Vec::with_capacity(vocabulary.len());
        let mut bytes = Box::new([NONE; 256]);
        for id in vocabulary.ids() {
            let (text, score) = (vocabulary.text(id), f64::from(vocabulary.score(id)));
            // A cast of what is out of range gives the bound, and so a token that is not used.
            costs.push(-((score * 1e4).round() as i64));
            match vocabulary.kind(id) {
                TokenKind::Byte => {
                    if let Some(byte) = byte_of(text) {
                        bytes[usize::from(byte)] = id;
                    }
                }
                _ if score.is_finite() => tokens.insert(text.as_bytes(), id),
                _ => {}
            }
        }
        if let Some(byte) = bytes.iter().position(|&id| id == NONE) {
            return Err(unusable(
                metadata,
                format!("no token is the byte <0x{byte:02X}>"),
            ));
        }
        Ok(Plamo2 {
            tokens,
            costs,
            bytes,
        })
    }

    /// Appends the ids of a text.
    pub(crate) fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Of each byte that begins a character: the cost from there to the end, the token, and its length.
        let mut best = vec![(0i64, NONE, 0usize); text.len() + 1];
        for (at, c) in text.char_indices().rev() {
            let end = at + c.len_utf8();
            let mut chosen = (best[end].0.saturating_add(UNKNOWN), NONE, c.len_utf8());
            for (length, id) in self.tokens.prefixes(&text.as_bytes()[at..]) {
                let own = self.costs[id as usize];
                let cost = best[at + length].0.saturating_add(own);
                // The longest comes last, and the unknown character counts as the shortest.
                if own < WORST && cost <= chosen.0 {
                    chosen = (cost, id, length);
                }
            }
            best[at] = chosen;
        }
        let mut at = 0;
        while at < text.len() {
            let (_, id, length) = best[at];
            match id {
                NONE => out.extend(
                    text.as_bytes()[at..at + length]
                        .iter()
                        .map(|&b| self.bytes[usize::from(b)]),
                ),
                id => out.push(id),
            }
            at += length;
        }
    }
}
