//! BERT's WordPiece: cleans a text and splits it into words, then repeatedly takes the longest token at the start of
//! the rest.
//!
//! This follows `BertNormalizer` and `BertPreTokenizer` of Hugging Face's tokenizers. In GGUF files, tokens that begin
//! a word start with `▁`; tokens inside a word do not.

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use super::SPACE;
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cleaning {
    pub(crate) lowercase: bool,
    pub(crate) strip_accents: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct WordPiece {
    cleaning: Cleaning,
    tokens: Trie,
    unknown: Option<u32>,
    /// Control characters, which are dropped.
    control: Regex,
    /// Accents (nonspacing marks), which are dropped.
    accents: Regex,
    words: Regex,
}

/// Matches a Han character, a punctuation mark, or a run of other characters. The ranges are from Hugging Face's
/// `is_chinese_char`.
const WORDS: &str = concat!(
    r"[\p{P}$+<=>^`|~\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}",
    r"\u{2b920}-\u{2ceaf}\u{f900}-\u{faff}\u{2f800}-\u{2fa1f}]",
    r"|[^\s\p{P}$+<=>^`|~\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}",
    r"\u{2b920}-\u{2ceaf}\u{f900}-\u{faff}\u{2f800}-\u{2fa1f}]+"
);

impl WordPiece {
    /// Creates an encoder. `unknown` replaces words that cannot be split into tokens.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        cleaning: Cleaning,
        unknown: Option<u32>,
    ) -> WordPiece {
        let regex = |pattern| Regex::new(pattern).expect("invariant: a constant expression");
        let mut tokens = Trie::default();
        for id in vocabulary.ids() {
            tokens.insert(vocabulary.text(id).as_bytes(), id);
        }
        WordPiece {
            cleaning,
            tokens,
            unknown,
            control: regex(r"[\p{C}\u{fffd}&&[^\t\n\r\p{White_Space}]]+"),
            accents: regex(r"\p{Mn}+"),
            words: regex(WORDS),
        }
    }

    fn clean(&self, text: &str) -> String {
        let mut out = self.control.replace_all(text, "").into_owned();
        if self.cleaning.strip_accents {
            let apart: String = out.nfd().collect();
            out = self.accents.replace_all(&apart, "").into_owned();
        }
        match self.cleaning.lowercase {
            true => out.chars().flat_map(char::to_lowercase).collect(),
            false => out,
        }
    }

    pub(crate) fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let text = self.clean(text);
        let mut word = String::new();
        for found in self.words.find_iter(&text) {
            word.clear();
            word.extend([SPACE, found.as_str()]);
            let before = out.len();
            let mut rest = word.as_bytes();
            while let Some((length, id)) = self.tokens.prefixes(rest).last() {
                out.push(id);
                rest = &rest[length..];
            }
            if !rest.is_empty() {
                out.truncate(before);
                out.extend(self.unknown);
            }
        }
    }
}
