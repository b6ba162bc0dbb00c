//! Tokens as text, as they come.

use std::fmt::Write as _;
use std::io::{self, Write};

use tpc_text::{Detokenizer, Show, Start, Tokenizer};

use crate::output::Failure;

/// Tokens as they come: as text that is always whole UTF-8, or as ids with commas between.
pub(super) struct Stream<'t> {
    form: Form<'t>,
    to: To,
    /// Text that is to be written, or is kept.
    text: String,
    /// Whether the output so far is empty or ends with a line break.
    at_line: bool,
}

enum Form<'t> {
    Text(Detokenizer<'t>),
    Ids,
}

/// Where the text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// To standard output, as it comes.
    Output,
    /// It is kept, for [`Stream::print`].
    Memory,
}

/// Whether anybody still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Present,
    Gone,
}

impl<'t> Stream<'t> {
    /// The text of tokens that follow others.
    pub(super) fn text(tokenizer: &'t Tokenizer, to: To) -> Stream<'t> {
        let detokenizer = Detokenizer::new(tokenizer, Start::Continuation, Show::Text);
        Stream::of(Form::Text(detokenizer), to)
    }

    /// Ids of tokens.
    pub(super) fn ids(to: To) -> Stream<'static> {
        Stream::of(Form::Ids, to)
    }

    fn of(form: Form<'_>, to: To) -> Stream<'_> {
        Stream {
            form,
            to,
            text: String::new(),
            at_line: true,
        }
    }

    /// Writes a token.
    pub(super) fn push(&mut self, id: u32) -> Result<Reader, Failure> {
        match &mut self.form {
            Form::Text(detokenizer) => {
                let pushed = detokenizer.push(id, &mut self.text);
                pushed.map_err(Failure::usage)?;
            }
            Form::Ids => {
                let comma = if self.at_line { "" } else { "," };
                // A string takes everything.
                let _ = write!(self.text, "{comma}{id}");
            }
        }
        self.written()
    }

    /// Writes what was held back, and the end of the line.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if let Form::Text(detokenizer) = &mut self.form {
            detokenizer.finish(&mut self.text);
        }
        let ended = match self.text.is_empty() {
            true => self.at_line,
            false => self.text.ends_with('\n'),
        };
        if !ended {
            self.text.push('\n');
        }
        self.written().map(|_| ())
    }

    /// Prints the text that was kept.
    pub(super) fn print(&mut self) -> Result<Reader, Failure> {
        self.to = To::Output;
        self.written()
    }

    fn written(&mut self) -> Result<Reader, Failure> {
        if self.text.is_empty() {
            return Ok(Reader::Present);
        }
        self.at_line = self.text.ends_with('\n');
        if self.to == To::Memory {
            return Ok(Reader::Present);
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(self.text.as_bytes());
        let written = written.and_then(|()| out.flush());
        self.text.clear();
        match written {
            Ok(()) => Ok(Reader::Present),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
            Err(e) => Err(Failure::write("standard output", &e)),
        }
    }
}
