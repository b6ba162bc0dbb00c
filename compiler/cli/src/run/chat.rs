//! A chat on a terminal, message by message, to the end of input.

use std::io::{self, Write};

use tpc_diag::Diagnostic;

use super::generate::{Asked, Generation, WhenFull, fits};
use super::lane::{End, Lane};
use super::prompt::Prompter;
use super::stream::To;
use super::terminal::{Terminal, Typed};
use crate::codes::LONG_PROMPT;
use crate::output::{self, Failure};

/// What a chat begins with.
const HOW: &str = "A line is a message; one that ends with \\ goes on. Ctrl-C ends an answer; /clear forgets the conversation; /exit \
                   or Ctrl-D ends.\n";

/// How a chat ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// By its user, or with its output.
    Done,
    /// By Ctrl-C at the prompt.
    Interrupted,
}

/// Answers each line of a terminal, to its end. What is wrong with a message is told, and the chat goes on without it.
///
/// # Errors
/// Those of the model, and of input and output.
pub(super) fn talk<'t>(
    generation: &mut Generation<'_>,
    lane: &mut Lane<'t>,
    prompter: &mut Prompter<'t>,
) -> Result<Ended, Failure> {
    let say = |text: &str| {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    };
    say(HOW);
    let mut terminal = Terminal::open()?;
    let mut conversation = Conversation::of(lane);
    loop {
        let text = match terminal.next()? {
            Typed::Message(text) => text,
            Typed::End => return Ok(Ended::Done),
            Typed::Interrupted => return Ok(Ended::Interrupted),
        };
        match text.trim() {
            "" => continue,
            "/exit" | "/quit" => return Ok(Ended::Done),
            "/clear" => {
                prompter.clear();
                conversation = Conversation::default();
                generation.rewind(lane, &[])?;
                lane.sampler.reset();
                continue;
            }
            command if is_command(command) => {
                say(HOW);
                continue;
            }
            text => {
                let before = prompter.mark();
                let asked = prompter.prompt(text);
                lane.stream = prompter.stream(To::Output);
                let answered = asked.and_then(|ids| conversation.answer(generation, lane, &ids));
                if let Err(failure) = answered {
                    // The model's own failures end the chat; a message that cannot be read does not.
                    if failure.status == 1 {
                        return Err(failure);
                    }
                    prompter.back_to(before);
                    failure.diagnostics.iter().for_each(output::diagnostic);
                    continue;
                }
            }
        }
        if lane.end == Some(End::ReaderGone) {
            return Ok(Ended::Done);
        }
        prompter.answered(&lane.answer)?;
    }
}

/// Whether this is a word with a slash before it, which is meant as a command.
fn is_command(text: &str) -> bool {
    let word = text.strip_prefix('/');
    word.is_some_and(|w| w.bytes().all(|b| b.is_ascii_lowercase()))
}

/// What was said, of which the caches may have forgotten the older half.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// All tokens that were read, those that are forgotten too.
    said: Vec<u32>,
    /// The tokens of the first message, with all before it.
    first: Option<usize>,
}

impl Conversation {
    /// That of a lane that has read something.
    pub(super) fn of(lane: &Lane<'_>) -> Conversation {
        Conversation {
            said: lane.read.clone(),
            first: None,
        }
    }

    /// Generates the answer to the last of all messages, whose tokens these are.
    ///
    /// # Errors
    /// TPC0426 for a message that the context cannot take, with nothing changed; and those of the model.
    pub(super) fn answer(
        &mut self,
        generation: &mut Generation<'_>,
        lane: &mut Lane<'_>,
        ids: &[u32],
    ) -> Result<(), Failure> {
        if ids.len() <= generation.n_ctx {
            generation.rewind(lane, ids)?;
        } else if generation.when_full == WhenFull::End {
            return fits(ids.len(), generation.n_ctx, Asked::InChat);
        } else {
            self.go_on(generation, lane, ids)?;
        }
        self.said.clear();
        self.said.extend_from_slice(ids);
        lane.prompt = *self.first.get_or_insert(ids.len());
        generation.answer(lane)?;
        let read = lane.answer.len().saturating_sub(lane.unread());
        self.said.extend_from_slice(&lane.answer[..read]);
        super::finish(lane, generation)
    }

    /// Lets a lane read what is new of a conversation that is longer than the context.
    fn go_on(
        &self,
        generation: &mut Generation<'_>,
        lane: &mut Lane<'_>,
        ids: &[u32],
    ) -> Result<(), Failure> {
        let alike = self
            .said
            .iter()
            .zip(ids)
            .take_while(|(a, b)| a == b)
            .count();
        let (new, gone) = (ids.len() - alike, self.said.len() - alike);
        let kept = match generation.when_full {
            WhenFull::Shift { keep } => keep.or(self.first).unwrap_or(0),
            WhenFull::End => 0,
        };
        let left = lane.read.len().saturating_sub(gone);
        let fits = new + kept + 2 <= generation.n_ctx && left > kept;
        if !fits || !generation.model.can_truncate(lane.seq, left as u64) {
            let n_ctx = generation.n_ctx;
            let message = format!(
                "the message has {new} tokens that are new, and a context of {n_ctx} cannot take them after a shift"
            );
            let d = Diagnostic::new(&LONG_PROMPT, "prompt", message);
            return Err(Failure::usage(d.help(
                "a shorter message; /clear begins a new conversation; or a larger context, -c N",
            )));
        }
        generation.back_to(lane, left)?;
        lane.pending.extend_from_slice(&ids[alike..]);
        Ok(())
    }
}
