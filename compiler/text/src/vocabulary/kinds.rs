//! What a token is for.

/// The kind of a token, as `tokenizer.ggml.token_type` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// 1: a piece of text.
    Normal,
    /// 2: stands for text that the vocabulary does not have.
    Unknown,
    /// 3: marks a begin, an end or a turn; no part of a text.
    Control,
    /// 4: a piece of text that is never cut, whatever stands around it.
    UserDefined,
    /// 5: a place in the vocabulary that the model does not use.
    Unused,
    /// 6: one byte, written `<0x0A>`.
    Byte,
    /// 0, and any other number.
    Undefined,
}

impl TokenKind {
    /// The kind of that number.
    pub(crate) fn of_number(number: i32) -> TokenKind {
        match number {
            1 => TokenKind::Normal,
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            _ => TokenKind::Undefined,
        }
    }

    /// Whether the token is hidden where a text is shown without its special tokens.
    pub fn is_special(self) -> bool {
        matches!(self, TokenKind::Control | TokenKind::Unknown)
    }
}
