//! Tokens as text, as they come.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::ControlFlow;

use tpc_text::{Detokenizer, Show, Start, Tokenizer};

use tpc_engine::Error;
use tpc_engine::generate::{Prompter, TokenSink};

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

impl<'t> Stream<'t> {
    /// Makes a stream of answers: their text, or ids if the prompts are ids.
    pub(super) fn of(prompter: &Prompter<'t>, to: To) -> Stream<'t> {
        match prompter.tokenizer() {
            Some(tokenizer) => Stream::text(tokenizer, to),
            None => Stream::ids(to),
        }
    }

    /// The text of tokens that follow others.
    fn text(tokenizer: &'t Tokenizer, to: To) -> Stream<'t> {
        let detokenizer = Detokenizer::new(tokenizer, Start::Continuation, Show::Text);
        Stream::with_form(Form::Text(detokenizer), to)
    }

    /// Ids of tokens.
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

    /// Writes what was held back, and the end of the line.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
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
                // A string takes everything.
                let _ = write!(self.text, "{comma}{id}");
            }
        }
        self.written()
    }
}
