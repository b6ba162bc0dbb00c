//! Writes tokens as text while they are generated.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::ControlFlow;

use tpc_text::{Detokenizer, Show, Start, Tokenizer};

use tpc_engine::Error;
use tpc_engine::generate::{Prompter, TokenSink};

use crate::output::Failure;

/// A stream of tokens, written as UTF-8 text or as comma-separated ids.
pub(super) struct Stream<'t> {
    form: Form<'t>,
    to: To,
    /// The text not yet written; all text, if kept in memory.
    text: String,
    /// True if the output is empty or ends with a line break.
    at_line: bool,
}

enum Form<'t> {
    Text(Detokenizer<'t>),
    Ids,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// Standard output, token by token.
    Output,
    /// Memory, for [`Stream::print`].
    Memory,
}

impl<'t> Stream<'t> {
    /// Creates a stream for answers: ids if the prompts are ids, else text.
    pub(super) fn of(prompter: &Prompter<'t>, to: To) -> Stream<'t> {
        match prompter.tokenizer() {
            Some(tokenizer) => Stream::text(tokenizer, to),
            None => Stream::ids(to),
        }
    }

    /// Creates a stream for text that continues earlier tokens.
    fn text(tokenizer: &'t Tokenizer, to: To) -> Stream<'t> {
        let detokenizer = Detokenizer::new(tokenizer, Start::Continuation, Show::Text);
        Stream::with_form(Form::Text(detokenizer), to)
    }

    fn ids(to: To) -> Stream<'static> {
        Stream::with_form(Form::Ids, to)
    }

    fn with_form(form: Form<'_>, to: To) -> Stream<'_> {
        Stream {
            form,
            to,
            text: String::new(),
            at_line: true,
        }
    }

    /// Ends the line. Omits the bytes of an incomplete character, for example after `-n` tokens.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        let ended = match self.text.is_empty() {
            true => self.at_line,
            false => self.text.ends_with('\n'),
        };
        if !ended {
            self.text.push('\n');
        }
        self.written().map(|_| ())
    }

    pub(super) fn print(&mut self) -> Result<(), Error> {
        self.to = To::Output;
        self.written().map(|_| ())
    }

    fn written(&mut self) -> Result<ControlFlow<()>, Error> {
        if self.text.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        self.at_line = self.text.ends_with('\n');
        if self.to == To::Memory {
            return Ok(ControlFlow::Continue(()));
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(self.text.as_bytes());
        let written = written.and_then(|()| out.flush());
        self.text.clear();
        match written {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
            Err(e) => Err(Failure::write("standard output", &e).into_engine()),
        }
    }
}

impl TokenSink for Stream<'_> {
    fn push(&mut self, id: u32) -> Result<ControlFlow<()>, Error> {
        match &mut self.form {
            Form::Text(detokenizer) => {
                let pushed = detokenizer.push(id, &mut self.text);
                pushed.map_err(Error::usage)?;
            }
            Form::Ids => {
                let comma = if self.at_line { "" } else { "," };
                // Writing to a string does not fail.
                let _ = write!(self.text, "{comma}{id}");
            }
        }
        self.written()
    }
}
