//! The kinds of tokens.

/// The kind of a token, numbered as in `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// 1: text.
    Normal,
    /// 2: stands for text that the vocabulary cannot express.
    Unknown,
    /// 3: marks a begin, an end or a turn; not text.
    Control,
    /// 4: text that is never split.
    UserDefined,
    /// 5: unused by the model.
    Unused,
    /// 6: one byte, spelled `<0x0A>`.
    Byte,
    /// 0 or any other number.
    Undefined,
}

impl TokenKind {
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

    /// True if the token is hidden unless special tokens are shown.
    pub fn is_special(self) -> bool {
        matches!(self, TokenKind::Control | TokenKind::Unknown)
    }
}
