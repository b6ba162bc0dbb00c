//! RWKV's "world" tokenizer: repeatedly takes the longest token that is a prefix of the rest.

use crate::trie::Trie;
use crate::vocabulary::Vocabulary;

#[derive(Clone, Debug)]
pub(crate) struct Rwkv {
    tokens: Trie,
    unknown: Option<u32>,
}

/// Decodes a token with Python's escapes: `\t`, `\n`, `\r`, `\x0a`, and `\` before other characters.
pub(crate) fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let (b'\\', Some((&escaped, after))) = (first, after.split_first()) else {
            out.push(first);
            continue;
        };
        rest = after;
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        out.push(match escaped {
            b't' => b'\t',
            b'n' => b'\n',
            b'r' => b'\r',
            b'x' => match after
                .split_at_checked(2)
                .and_then(|(digits, after)| Some((hex(digits)?, after)))
            {
                Some((byte, after)) => {
                    rest = after;
                    byte
                }
                None => b'x',
            },
            other => other,
        });
    }
    out
}

impl Rwkv {
    pub(crate) fn new(vocabulary: &Vocabulary, unknown: Option<u32>) -> Rwkv {
        let mut tokens = Trie::default();
        for id in vocabulary.ids() {
            tokens.insert(&unescape(vocabulary.text(id)), id);
        }
        Rwkv { tokens, unknown }
    }

    pub(crate) fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let taken = match self.tokens.prefixes(rest).last() {
                Some((length, id)) => {
                    out.push(id);
                    length
                }
                None => {
                    out.extend(self.unknown);
                    1
                }
            };
            rest = &rest[taken..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_python() {
        assert_eq!(unescape(r"a\nb\\\x41\t"), b"a\nb\\A\t");
        assert_eq!(unescape(r"\xff\x0"), b"\xffx0");
        assert_eq!(unescape("\\"), b"\\");
    }
}
