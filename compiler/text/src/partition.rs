//! Special tokens that are written in a text.

use std::ops::Range;

use super::trie::Trie;
use super::vocabulary::{TokenKind, Vocabulary};

/// Whether control tokens that are written in a text, such as `<|im_end|>`, are read as these tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialText {
    /// They are: the text is a prompt that a template made.
    Read,
    /// They are text as any other: the text is a user's.
    Plain,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    /// Bytes of the text, to be cut on.
    Text(Range<usize>),
    /// A token.
    Token(u32),
}

/// A special token, and the white space that it takes in.
#[derive(Clone, Copy, Debug)]
struct Special {
    id: u32,
    /// Whether only a caller who wants special tokens read finds it.
    hidden: bool,
    /// White space before it is dropped.
    strips_left: bool,
    /// White space after it is dropped.
    strips_right: bool,
}

/// The special tokens of a vocabulary, the longest first; of equally long ones the first.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    specials: Vec<Special>,
    /// The place of each in `specials`.
    trie: Trie,
}

/// Which special tokens drop white space around them, by names in the file, which has no key for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strips {
    /// None does.
    Nothing,
    /// The token of this text drops what is before it.
    Left(&'static str),
    /// Of Phi-3: all drop what is after them, but a few.
    Phi3,
}

impl Strips {
    /// What the names say: of the model in lower case, the pre-tokenizer and the architecture.
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

/// White space of C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

impl Partition {
    /// The special tokens of a vocabulary.
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

    /// Cuts a text at its special tokens. Longer tokens are found before shorter ones, wherever they are.
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
        // Most of thousands of special tokens are not in the text; each of the others is looked for by itself.
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
    /// Cuts a part of a text wherever this token is.
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
