//! Finds special tokens in a text.

use std::ops::Range;

use super::trie::Trie;
use super::vocabulary::{TokenKind, Vocabulary};

/// The handling of control tokens in a text, such as `<|im_end|>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialText {
    /// Control tokens are recognised: the text is a prompt from a template.
    Read,
    /// Control tokens are ordinary text: the text comes from a user.
    Plain,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    /// Text to split further, as a byte range.
    Text(Range<usize>),
    Token(u32),
}

/// A special token, which may absorb white space on either side.
#[derive(Clone, Copy, Debug)]
struct Special {
    id: u32,
    /// True if the token is found only with [`SpecialText::Read`].
    hidden: bool,
    strips_left: bool,
    strips_right: bool,
}

/// A vocabulary's special tokens, longest first; tokens of equal length in file order.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    specials: Vec<Special>,
    /// The index of each token in `specials`.
    trie: Trie,
}

/// The rule for tokens that absorb white space. Files have no key for this; tpc decides by names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strips {
    Nothing,
    /// The token with this text absorbs white space before it.
    Left(&'static str),
    /// Phi-3: all but three tokens absorb white space after them.
    Phi3,
}

impl Strips {
    /// Returns the rule for a lower-case model name, a pre-tokenizer and an architecture.
    pub(crate) fn of_names(model: &str, pre: &str, architecture: &str) -> Strips {
        let jina = ["jina-v2-de", "jina-v2-es", "jina-v2-code"];
        let bert = ["nomic-bert-moe", "jina-bert-v3"];
        if jina.iter().any(|n| pre.contains(n)) || bert.iter().any(|n| architecture.contains(n)) {
            Strips::Left("<mask>")
        } else if model.contains("phi-3") || model.contains("phi3") {
            Strips::Phi3
        } else if model.contains("modern-bert") {
            Strips::Left("[MASK]")
        } else {
            Strips::Nothing
        }
    }

    fn left(self, text: &str) -> bool {
        matches!(self, Strips::Left(t) if t == text)
    }

    fn right(self, text: &str) -> bool {
        self == Strips::Phi3 && !["<unk>", "<s>", "<|endoftext|>"].contains(&text)
    }
}

/// True for white space in C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

impl Partition {
    pub(crate) fn new(vocabulary: &Vocabulary, strips: Strips) -> Partition {
        let special = |id: u32| {
            let hidden = match vocabulary.kind(id) {
                TokenKind::Control | TokenKind::Unknown => true,
                TokenKind::UserDefined => false,
                _ => return None,
            };
            let text = vocabulary.text(id);
            Some(Special {
                id,
                hidden,
                strips_left: strips.left(text),
                strips_right: strips.right(text),
            })
        };
        let mut specials: Vec<Special> = vocabulary.ids().filter_map(special).collect();
        specials.sort_by_key(|s| std::cmp::Reverse(vocabulary.text(s.id).len()));
        let mut trie = Trie::default();
        for (place, s) in (0..).zip(&specials) {
            trie.insert(vocabulary.text(s.id).as_bytes(), place);
        }
        Partition { specials, trie }
    }

    /// Splits a text at its special tokens. If tokens overlap, the longer one wins.
    pub(crate) fn cut(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        special: SpecialText,
    ) -> Vec<Fragment> {
        let mut fragments = Vec::new();
        if text.is_empty() {
            return fragments;
        }
        fragments.push(Fragment::Text(0..text.len()));
        // Vocabularies may have thousands of special tokens: first find the tokens that the text contains.
        let bytes = text.as_bytes();
        let mut seen = vec![false; self.specials.len()];
        for at in 0..bytes.len() {
            for (_, place) in self.trie.prefixes(&bytes[at..]) {
                seen[place as usize] = true;
            }
        }
        let present = self.specials.iter().zip(seen).filter(|(_, seen)| *seen);
        for (token, _) in present.filter(|(s, _)| special == SpecialText::Read || !s.hidden) {
            let before = std::mem::take(&mut fragments);
            for fragment in before {
                match fragment {
                    Fragment::Text(range) => token.cut(vocabulary, text, range, &mut fragments),
                    token => fragments.push(token),
                }
            }
        }
        fragments
    }
}

impl Special {
    /// Splits a part of a text at each occurrence of this token.
    fn cut(
        self,
        vocabulary: &Vocabulary,
        text: &str,
        range: Range<usize>,
        out: &mut Vec<Fragment>,
    ) {
        let token = vocabulary.text(self.id);
        let bytes = text.as_bytes();
        let mut from = range.start;
        while let Some(found) = text[from..range.end].find(token) {
            let (mut left, mut right) = (from + found, from + found + token.len());
            while self.strips_left && left > from && is_space(bytes[left - 1]) {
                left -= 1;
            }
            while self.strips_right && right < range.end && is_space(bytes[right]) {
                right += 1;
            }
            if left > from {
                out.push(Fragment::Text(from..left));
            }
            out.push(Fragment::Token(self.id));
            from = right;
        }
        if from < range.end {
            out.push(Fragment::Text(from..range.end));
        }
    }
}
