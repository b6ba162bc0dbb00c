//! PLaMo 2's tokenizer: maximises the sum of the tokens' scores, searching from the end of the text.
//!
//! This follows the model's `tokenization_plamo.py`. Scores are in units of 1/10,000. A character without a token
//! scores -1,000. Among splits with equal scores, the longest token wins. A leading byte-order mark is dropped.

use tpc_diag::Diagnostic;
use tpc_gguf::Metadata;

use crate::merge::NONE;
use crate::trie::Trie;
use crate::vocabulary::{TokenKind, Vocabulary, byte_of, unusable};

const UNKNOWN: i64 = 10_000_000;

/// Tokens with at least this cost are unused.
const WORST: i64 = 20_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Plamo2 {
    tokens: Trie,
    /// Each token's negated score, in units of 1/10,000.
    costs: Vec<i64>,
    bytes: Box<[u32; 256]>,
}

impl Plamo2 {
    pub(crate) fn read(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<Plamo2, Diagnostic> {
        let mut tokens = Trie::default();
        let mut costs = Vec::with_capacity(vocabulary.len());
        let mut bytes = Box::new([NONE; 256]);
        for id in vocabulary.ids() {
            let (text, score) = (vocabulary.text(id), f64::from(vocabulary.score(id)));
            // The cast saturates: a score out of range gives an unused token.
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
                format!("the byte <0x{byte:02X}> lacks a token"),
            ));
        }
        Ok(Plamo2 {
            tokens,
            costs,
            bytes,
        })
    }

    pub(crate) fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // For each character start: the cost to the end of the text, the token, and its length.
        let mut best = vec![(0i64, NONE, 0usize); text.len() + 1];
        for (at, c) in text.char_indices().rev() {
            let end = at + c.len_utf8();
            let mut chosen = (best[end].0.saturating_add(UNKNOWN), NONE, c.len_utf8());
            for (length, id) in self.tokens.prefixes(&text.as_bytes()[at..]) {
                let own = self.costs[id as usize];
                let cost = best[at + length].0.saturating_add(own);
                // The longest token comes last. The unknown token counts as the shortest.
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
