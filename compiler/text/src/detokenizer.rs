//! Converts ids to text incrementally.

use tpc_diag::Diagnostic;

use super::tokenizer::Tokenizer;
use super::vocabulary::TokenKind;

/// The position of the first token in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the start of a text: the tokenizer's added space is removed.
    Text,
    /// After other text, such as an answer after its prompt.
    Continuation,
}

/// The visibility of special tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Special tokens are hidden.
    Text,
    /// Text and control tokens, spelled as in the file.
    Special,
}

/// Converts ids to text, token by token. Holds back incomplete characters. Invalid bytes become U+FFFD, as in
/// [`String::from_utf8_lossy`].
#[derive(Clone, Debug)]
pub struct Detokenizer<'t> {
    tokenizer: &'t Tokenizer,
    show: Show,
    strip: bool,
    /// The bytes of an incomplete character.
    held: Vec<u8>,
}

impl<'t> Detokenizer<'t> {
    /// Creates a detokenizer.
    pub fn new(tokenizer: &'t Tokenizer, start: Start, show: Show) -> Detokenizer<'t> {
        Detokenizer {
            tokenizer,
            show,
            strip: start == Start::Text && tokenizer.adds_space(),
            held: Vec::new(),
        }
    }

    /// Appends the text that is complete after this token.
    ///
    /// # Errors
    /// Returns an error if the id is not in the vocabulary.
    pub fn push(&mut self, id: u32, out: &mut String) -> Result<(), Diagnostic> {
        let special = self.tokenizer.kind(id).is_some_and(TokenKind::is_special);
        if special && self.show == Show::Text {
            return Ok(());
        }
        let from = self.held.len();
        self.tokenizer.piece(id, &mut self.held)?;
        if self.strip && self.held.len() > from && !special {
            self.strip = false;
            if self.held[from] == b' ' {
                self.held.remove(from);
            }
        }
        self.release(out);
        Ok(())
    }

    fn release(&mut self, out: &mut String) {
        let mut chunks = self.held.utf8_chunks().peekable();
        let mut kept = 0;
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            if chunks.peek().is_none() && begins_character(chunk.invalid()) {
                kept = chunk.invalid().len();
            } else if !chunk.invalid().is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.held.drain(..self.held.len() - kept);
    }

    /// Appends the held bytes at the end of the text.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&String::from_utf8_lossy(&self.held));
        self.held.clear();
    }
}

fn begins_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
}

impl Tokenizer {
    /// Returns the text of these ids.
    ///
    /// # Errors
    /// Returns an error if an id is not in the vocabulary.
    pub fn decode(&self, ids: &[u32], start: Start, show: Show) -> Result<String, Diagnostic> {
        let mut out = String::new();
        let mut detokenizer = Detokenizer::new(self, start, show);
        for &id in ids {
            detokenizer.push(id, &mut out)?;
        }
        detokenizer.finish(&mut out);
        Ok(out)
    }
}
