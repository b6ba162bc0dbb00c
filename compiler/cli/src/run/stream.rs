//! Tokens on standard output, as they come.

use std::io::{self, Write};

use tpc_text::{Detokenizer, Show, Start, Tokenizer};

use crate::output::Failure;

/// Tokens on standard output: as text that is always whole UTF-8, or as ids with commas between.
pub(super) enum Stream<'t> {
    /// Text, and whether it ends with a line break.
    Text(Detokenizer<'t>, bool),
    /// Ids, and whether there was one.
    Ids(bool),
}

/// Whether anybody still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Present,
    Gone,
}

impl<'t> Stream<'t> {
    /// The text of tokens that follow others.
    pub(super) fn text(tokenizer: &'t Tokenizer) -> Stream<'t> {
        let detokenizer = Detokenizer::new(tokenizer, Start::Continuation, Show::Text);
        Stream::Text(detokenizer, true)
    }

    /// Ids of tokens.
    pub(super) fn ids() -> Stream<'static> {
        Stream::Ids(false)
    }

    /// Writes a token.
    pub(super) fn push(&mut self, id: u32) -> Result<Reader, Failure> {
        let mut out = String::new();
        match self {
            Stream::Text(detokenizer, _) => {
                detokenizer.push(id, &mut out).map_err(Failure::usage)?;
            }
            Stream::Ids(false) => out = id.to_string(),
            Stream::Ids(true) => out = format!(",{id}"),
        }
        self.write(&out)
    }

    /// Writes what was held back, and the end of the line.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let mut out = String::new();
        let ended = match &mut self {
            Stream::Text(detokenizer, ended) => {
                detokenizer.finish(&mut out);
                match out.is_empty() {
                    true => *ended,
                    false => out.ends_with('\n'),
                }
            }
            Stream::Ids(any) => !*any,
        };
        if !ended {
            out.push('\n');
        }
        self.write(&out).map(|_| ())
    }

    fn write(&mut self, text: &str) -> Result<Reader, Failure> {
        if text.is_empty() {
            return Ok(Reader::Present);
        }
        match self {
            Stream::Text(_, ended) => *ended = text.ends_with('\n'),
            Stream::Ids(any) => *any = true,
        }
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(Reader::Present),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
            Err(e) => Err(Failure::write("standard output", &e)),
        }
    }
}
