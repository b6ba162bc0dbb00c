use std::ops::ControlFlow;
use std::time::Instant;

use tpc_diag::Diagnostic;
use tpc_engine::Error;
use tpc_engine::generate::TokenSink;
use tpc_text::{Detokenizer, Start, TokenRecord, Tokenizer};

use super::job::{Ended, Event, EventSender, Job, Piece, TokenOut};
use super::stops::{StopMatcher, Stopped};

/// The receiver of a slot's tokens: converts them to text, finds stop texts, and sends events to the request.
pub(super) struct Reply<'t> {
    detokenizer: Detokenizer<'t>,
    stops: StopMatcher,
    /// Tokens whose text is held back, with the position where their text begins.
    held: Vec<(usize, TokenOut)>,
    /// Bytes of text so far.
    decoded: usize,
    /// Bytes of text sent.
    sent: usize,
    records: bool,
    events: EventSender,
    /// The stop text that was found.
    pub(super) stopped: Option<String>,
    /// Times of the first and the last token.
    pub(super) times: Option<[Instant; 2]>,
}

impl<'t> Reply<'t> {
    pub(super) fn new(tokenizer: &'t Tokenizer, job: &mut Job) -> Reply<'t> {
        Reply {
            detokenizer: Detokenizer::new(tokenizer, Start::Continuation, job.show),
            stops: StopMatcher::new(std::mem::take(&mut job.stops)),
            held: Vec::new(),
            decoded: 0,
            sent: 0,
            records: job.record.is_some(),
            events: job.events.clone(),
            stopped: None,
            times: None,
        }
    }

    /// True if the client has gone.
    pub(super) fn is_cancelled(&self) -> bool {
        self.events.is_closed()
    }

    /// Sends the text held back, and the end of the answer.
    pub(super) fn end(&mut self, ended: Ended) {
        if self.stopped.is_none() {
            let mut rest = self.stops.finish();
            self.detokenizer.finish(&mut rest);
            let _ = self.send(rest, usize::MAX);
        }
        let _ = self.events.send(Event::Ended(ended));
    }

    /// Sends an error.
    pub(super) fn fail(&self, d: Diagnostic) {
        let _ = self.events.send(Event::Failed(d));
    }

    /// Sends text with the tokens that begin before byte `until` of the answer.
    fn send(&mut self, text: String, until: usize) -> ControlFlow<()> {
        self.sent += text.len();
        let n = self.held.iter().take_while(|(at, _)| *at < until).count();
        let tokens: Vec<TokenOut> = self.held.drain(..n).map(|(_, token)| token).collect();
        let gone = match text.is_empty() && tokens.is_empty() {
            true => self.is_cancelled(),
            false => !self.events.send(Event::Text(Piece { text, tokens })),
        };
        match gone {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl TokenSink for Reply<'_> {
    fn push(&mut self, id: u32) -> Result<ControlFlow<()>, Error> {
        self.push_recorded(id, None)
    }

    fn push_recorded(
        &mut self,
        id: u32,
        record: Option<TokenRecord>,
    ) -> Result<ControlFlow<()>, Error> {
        let now = Instant::now();
        self.times = Some([self.times.map_or(now, |[first, _]| first), now]);
        let mut text = String::new();
        let pushed = self.detokenizer.push(id, &mut text);
        pushed.map_err(Error::usage)?;
        if self.records {
            self.held.push((self.decoded, TokenOut { id, record }));
        }
        self.decoded += text.len();
        match self.stops.push(&text) {
            Stopped::At(text, stop) => {
                let until = self.sent + text.len();
                let _ = self.send(text, until.max(1));
                self.held.clear();
                self.stopped = Some(stop);
                Ok(ControlFlow::Break(()))
            }
            Stopped::Open(text) => {
                let until = self.sent + text.len();
                // Tokens without text, such as hidden special tokens, go with the text before them.
                let until = if until == self.decoded {
                    until + 1
                } else {
                    until
                };
                Ok(self.send(text, until))
            }
        }
    }
}
