//! Chats on a terminal, message by message.

use std::io::{self, Write};

use tpc_engine::generate::{Conversation, End, Generator, Prompter, Slot};

use super::args::Args;
use super::finish::finish;
use super::interrupt::Interrupt;
use super::messages::Messages;
use super::stream::{Stream, To};
use super::terminal::Typed;
use crate::output::{self, Console, Failure};

/// The help at the start of a chat.
const HOW: &str = "A line is a message; \\ at its end continues the message. Ctrl-C ends an answer, /clear forgets the conversation, /exit \
                   or Ctrl-D ends the chat.\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The chat ended, or the output was closed.
    Done,
    /// The user pressed Ctrl-C at the prompt.
    Interrupted,
}

/// Answers each message, until the input ends. After an invalid message, prints the error and continues.
pub(super) fn talk<'t>(
    args: &Args,
    generator: &mut Generator<'_>,
    slot: &mut Slot<'t, Stream<'t>>,
    prompter: &mut Prompter<'t>,
    interrupt: &Interrupt,
) -> Result<Ended, Failure> {
    let say = |text: &str| {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    };
    if !args.chat_lines {
        say(HOW);
    }
    let mut messages = Messages::open(args.chat_lines)?;
    let mut conversation = Conversation::of(slot);
    loop {
        let text = match messages.next()? {
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
                generator.rewind(slot, &[])?;
                slot.sampler.reset();
                continue;
            }
            command if is_command(command) => {
                say(HOW);
                continue;
            }
            text => {
                let before = prompter.mark();
                let asked = prompter.prompt(text, &Console::default());
                slot.sink = Stream::of(prompter, To::Output);
                let answered = asked.and_then(|ids| {
                    let _work = interrupt.work();
                    conversation.answer(generator, slot, &ids)
                });
                let answered = answered.map_err(Failure::from);
                let answered = answered.and_then(|()| finish(slot, generator));
                if let Err(failure) = answered {
                    // An error of the model ends the chat; an invalid message does not.
                    if failure.status == 1 {
                        return Err(failure);
                    }
                    prompter.back_to(before);
                    failure.diagnostics.iter().for_each(output::diagnostic);
                    continue;
                }
            }
        }
        if slot.end == Some(End::SinkClosed) {
            return Ok(Ended::Done);
        }
        prompter.answered(&slot.answer)?;
    }
}

/// True for a slash followed by lowercase letters.
fn is_command(text: &str) -> bool {
    let word = text.strip_prefix('/');
    word.is_some_and(|w| w.bytes().all(|b| b.is_ascii_lowercase()))
}
