//! Ids into text, as they come.

use tpc_diag::Diagnostic;

use super::tokenizer::Tokenizer;
use super::vocabulary::TokenKind;

/// Where the first token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the begin of a text: the space that the tokenizer put there is taken away.
    Text,
    /// After other text, as an answer does after its prompt.
    Continuation,
}

/// Whether special tokens are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Text alone.
    Text,
    /// Control tokens too, as the file writes them.
    Special,
}

/// Turns ids into text, token by token. What it gives is whole UTF-8: bytes that begin a character are held back until
/// the character is whole. Bytes that are no UTF-8 read as U+FFFD, as [`String::from_utf8_lossy`] reads them, so that
/// the parts together are what the whole would be.
#[derive(Clone, Debug)]
pub struct Detokenizer<'t> {
    tokenizer: &'t Tokenizer,
    show: Show,
    /// Whether a leading space is still to be taken away.
    strip: bool,
    /// Bytes that may begin a character.
    held: Vec<u8>,
}

impl<'t> Detokenizer<'t> {
    /// A detokenizer before its first token.
    pub fn new(tokenizer: &'t Tokenizer, start: Start, show: Show) -> Detokenizer<'t> {
        Detokenizer {
            tokenizer,
            show,
            strip: start == Start::Text && tokenizer.adds_space(),
            held: Vec::new(),
        }
    }

    /// Appends what can be shown after a token to `out`.
    ///
    /// # Errors
    /// No such token.
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

    /// Moves the characters that are whole to `out`.
    fn release(&mut self, out: &mut String) {
        let mut chunks = self.held.utf8_chunks().peekable();
        let mut kept = 0;
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            // The last bytes may be the begin of a character that goes on.
            if chunks.peek().is_none() && begins_character(chunk.invalid()) {
                kept = chunk.invalid().len();
            } else if !chunk.invalid().is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.held.drain(..self.held.len() - kept);
    }

    /// Appends what was held back, at the end of the text.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&String::from_utf8_lossy(&self.held));
        self.held.clear();
    }
}

/// Whether more bytes could make these a character.
fn begins_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
}

impl Tokenizer {
    /// The text of these ids.
    ///
    /// # Errors
    /// An id without a token.
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
