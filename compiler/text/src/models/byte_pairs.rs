//! Byte-pair encoding: merges neighbours in the order of a list (Sennrich et al. 2016; GPT-2's `encoder.py`).

use std::collections::HashMap;

use tpc_diag::Diagnostic;
use tpc_gguf::Metadata;

use super::SPACE;
use crate::byte_level;
use crate::index::Index;
use crate::merge::{Merger, NONE, Symbol};
use crate::pre::{Bytes, Pre, Splitter};
use crate::vocabulary::{Vocabulary, unusable};

/// The key of the list of merges, in order: two pieces separated by a space.
const MERGES: &str = "tokenizer.ggml.merges";

#[derive(Clone, Debug)]
pub(crate) struct BytePairs {
    splitter: Splitter,
    bytes: Bytes,
    ignore_merges: bool,
    /// The merges' texts: tokens at their ids, then other pieces.
    pieces: Index,
    merges: Merges,
    /// The piece of each byte spelled as a character.
    of_byte: Box<[u32; 256]>,
    /// The token of each plain byte, spelled like `<0x00>`.
    fallback: Box<[u32; 256]>,
}

#[derive(Clone, Debug)]
enum Merges {
    /// Listed merges. Each pair has a rank and a merged piece.
    Listed(HashMap<(u32, u32), (u32, u32)>),
    /// All pairs that form a token, ranked by its id (tiktoken's rule).
    ById,
}

impl BytePairs {
    pub(crate) fn read(
        metadata: &Metadata,
        vocabulary: &Vocabulary,
        pre: &Pre,
    ) -> Result<BytePairs, Diagnostic> {
        let mut pieces = vocabulary.texts().clone();
        let merges = match metadata.get_array_str(MERGES)? {
            None if pre.may_lack_merges => Merges::ById,
            None => return Err(unusable(metadata, format!("{MERGES} is missing"))),
            Some(list) => {
                let mut ranks = HashMap::new();
                let mut merged = String::new();
                for (rank, merge) in (0..).zip(list.iter()) {
                    // A piece may begin with a space.
                    let space = merge.bytes().skip(1).position(|b| b == b' ');
                    let Some((left, right)) = space.map(|at| (&merge[..=at], &merge[at + 2..]))
                    else {
                        continue;
                    };
                    if left.is_empty() || right.is_empty() {
                        continue;
                    }
                    merged.clear();
                    merged.extend([left, right]);
                    let pair = (pieces.intern(left), pieces.intern(right));
                    let piece = pieces.intern(&merged);
                    ranks.entry(pair).or_insert((rank, piece));
                }
                Merges::Listed(ranks)
            }
        };
        let table = |of: &dyn Fn(u8) -> Option<u32>| {
            let mut table = Box::new([NONE; 256]);
            for byte in 0..=u8::MAX {
                table[usize::from(byte)] = of(byte).unwrap_or(NONE);
            }
            table
        };
        let of_byte = table(&|b| pieces.find(&byte_level::character(b).to_string()));
        Ok(BytePairs {
            splitter: Splitter::new(pre.steps),
            bytes: pre.bytes,
            ignore_merges: pre.ignore_merges,
            of_byte,
            fallback: table(&|b| vocabulary.find_byte(b)),
            pieces,
            merges,
        })
    }

    fn rank(&self, left: &Symbol, right: &Symbol) -> Option<(u32, u32)> {
        match &self.merges {
            Merges::Listed(ranks) => ranks.get(&(left.piece, right.piece)).copied(),
            Merges::ById if left.piece == NONE || right.piece == NONE => None,
            Merges::ById => {
                let merged = [self.pieces.get(left.piece), self.pieces.get(right.piece)].concat();
                self.pieces.find(&merged).map(|id| (id, id))
            }
        }
    }

    pub(crate) fn encode(&self, vocabulary: &Vocabulary, text: &str, out: &mut Vec<u32>) {
        let escaped;
        let text = match self.bytes {
            Bytes::Escaped | Bytes::Gemma => {
                escaped = text.replace(' ', SPACE);
                &escaped
            }
            Bytes::Characters | Bytes::Plain => text,
        };
        let mut merger = Merger::default();
        for word in self.splitter.words(text) {
            let word = &text[word];
            match self.whole(vocabulary, word) {
                Some(id) => out.push(id),
                None => self.word(vocabulary, word, &mut merger, out),
            }
        }
    }

    /// Returns the token of a word that is not split.
    fn whole(&self, vocabulary: &Vocabulary, word: &str) -> Option<u32> {
        let lines = self.bytes == Bytes::Gemma && word.bytes().all(|b| b == b'\n');
        if !self.ignore_merges && !lines {
            return None;
        }
        match self.bytes {
            Bytes::Characters => {
                let written: String = word.bytes().map(byte_level::character).collect();
                vocabulary.find(&written)
            }
            _ => vocabulary.find(word),
        }
    }

    fn word(&self, vocabulary: &Vocabulary, word: &str, merger: &mut Merger, out: &mut Vec<u32>) {
        merger.clear();
        match self.bytes {
            Bytes::Characters => {
                for (i, byte) in word.bytes().enumerate() {
                    merger.push(i + 1, self.of_byte[usize::from(byte)]);
                }
            }
            _ => {
                for (i, c) in word.char_indices() {
                    let end = i + c.len_utf8();
                    merger.push(end, self.pieces.find(&word[i..end]).unwrap_or(NONE));
                }
            }
        }
        merger.run(|left, right| self.rank(left, right));
        let token = |id: u32| (id as usize) < vocabulary.len();
        for symbol in merger.symbols() {
            if token(symbol.piece) {
                out.push(symbol.piece);
                continue;
            }
            // Other pieces are encoded byte by byte. Bytes without a token are dropped, as in llama.cpp.
            let table = match self.bytes {
                Bytes::Characters => &self.of_byte,
                _ => &self.fallback,
            };
            let bytes = &word.as_bytes()[symbol.range()];
            out.extend(
                bytes
                    .iter()
                    .map(|&b| table[usize::from(b)])
                    .filter(|&id| token(id)),
            );
        }
    }

    pub(crate) fn piece(&self, text: &str, out: &mut Vec<u8>) {
        match self.bytes {
            Bytes::Characters => {
                for c in text.chars() {
                    match byte_level::byte(c) {
                        Some(byte) => out.push(byte),
                        None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
            }
            Bytes::Plain => out.extend_from_slice(text.as_bytes()),
            Bytes::Escaped | Bytes::Gemma => {
                out.extend_from_slice(text.replace(SPACE, " ").as_bytes());
            }
        }
    }
}
