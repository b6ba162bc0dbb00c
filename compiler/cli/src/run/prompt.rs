//! Prompts: token ids of a text, of a conversation, or as they were given.

use std::time::SystemTime;

use tpc_gguf::GgufFile;
use tpc_text::{
    ChatTemplate, Conversation, Ending, Markers, Message, Show, SpecialText, Start, Tokenizer,
};

use super::stream::{Stream, To};
use crate::output::{self, Failure};

/// How texts become prompts.
pub(super) enum Prompter<'t> {
    /// They do not: ids are the prompt, and answers are ids.
    Ids(Vec<u32>),
    /// A text is continued as it is.
    Text {
        tokenizer: &'t Tokenizer,
        /// The tokens of all texts and answers.
        tokens: Vec<u32>,
    },
    /// A text is a message, which the model answers.
    Messages {
        tokenizer: &'t Tokenizer,
        template: Box<ChatTemplate>,
        messages: Vec<Message>,
    },
}

impl<'t> Prompter<'t> {
    /// Texts that are continued.
    pub(super) fn of_texts(tokenizer: &'t Tokenizer) -> Prompter<'t> {
        Prompter::Text {
            tokenizer,
            tokens: Vec::new(),
        }
    }

    /// Messages that are answered, by the file's chat template, after what the model is told before.
    ///
    /// # Errors
    /// The template is no Jinja.
    pub(super) fn of_messages(
        tokenizer: &'t Tokenizer,
        file: &GgufFile,
        system: Option<&str>,
    ) -> Result<Prompter<'t>, Failure> {
        let template = ChatTemplate::from_gguf(file, None).map_err(Failure::usage)?;
        template.notes().iter().for_each(output::diagnostic);
        Ok(Prompter::Messages {
            tokenizer,
            template: Box::new(template),
            messages: system
                .map(|s| Message::new("system", s))
                .into_iter()
                .collect(),
        })
    }

    /// Whether texts are messages, whose answers end.
    pub(super) fn is_conversation(&self) -> bool {
        matches!(self, Prompter::Messages { .. })
    }

    /// The tokens of everything so far and of this text.
    ///
    /// # Errors
    /// The template refuses the conversation.
    pub(super) fn prompt(&mut self, text: &str) -> Result<Vec<u32>, Failure> {
        match self {
            Prompter::Ids(ids) => Ok(ids.clone()),
            Prompter::Text { tokenizer, tokens } => {
                // As of a prompt: no token that would end the text.
                let ids = match tokens.is_empty() {
                    true => tokenizer.encode_prompt(text),
                    false => tokenizer.encode(text, SpecialText::Read, Markers::Omit),
                };
                tokens.extend(ids);
                Ok(tokens.clone())
            }
            Prompter::Messages {
                tokenizer,
                template,
                messages,
            } => {
                messages.push(Message::new("user", text));
                let conversation = Conversation {
                    messages,
                    ending: Ending::Answer,
                    now: Some(SystemTime::now()),
                    switches: &[],
                };
                let prompt = template.render(tokenizer, &conversation);
                let prompt = prompt.map_err(Failure::usage)?;
                prompt.notes.iter().for_each(output::diagnostic);
                Ok(tokenizer.encode_prompt(&prompt.text))
            }
        }
    }

    /// A place in what was said, for [`Self::back_to`].
    pub(super) fn mark(&self) -> usize {
        match self {
            Prompter::Ids(ids) => ids.len(),
            Prompter::Text { tokens, .. } => tokens.len(),
            Prompter::Messages { messages, .. } => messages.len(),
        }
    }

    /// Forgets what was said behind a place.
    pub(super) fn back_to(&mut self, mark: usize) {
        match self {
            Prompter::Ids(ids) => ids.truncate(mark),
            Prompter::Text { tokens, .. } => tokens.truncate(mark),
            Prompter::Messages { messages, .. } => messages.truncate(mark),
        }
    }

    /// Forgets all that was said, but what the model was told before.
    pub(super) fn clear(&mut self) {
        let told = match self {
            Prompter::Messages { messages, .. } => {
                messages.iter().take_while(|m| m.role == "system").count()
            }
            _ => 0,
        };
        self.back_to(told);
    }

    /// The messages and answers so far.
    pub(super) fn turns(&self) -> Option<&[Message]> {
        match self {
            Prompter::Messages { messages, .. } => Some(messages),
            _ => None,
        }
    }

    /// Goes on with these turns. What the model was told before them holds, unless it is told something else now.
    pub(super) fn resume(&mut self, turns: &[Message]) {
        if let Prompter::Messages { messages, .. } = self {
            let told = turns.iter().take_while(|m| m.role == "system").count();
            let from = if messages.is_empty() { 0 } else { told };
            messages.extend_from_slice(&turns[from..]);
        }
    }

    /// Goes on with a text that is no conversation.
    pub(super) fn resume_text(&mut self, text: &[u32]) {
        if let Prompter::Text { tokens, .. } = self {
            tokens.extend_from_slice(text);
        }
    }

    /// Takes note of the answer to the last text.
    ///
    /// # Errors
    /// An id without a token.
    pub(super) fn answered(&mut self, answer: &[u32]) -> Result<(), Failure> {
        match self {
            Prompter::Ids(ids) => ids.extend_from_slice(answer),
            Prompter::Text { tokens, .. } => tokens.extend_from_slice(answer),
            Prompter::Messages {
                tokenizer,
                messages,
                ..
            } => {
                let text = tokenizer.decode(answer, Start::Continuation, Show::Text);
                messages.push(Message::new("assistant", text.map_err(Failure::usage)?));
            }
        }
        Ok(())
    }

    /// What answers are written to.
    pub(super) fn stream(&self, to: To) -> Stream<'t> {
        match self {
            Prompter::Ids(_) => Stream::ids(to),
            Prompter::Text { tokenizer, .. } | Prompter::Messages { tokenizer, .. } => {
                Stream::text(tokenizer, to)
            }
        }
    }
}
