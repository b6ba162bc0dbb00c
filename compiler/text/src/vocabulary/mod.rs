//! A file's tokens: texts, scores, kinds and special tokens.

mod kinds;
mod special;

use tpc_diag::Diagnostic;
use tpc_gguf::{MetaArray, MetaValue, Metadata};

use super::codes;
use super::index::Index;
use super::merge::NONE;
pub use kinds::TokenKind;
pub use special::SpecialTokens;
pub(crate) use special::{Defaults, find};

const TOKENS: &str = "tokenizer.ggml.tokens";
/// The key of the scores, which are log probabilities or negated merge ranks.
const SCORES: &str = "tokenizer.ggml.scores";
const KINDS: &str = "tokenizer.ggml.token_type";

#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    texts: Index,
    scores: Vec<f32>,
    kinds: Vec<TokenKind>,
}

pub(crate) fn unusable(metadata: &Metadata, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(&codes::BAD_VOCABULARY, metadata.file(), message.into()).help(
        "convert the model again with a current llama.cpp, or compare the file's checksum with the publisher's",
    )
}

impl Vocabulary {
    /// Reads a file's vocabulary. Names an empty token with id `n` `[EMPTY_n]`.
    pub(crate) fn read(metadata: &Metadata) -> Result<Vocabulary, Diagnostic> {
        let tokens = metadata.require_array_str(TOKENS)?;
        if tokens.is_empty() || tokens.len() >= NONE as usize {
            return Err(unusable(
                metadata,
                format!("{TOKENS} has {} tokens", tokens.len()),
            ));
        }
        let mut texts = Index::default();
        for (id, text) in tokens.iter().enumerate() {
            let inserted = match text {
                "" => texts.insert(&format!("[EMPTY_{id}]")),
                text => texts.insert(text),
            };
            if let Err(first) = inserted {
                let shown = MetaValue::from(text).preview();
                let message = format!("{TOKENS}: tokens {first} and {id} are both {shown}");
                return Err(unusable(metadata, message));
            }
        }
        let kinds = metadata.get_array_i32(KINDS)?;
        let kinds = match kinds {
            Some(kinds) => kinds.into_iter().map(TokenKind::of_number).collect(),
            None => vec![TokenKind::Normal; texts.len()],
        };
        let scores = match metadata.value(SCORES) {
            None => vec![0.0; texts.len()],
            Some(MetaValue::Array(MetaArray::I32(scores))) => {
                scores.iter().map(|&s| s as f32).collect()
            }
            Some(_) => metadata.require_array_f32(SCORES)?,
        };
        for (key, found) in [(KINDS, kinds.len()), (SCORES, scores.len())] {
            if found < texts.len() {
                let message = format!("{key} has {found} entries for {} tokens", texts.len());
                return Err(unusable(metadata, message));
            }
        }
        if let Some(id) = scores.iter().position(|s| s.is_nan()) {
            return Err(unusable(
                metadata,
                format!("{SCORES}: the score of token {id} is not a number"),
            ));
        }
        Ok(Vocabulary {
            texts,
            scores,
            kinds,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn ids(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.len()).expect("invariant: checked when the file was read")
    }

    /// Returns a token's text, as spelled in the file.
    pub(crate) fn text(&self, id: u32) -> &str {
        self.texts.get(id)
    }

    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.texts.find(text)
    }

    /// Returns the token of a byte, spelled like `<0x0A>`.
    pub(crate) fn find_byte(&self, byte: u8) -> Option<u32> {
        self.find(&format!("<0x{byte:02X}>"))
    }

    pub(crate) fn score(&self, id: u32) -> f32 {
        self.scores[id as usize]
    }

    pub(crate) fn kind(&self, id: u32) -> TokenKind {
        self.kinds[id as usize]
    }

    pub(crate) fn set_kind(&mut self, id: u32, kind: TokenKind) {
        self.kinds[id as usize] = kind;
    }

    /// Returns the length of the longest token, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.ids().map(|id| self.text(id).len()).max().unwrap_or(0)
    }

    /// Returns the texts. Callers may clone the index and add pieces.
    pub(crate) fn texts(&self) -> &Index {
        &self.texts
    }
}

/// Returns the byte of a byte token, spelled `<0x0A>` or as one byte.
pub(crate) fn byte_of(text: &str) -> Option<u8> {
    match text.as_bytes() {
        &[byte] => Some(byte),
        _ => {
            let hex = text.strip_prefix("<0x")?.strip_suffix('>')?;
            let digits = hex.len() == 2 && hex.bytes().all(|b| b.is_ascii_hexdigit());
            digits.then(|| u8::from_str_radix(hex, 16).ok())?
        }
    }
}
