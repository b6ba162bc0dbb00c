use std::num::NonZero;

use tpc_diag::Diagnostic;

use crate::codes::SHORT_TEXT;
use crate::error::Error;

/// The position of windows in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Windows without overlap. The second half of each window is scored, and a begin token replaces its first token.
    Chunks,
    /// Windows that begin `stride` tokens apart. The last `stride` predictions of each window are scored.
    Strided(NonZero<usize>),
}

/// A part of a text that the model reads as one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Index of the first token.
    pub start: usize,
    /// Number of tokens.
    pub len: usize,
    /// First position with a scored prediction. The last one is `len - 2`, which predicts the last token.
    pub first: usize,
    /// True if a begin token replaces the first token.
    pub marked: bool,
}

impl Window {
    /// Returns the number of scored predictions.
    pub const fn scored(&self) -> usize {
        self.len - 1 - self.first
    }
}

fn refused(entity: &str, message: String, help: String) -> Error {
    Error::usage(Diagnostic::new(&SHORT_TEXT, entity.to_owned(), message).help(help))
}

/// Cuts a text of `tokens` tokens into windows of `context` tokens; at most `most` windows.
///
/// # Errors
/// Returns TPC0429 if the text has fewer than `2 * context` tokens, or the windows do not have a scored prediction.
pub fn windows(
    (name, tokens): (&str, usize),
    context: usize,
    form: Form,
    most: usize,
) -> Result<Vec<Window>, Error> {
    let stride = match form {
        Form::Chunks => context,
        Form::Strided(stride) => stride.get(),
    };
    let scored = match form {
        Form::Chunks => context.saturating_sub(1 + context / 2),
        Form::Strided(stride) => stride.get(),
    };
    if scored == 0 || scored >= context {
        let message = format!("windows of {context} tokens cannot score {scored} predictions each");
        let help = "give a larger context such as -c 512, and a --ppl-stride below it";
        return Err(refused("--ctx-size", message, help.to_owned()));
    }
    if tokens / 2 < context {
        let message = format!(
            "the text has {tokens} tokens, but a context of {context} needs at least {}",
            context.saturating_mul(2)
        );
        let help = match tokens / 2 {
            0..=3 => "give a longer text".to_owned(),
            fits => format!("give a longer text, or a smaller context: -c {fits}"),
        };
        return Err(refused(name, message, help));
    }
    let n = match form {
        Form::Chunks => tokens / context,
        Form::Strided(stride) => (tokens - context).div_ceil(stride.get()),
    };
    let window = |i: usize| Window {
        start: i * stride,
        len: context,
        first: context - 1 - scored,
        marked: form == Form::Chunks,
    };
    Ok((0..n.min(most)).map(window).collect())
}
