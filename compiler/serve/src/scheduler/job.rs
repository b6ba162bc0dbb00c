use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tpc_diag::Diagnostic;
use tpc_text::{Constraint, Settings, Show, TokenRecord};

use crate::admission::Ticket;

/// A command to the scheduler.
pub(crate) enum Command {
    /// Continues a prompt.
    Generate(Box<Job>),
    /// Computes the embedding of a text.
    Embed(EmbedJob),
    /// Wakes the scheduler, so that it sees the shutdown flag.
    Wake,
}

/// A prompt to continue.
pub(crate) struct Job {
    /// Number of the request, for logs.
    pub(crate) id: u64,
    /// The user, for fairness.
    pub(crate) user: String,
    /// Tokens of the prompt.
    pub(crate) prompt: Vec<u32>,
    /// Sampling settings.
    pub(crate) settings: Settings,
    /// The grammar of the answer.
    pub(crate) constraint: Option<Box<dyn Constraint>>,
    /// Number of likeliest tokens to record per token; `None` without records.
    pub(crate) record: Option<usize>,
    /// Maximum tokens of the answer; `None` if only the context limits it.
    pub(crate) max_tokens: Option<usize>,
    /// Texts that end the answer.
    pub(crate) stops: Vec<String>,
    /// True if tokens that end generation do not end the answer.
    pub(crate) ignore_end: bool,
    /// Visibility of special tokens in the answer.
    pub(crate) show: Show,
    /// True if the prompt may start from cached tokens.
    pub(crate) reuse: bool,
    /// The receiver of the answer.
    pub(crate) events: EventSender,
    /// Time of the request.
    pub(crate) arrived: Instant,
    /// The request's place among the admitted requests.
    pub(crate) _ticket: Ticket,
}

impl Job {
    /// True if the client has gone.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.events.is_closed()
    }
}

/// A text to embed.
pub(crate) struct EmbedJob {
    /// Tokens of the text.
    pub(crate) tokens: Vec<u32>,
    /// The receiver of the vector, or of one vector per token without pooling.
    pub(crate) reply: oneshot::Sender<Result<Vec<Vec<f32>>, Diagnostic>>,
    /// The request's place among the admitted requests.
    pub(crate) _ticket: Ticket,
}

/// Sends the events of one answer. Several answers may share a receiver.
#[derive(Clone, Debug)]
pub(crate) struct EventSender {
    sender: mpsc::UnboundedSender<(usize, Event)>,
    choice: usize,
}

impl EventSender {
    /// Creates the sender of answer number `choice`.
    pub(crate) const fn new(
        sender: mpsc::UnboundedSender<(usize, Event)>,
        choice: usize,
    ) -> EventSender {
        EventSender { sender, choice }
    }

    /// Sends an event. Returns false if the client has gone.
    pub(crate) fn send(&self, event: Event) -> bool {
        self.sender.send((self.choice, event)).is_ok()
    }

    /// True if the client has gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Event {
    /// The prompt is being read.
    Started,
    /// Text with its tokens.
    Text(Piece),
    /// The answer is complete.
    Ended(Ended),
    /// The answer failed.
    Failed(Diagnostic),
}

/// A piece of an answer's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    /// Text that is complete: it cannot become part of a stop text.
    pub(crate) text: String,
    /// The tokens of the text.
    pub(crate) tokens: Vec<TokenOut>,
}

/// A token of an answer.
#[derive(Clone, Debug)]
pub(crate) struct TokenOut {
    /// The token's id.
    pub(crate) id: u32,
    /// Log-probabilities, if requested.
    pub(crate) record: Option<TokenRecord>,
}

/// The end of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// The reason.
    pub(crate) finish: Finish,
    /// Tokens and times.
    pub(crate) usage: Usage,
}

/// The reason why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// A token that ends generation.
    EndToken,
    /// A stop text.
    StopText(String),
    /// The maximum length, or a full context.
    Length,
}

/// Tokens and times of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Tokens of the prompt.
    pub(crate) prompt: usize,
    /// Prompt tokens from the caches.
    pub(crate) cached: usize,
    /// Tokens of the answer.
    pub(crate) answer: usize,
    /// Drafted tokens.
    pub(crate) drafted: usize,
    /// Accepted drafts.
    pub(crate) accepted: usize,
    /// Seconds from the start of the prompt to the first token.
    pub(crate) prompt_seconds: f64,
    /// Seconds from the first to the last token.
    pub(crate) answer_seconds: f64,
    /// Seconds in the queue.
    pub(crate) queued_seconds: f64,
}
