use std::time::SystemTime;

use tpc_gguf::GgufFile;
use tpc_text::{
    ChatTemplate, Conversation, Ending, Markers, Message, Show, SpecialText, Start, Tokenizer,
};

use crate::error::Error;
use crate::observer::Observer;

/// A source of prompts, with the tokens or messages so far.
pub enum Prompter<'t> {
    /// Token ids.
    Ids(Vec<u32>),
    /// Texts without a template.
    Text {
        /// The file's tokenizer.
        tokenizer: &'t Tokenizer,
        /// Tokens of all prompts and answers so far.
        tokens: Vec<u32>,
    },
    /// Messages of a conversation.
    Messages {
        /// The file's tokenizer.
        tokenizer: &'t Tokenizer,
        /// The file's chat template.
        template: Box<ChatTemplate>,
        /// All messages and answers so far.
        messages: Vec<Message>,
    },
}

impl<'t> Prompter<'t> {
    /// Creates a source of texts.
    pub fn of_texts(tokenizer: &'t Tokenizer) -> Prompter<'t> {
        Prompter::Text {
            tokenizer,
            tokens: Vec::new(),
        }
    }

    /// Creates a source of messages in the file's template, after an optional system message.
    ///
    /// # Errors
    /// Returns an error if the template is too long or cannot be parsed.
    pub fn of_messages(
        tokenizer: &'t Tokenizer,
        file: &GgufFile,
        system: Option<&str>,
        observer: &dyn Observer,
    ) -> Result<Prompter<'t>, Error> {
        let template = ChatTemplate::from_gguf(file, None).map_err(Error::usage)?;
        template.notes().iter().for_each(|d| observer.diagnostic(d));
        Ok(Prompter::Messages {
            tokenizer,
            template: Box::new(template),
            messages: system
                .map(|s| Message::new("system", s))
                .into_iter()
                .collect(),
        })
    }

    /// True for messages.
    pub fn is_conversation(&self) -> bool {
        matches!(self, Prompter::Messages { .. })
    }

    /// Appends a text, and returns the tokens of the whole conversation or text.
    ///
    /// # Errors
    /// Returns an error if the template rejects the conversation.
    pub fn prompt(&mut self, text: &str, observer: &dyn Observer) -> Result<Vec<u32>, Error> {
        match self {
            Prompter::Ids(ids) => Ok(ids.clone()),
            Prompter::Text { tokenizer, tokens } => {
                // Only the first text gets a begin marker. No text gets an end marker.
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
                let prompt = prompt.map_err(Error::usage)?;
                prompt.notes.iter().for_each(|d| observer.diagnostic(d));
                Ok(tokenizer.encode_prompt(&prompt.text))
            }
        }
    }

    /// Returns the position, for [`Self::back_to`].
    pub fn mark(&self) -> usize {
        match self {
            Prompter::Ids(ids) => ids.len(),
            Prompter::Text { tokens, .. } => tokens.len(),
            Prompter::Messages { messages, .. } => messages.len(),
        }
    }

    /// Removes all texts after a position.
    pub fn back_to(&mut self, mark: usize) {
        match self {
            Prompter::Ids(ids) => ids.truncate(mark),
            Prompter::Text { tokens, .. } => tokens.truncate(mark),
            Prompter::Messages { messages, .. } => messages.truncate(mark),
        }
    }

    /// Removes all messages except the system message.
    pub fn clear(&mut self) {
        let system = match self {
            Prompter::Messages { messages, .. } => {
                messages.iter().take_while(|m| m.role == "system").count()
            }
            _ => 0,
        };
        self.back_to(system);
    }

    /// Returns the messages and answers; `None` for texts and ids.
    pub fn turns(&self) -> Option<&[Message]> {
        match self {
            Prompter::Messages { messages, .. } => Some(messages),
            _ => None,
        }
    }

    /// Resumes a saved conversation. The current system message, if any, replaces the saved one.
    pub fn resume(&mut self, turns: &[Message]) {
        if let Prompter::Messages { messages, .. } = self {
            let system = turns.iter().take_while(|m| m.role == "system").count();
            let from = if messages.is_empty() { 0 } else { system };
            messages.extend_from_slice(&turns[from..]);
        }
    }

    /// Resumes a saved text.
    pub fn resume_text(&mut self, text: &[u32]) {
        if let Prompter::Text { tokens, .. } = self {
            tokens.extend_from_slice(text);
        }
    }

    /// Appends the answer to the last text.
    ///
    /// # Errors
    /// Returns an error if an id is not in the vocabulary.
    pub fn answered(&mut self, answer: &[u32]) -> Result<(), Error> {
        match self {
            Prompter::Ids(ids) => ids.extend_from_slice(answer),
            Prompter::Text { tokens, .. } => tokens.extend_from_slice(answer),
            Prompter::Messages {
                tokenizer,
                messages,
                ..
            } => {
                let text = tokenizer.decode(answer, Start::Continuation, Show::Text);
                messages.push(Message::new("assistant", text.map_err(Error::usage)?));
            }
        }
        Ok(())
    }

    /// Returns the tokenizer of answers; `None` for ids.
    pub const fn tokenizer(&self) -> Option<&'t Tokenizer> {
        match self {
            Prompter::Ids(_) => None,
            Prompter::Text { tokenizer, .. } | Prompter::Messages { tokenizer, .. } => {
                Some(tokenizer)
            }
        }
    }
}
