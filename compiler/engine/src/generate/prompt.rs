//! Prompts: token ids of a text, of a conversation, or as they were given.

use std::time::SystemTime;

use tpc_gguf::GgufFile;
use tpc_text::{
    ChatTemplate, Conversation, Ending, Markers, Message, Show, SpecialText, Start, Tokenizer,
};

use crate::error::Error;
use crate::observer::Observer;

/// How texts become prompts.
pub enum Prompter<'t> {
    /// They do not: ids are the prompt, and answers are ids.
    Ids(Vec<u32>),
    /// A text is continued as it is.
    Text {
        /// The file's tokenizer.
        tokenizer: &'t Tokenizer,
        /// The tokens of all texts and answers.
        tokens: Vec<u32>,
    },
    /// A text is a message, which the model answers.
    Messages {
        /// The file's tokenizer.
        tokenizer: &'t Tokenizer,
        /// The file's chat template.
        template: Box<ChatTemplate>,
        /// The messages and answers so far.
        messages: Vec<Message>,
    },
}

impl<'t> Prompter<'t> {
    /// Texts that are continued.
    pub fn of_texts(tokenizer: &'t Tokenizer) -> Prompter<'t> {
        Prompter::Text {
            tokenizer,
            tokens: Vec::new(),
        }
    }

    /// Messages that are answered, by the file's chat template, after what the model is told before.
    ///
    /// # Errors
    /// The template is no Jinja.
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

    /// Whether texts are messages, whose answers end.
    pub fn is_conversation(&self) -> bool {
        matches!(self, Prompter::Messages { .. })
    }

    /// The tokens of everything so far and of this text.
    ///
    /// # Errors
    /// The template refuses the conversation.
    pub fn prompt(&mut self, text: &str, observer: &dyn Observer) -> Result<Vec<u32>, Error> {
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
                let prompt = prompt.map_err(Error::usage)?;
                prompt.notes.iter().for_each(|d| observer.diagnostic(d));
                Ok(tokenizer.encode_prompt(&prompt.text))
            }
        }
    }

    /// A place in what was said, for [`Self::back_to`].
    pub fn mark(&self) -> usize {
        match self {
            Prompter::Ids(ids) => ids.len(),
            Prompter::Text { tokens, .. } => tokens.len(),
            Prompter::Messages { messages, .. } => messages.len(),
        }
    }

    /// Forgets what was said behind a place.
    pub fn back_to(&mut self, mark: usize) {
        match self {
            Prompter::Ids(ids) => ids.truncate(mark),
            Prompter::Text { tokens, .. } => tokens.truncate(mark),
            Prompter::Messages { messages, .. } => messages.truncate(mark),
        }
    }

    /// Forgets all that was said, but what the model was told before.
    pub fn clear(&mut self) {
        let told = match self {
            Prompter::Messages { messages, .. } => {
                messages.iter().take_while(|m| m.role == "system").count()
            }
            _ => 0,
        };
        self.back_to(told);
    }

    /// The messages and answers so far.
    pub fn turns(&self) -> Option<&[Message]> {
        match self {
            Prompter::Messages { messages, .. } => Some(messages),
            _ => None,
        }
    }

    /// Goes on with these turns. What the model was told before them holds, unless it is told something else now.
    pub fn resume(&mut self, turns: &[Message]) {
        if let Prompter::Messages { messages, .. } = self {
            let told = turns.iter().take_while(|m| m.role == "system").count();
            let from = if messages.is_empty() { 0 } else { told };
            messages.extend_from_slice(&turns[from..]);
        }
    }

    /// Goes on with a text that is no conversation.
    pub fn resume_text(&mut self, text: &[u32]) {
        if let Prompter::Text { tokens, .. } = self {
            tokens.extend_from_slice(text);
        }
    }

    /// Takes note of the answer to the last text.
    ///
    /// # Errors
    /// An id without a token.
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

    /// Returns the tokenizer of answers; `None` if answers are ids.
    pub const fn tokenizer(&self) -> Option<&'t Tokenizer> {
        match self {
            Prompter::Ids(_) => None,
            Prompter::Text { tokenizer, .. } | Prompter::Messages { tokenizer, .. } => {
                Some(tokenizer)
            }
        }
    }
}
