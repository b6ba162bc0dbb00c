//! SentencePiece's unigram model: maximises the sum of the tokens' scores (Kudo 2018) with the Viterbi algorithm.

use tpc_diag::Diagnostic;
use tpc_gguf::Metadata;

use super::SPACE;
use super::charsmap::CharsMap;
use crate::trie::Trie;
use crate::vocabulary::{TokenKind, Vocabulary};

/// The unknown token scores this much below the worst score (SentencePiece's `kUnkPenalty`).
const UNKNOWN_PENALTY: f64 = 10.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spacing {
    pub(crate) prefix: bool,
    /// True if runs of spaces are merged, and removed at both ends.
    pub(crate) merge: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Unigram {
    charsmap: CharsMap,
    spacing: Spacing,
    tokens: Trie,
    /// Each token's score. User-defined tokens score 0, the maximum.
    scores: Vec<f64>,
    unknown: u32,
    unknown_score: f64,
}

/// The best split of a prefix of the text.
#[derive(Clone, Copy, Debug)]
struct Best {
    id: u32,
    start: usize,
    score: f64,
}

fn length(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

impl Unigram {
    pub(crate) fn read(
        metadata: &Metadata,
        vocabulary: &Vocabulary,
        spacing: Spacing,
        unknown: u32,
    ) -> Result<Unigram, Diagnostic> {
        let mut tokens = Trie::default();
        let (mut scores, mut worst) = (Vec::with_capacity(vocabulary.len()), f32::MAX);
        for id in vocabulary.ids() {
            let (kind, score) = (vocabulary.kind(id), vocabulary.score(id));
            if kind == TokenKind::Normal {
                worst = worst.min(score);
            }
            scores.push(match kind {
                TokenKind::UserDefined => 0.0,
                _ => f64::from(score),
            });
            if matches!(
                kind,
                TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused
            ) {
                tokens.insert(vocabulary.text(id).as_bytes(), id);
            }
        }
        Ok(Unigram {
            charsmap: CharsMap::read(metadata)?,
            spacing,
            tokens,
            scores,
            unknown,
            unknown_score: f64::from(worst) - UNKNOWN_PENALTY,
        })
    }

    pub(crate) fn adds_space(&self) -> bool {
        self.spacing.prefix
    }

    /// Returns the text after replacing characters and spaces as the vocabulary specifies.
    fn normalise(&self, text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + SPACE.len());
        let (mut prefixed, mut in_word) = (false, false);
        self.charsmap.each(text, |byte| {
            if byte != b' ' {
                if !in_word && (self.spacing.merge || self.spacing.prefix && !prefixed) {
                    out.extend_from_slice(SPACE.as_bytes());
                    prefixed = true;
                }
                in_word = true;
                out.push(byte);
            } else {
                in_word = false;
                if !self.spacing.merge {
                    out.extend_from_slice(SPACE.as_bytes());
                }
            }
        });
        out
    }

    /// Appends a text's ids. Adjacent characters without a token become one unknown token.
    pub(crate) fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let text = self.normalise(text);
        let none = Best {
            id: self.unknown,
            start: 0,
            score: f64::NEG_INFINITY,
        };
        let mut best = vec![none; text.len() + 1];
        best[0].score = 0.0;
        let mut at = 0;
        while at < text.len() {
            let so_far = best[at].score;
            let character = length(text[at]).min(text.len() - at);
            let mut known = false;
            let mut offer = |end: usize, id: u32, score: f64| {
                if score > best[end].score {
                    best[end] = Best {
                        id,
                        start: at,
                        score,
                    };
                }
            };
            for (length, id) in self.tokens.prefixes(&text[at..]) {
                known |= length == character;
                offer(at + length, id, so_far + self.scores[id as usize]);
            }
            if !known {
                offer(at + character, self.unknown, so_far + self.unknown_score);
            }
            at += character;
        }
        let from = out.len();
        let mut end = text.len();
        let mut last = None;
        while end > 0 {
            let Best { id, start, .. } = best[end];
            if id != self.unknown || last != Some(id) {
                out.push(id);
            }
            last = Some(id);
            end = start;
        }
        out[from..].reverse();
    }
}
