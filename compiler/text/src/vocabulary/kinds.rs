//! The kinds of tokens.

/// The kind of a token, numbered as in `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// 1: text.
    Normal,
    /// 2: the unknown token, for text that the vocabulary cannot express.
    Unknown,
    /// 3: a control token, which begins or ends a text or a turn.
    Control,
    /// 4: a token that is never split.
    UserDefined,
    /// 5: unused by the model.
    Unused,
    /// 6: a byte, spelled `<0x0A>`.
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

    /// True if the token is shown only on request.
    pub fn is_special(self) -> bool {
        matches!(self, TokenKind::Control | TokenKind::Unknown)
    }
}
