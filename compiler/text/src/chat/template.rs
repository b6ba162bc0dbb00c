//! The chat template of a file.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use tpc_diag::{Diagnostic, suggest};
use tpc_gguf::{GgufFile, Metadata};

use super::abilities::Abilities;
use super::conversation::{ChatRequest, Conversation, Ending, Prompt};
use super::program::{Input, Program};
use super::{functions, messages, prefill, system};
use crate::codes;
use crate::tokenizer::Tokenizer;
use crate::tools::{ToolFormat, generic};

const KEY: &str = "tokenizer.chat_template";

/// The default template: ChatML, as in llama.cpp.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\
                      {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    program: Program,
    source: String,
    format: ToolFormat,
    abilities: OnceLock<Abilities>,
    notes: Vec<Diagnostic>,
}

fn names(metadata: &Metadata) -> Vec<&str> {
    let keys = metadata.entries().iter().map(|e| e.key.as_str());
    let mut names: Vec<&str> = keys
        .filter_map(|k| k.strip_prefix(KEY)?.strip_prefix('.'))
        .collect();
    names.sort_unstable();
    names
}

impl ChatTemplate {
    /// True if the file has an unnamed template.
    pub fn is_in(file: &GgufFile) -> bool {
        file.header().metadata().contains(KEY)
    }

    /// Compiles a file's template: the named one, or else the default. If the file has no template, uses ChatML with a
    /// note in [`ChatTemplate::notes`].
    ///
    /// # Errors
    /// Returns an error if the name is unknown, or if the template is not a string, too long, or invalid Jinja.
    pub fn from_gguf(file: &GgufFile, name: Option<&str>) -> Result<ChatTemplate, Diagnostic> {
        ChatTemplate::from_metadata(file.header().metadata(), name)
    }

    /// Compiles a template from metadata.
    ///
    /// # Errors
    /// Same as [`ChatTemplate::from_gguf`].
    pub fn from_metadata(
        metadata: &Metadata,
        name: Option<&str>,
    ) -> Result<ChatTemplate, Diagnostic> {
        let file = metadata.file();
        let Some(name) = name else {
            return match metadata.get_str(KEY)? {
                Some(source) => ChatTemplate::new(file, source),
                None => {
                    let message = format!(
                        "{KEY} is missing: turns are written as ChatML, <|im_start|>user …<|im_end|>"
                    );
                    let d = Diagnostic::new(&codes::NO_TEMPLATE, file, message);
                    let mut chatml = ChatTemplate::new(file, CHATML)?;
                    chatml.notes.push(d.help(
                        "if the model was not trained on ChatML, give plain text: answers to ChatML would be bad",
                    ));
                    Ok(chatml)
                }
            };
        };
        match metadata.get_str(&format!("{KEY}.{name}"))? {
            Some(source) => ChatTemplate::new(file, source),
            None => {
                let known = names(metadata);
                let near = suggest::nearest(name, known.iter().copied());
                let near = near.map_or_else(String::new, |n| format!("did you mean {n}? "));
                let message = format!(
                    "the file does not have a template {:?}",
                    suggest::shorten(name)
                );
                let d = Diagnostic::new(&codes::TEMPLATE, file, message);
                Err(d.help(match known.is_empty() {
                    true => "the file does not have named templates".to_owned(),
                    false => format!("{near}the file has {}", known.join(", ")),
                }))
            }
        }
    }

    /// Compiles a template. Diagnostics use `file` as the file's name.
    ///
    /// # Errors
    /// Returns an error if the template is too long or invalid Jinja.
    pub fn new(file: &str, source: &str) -> Result<ChatTemplate, Diagnostic> {
        Ok(ChatTemplate {
            program: Program::new(file, source)?,
            source: source.to_owned(),
            format: ToolFormat::of_template(source),
            abilities: OnceLock::new(),
            notes: Vec::new(),
        })
    }

    /// Returns notes on the template.
    pub fn notes(&self) -> &[Diagnostic] {
        &self.notes
    }

    /// Returns the template's Jinja source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the format of the model's tool calls.
    pub fn tool_format(&self) -> ToolFormat {
        self.format
    }

    /// Renders a conversation. If the template does not support system messages, prepends the system message to the
    /// first user message, with a note.
    ///
    /// # Errors
    /// Returns an error if the template raises an exception, fails, or takes too many steps.
    pub fn render(
        &self,
        tokenizer: &Tokenizer,
        conversation: &Conversation<'_>,
    ) -> Result<Prompt, Diagnostic> {
        let messages = conversation.messages.iter();
        let messages: Vec<Value> = messages
            .map(|m| json!({"role": m.role, "content": m.content}))
            .collect();
        let switches = conversation.switches.iter();
        let variables: Map<String, Value> = switches
            .map(|(name, on)| (name.clone(), Value::Bool(*on)))
            .collect();
        let input = Input {
            messages: &messages,
            tools: None,
            generation: conversation.ending == Ending::Answer,
            now: conversation.now,
            variables: &variables,
        };
        let (text, notes) = system::write(&self.program, tokenizer, &input)?;
        Ok(Prompt { text, notes })
    }

    /// Renders a chat request.
    ///
    /// Adapts messages to the template, and describes tools in a system message if the template does not read them.
    /// Continues an assistant's last message if the request ends with [`Ending::Answer`].
    ///
    /// # Errors
    /// Returns an error for the cases of [`ChatTemplate::render`], an invalid message or tool, and a last message that
    /// the template changes.
    pub fn render_request(
        &self,
        tokenizer: &Tokenizer,
        request: &ChatRequest<'_>,
    ) -> Result<Prompt, Diagnostic> {
        messages::check_tools(request.tools)?;
        let probe = || Abilities::of(&self.program, tokenizer, &self.source, self.format);
        let abilities = self.abilities.get_or_init(probe);
        let mut messages = messages::adapt(request.messages, abilities)?;
        let reads_tools = self.format != ToolFormat::Generic;
        if !reads_tools {
            messages = generic::as_text(messages, request.tools);
        }
        let tools = (reads_tools && !request.tools.is_empty()).then_some(request.tools);
        let variables = functions::with_dates(request.variables, request.now);
        let input = Input {
            messages: &messages,
            tools,
            generation: request.ending == Ending::Answer,
            now: request.now,
            variables: &variables,
        };
        let unfinished = prefill::unfinished(&messages).filter(|_| input.generation);
        let (text, notes) = match unfinished {
            Some(content) => prefill::write(&self.program, tokenizer, &input, content)?,
            None => system::write(&self.program, tokenizer, &input)?,
        };
        Ok(Prompt { text, notes })
    }
}
