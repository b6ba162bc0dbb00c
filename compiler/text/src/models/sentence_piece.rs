//! SentencePiece's byte-pair encoding: merges neighbours that form a token, best score first.

use crate::merge::{Merger, NONE};
use crate::vocabulary::Vocabulary;

use super::SPACE;

/// The rule for adding a space before a text, so that the first word is encoded like later words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    Space,
    Nothing,
}

#[derive(Clone, Debug)]
pub(crate) struct SentencePiece {
    prefix: Prefix,
    /// The length of the longest token, in bytes.
    longest: usize,
    /// The token of each byte; used for characters without a token.
    fallback: Box<[u32; 256]>,
    unknown: Option<u32>,
}

/// Returns a rank that decreases with the score. Bits of non-NaN floats sort like the numbers after inverting negative
/// ones.
fn rank(score: f32) -> u32 {
    let bits = score.to_bits();
    let rising = match bits >> 31 {
        0 => bits | 1 << 31,
        _ => !bits,
    };
    !rising
}

impl SentencePiece {
    /// Creates an encoder. `unknown` replaces characters without a token.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        prefix: Prefix,
        unknown: Option<u32>,
    ) -> SentencePiece {
        let mut fallback = Box::new([NONE; 256]);
        for byte in 0..=u8::MAX {
            let plain = || vocabulary.find(std::str::from_utf8(&[byte]).ok()?);
            let id = vocabulary.find_byte(byte).or_else(plain);
            fallback[usize::from(byte)] = id.unwrap_or(NONE);
        }
        SentencePiece {
            prefix,
            longest: vocabulary.longest(),
            fallback,
            unknown,
        }
    }

    pub(crate) fn adds_space(&self) -> bool {
        self.prefix == Prefix::Space
    }

    /// Appends a text's ids, after a space at the start of a text or after a special token.
    pub(crate) fn encode(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        prefixed: bool,
        out: &mut Vec<u32>,
    ) {
        let mut escaped = match prefixed && self.prefix == Prefix::Space {
            true => SPACE.to_owned(),
            false => String::new(),
        };
        escaped.push_str(&text.replace(' ', SPACE));
        let text = escaped.as_str();
        let mut merger = Merger::default();
        merger.clear();
        for (i, c) in text.char_indices() {
            let end = i + c.len_utf8();
            merger.push(end, vocabulary.find(&text[i..end]).unwrap_or(NONE));
        }
        merger.run(|left, right| {
            let both = left.range().start..right.range().end;
            if both.len() > self.longest {
                return None;
            }
            let id = vocabulary.find(&text[both])?;
            Some((rank(vocabulary.score(id)), id))
        });
        for symbol in merger.symbols() {
            match symbol.piece {
                NONE => self.bytes(&text[symbol.range()], out),
                id => out.push(id),
            }
        }
    }

    /// Appends the byte tokens of a character, or the unknown token if one is missing.
    fn bytes(&self, character: &str, out: &mut Vec<u32>) {
        let ids = character.bytes().map(|b| self.fallback[usize::from(b)]);
        match ids.clone().all(|id| id != NONE) {
            true => out.extend(ids),
            false => out.extend(self.unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_scores_rank_first() {
        let scores = [
            f32::INFINITY,
            1e9,
            1.0,
            0.0,
            -0.5,
            -1.0,
            -1e9,
            f32::NEG_INFINITY,
        ];
        assert!(scores.windows(2).all(|w| rank(w[0]) < rank(w[1])));
    }
}
