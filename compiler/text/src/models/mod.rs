//! The algorithm of each `tokenizer.ggml.model`.

mod byte_pairs;
mod charsmap;
mod plamo2;
mod rwkv;
mod sentence_piece;
mod unigram;
mod word_piece;

use super::vocabulary::{TokenKind, Vocabulary, byte_of};
pub(crate) use byte_pairs::BytePairs;
pub(crate) use plamo2::Plamo2;
pub(crate) use rwkv::Rwkv;
pub(crate) use sentence_piece::{Prefix, SentencePiece};
pub(crate) use unigram::{Spacing, Unigram};
pub(crate) use word_piece::{Cleaning, WordPiece};

/// U+2581, which represents a space in SentencePiece vocabularies.
pub(crate) const SPACE: &str = "▁";

/// A tokenization algorithm for text without special tokens, and its inverse.
#[derive(Clone, Debug)]
pub(crate) enum Model {
    BytePairs(BytePairs),
    SentencePiece(SentencePiece),
    Unigram(Unigram),
    WordPiece(WordPiece),
    Rwkv(Rwkv),
    Plamo2(Plamo2),
}

impl Model {
    /// Appends a text's ids. `prefixed` is true at the start of a text and after a special token.
    pub(crate) fn encode(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        prefixed: bool,
        out: &mut Vec<u32>,
    ) {
        match self {
            Model::BytePairs(m) => m.encode(vocabulary, text, out),
            Model::SentencePiece(m) => m.encode(vocabulary, text, prefixed, out),
            Model::Unigram(m) => m.encode(text, out),
            Model::WordPiece(m) => m.encode(text, out),
            Model::Rwkv(m) => m.encode(text, out),
            Model::Plamo2(m) => m.encode(text, out),
        }
    }

    /// True if encoding adds a space before a text; the detokenizer removes it.
    pub(crate) fn adds_space(&self) -> bool {
        match self {
            Model::SentencePiece(m) => m.adds_space(),
            Model::Unigram(m) => m.adds_space(),
            _ => false,
        }
    }

    pub(crate) fn piece(&self, vocabulary: &Vocabulary, id: u32, out: &mut Vec<u8>) {
        let text = vocabulary.text(id);
        let raw = |out: &mut Vec<u8>| out.extend_from_slice(text.as_bytes());
        match (vocabulary.kind(id), self) {
            (_, Model::Rwkv(_)) => out.extend(rwkv::unescape(text)),
            (TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined, _) => raw(out),
            (TokenKind::Byte, _) => match byte_of(text) {
                Some(byte) => out.push(byte),
                None => raw(out),
            },
            (TokenKind::Unused | TokenKind::Undefined, Model::Plamo2(_)) => raw(out),
            (TokenKind::Unused | TokenKind::Undefined, _) => {}
            (TokenKind::Normal, Model::BytePairs(m)) => m.piece(text, out),
            (TokenKind::Normal, Model::Plamo2(_)) => raw(out),
            (TokenKind::Normal, _) => out.extend_from_slice(text.replace(SPACE, " ").as_bytes()),
        }
    }
}
