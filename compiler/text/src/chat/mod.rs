//! Chat templates: render conversations like Hugging Face's `apply_chat_template`.
//!
//! A template is a Jinja program by the file's author. It cannot access files or the environment; its only clock is the
//! caller's time.
//!
//! The number of steps and the output length are limited. Intermediate texts are not: a template that doubles a text in
//! a loop exhausts memory.

mod date;
mod functions;
mod json;

use std::fmt::Write as _;
use std::io;
use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use tpc_diag::{Diagnostic, suggest};
use tpc_gguf::{GgufFile, Metadata};

use super::codes;
use super::tokenizer::Tokenizer;

const KEY: &str = "tokenizer.chat_template";

/// The default template: ChatML, as in llama.cpp.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\
                      {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

const FUEL: u64 = 20_000_000;

/// The maximum prompt length, in bytes.
const LONGEST: usize = 64 << 20;

/// The maximum template length, in bytes. Published templates have tens of thousands of bytes.
const LONGEST_TEMPLATE: usize = 4 << 20;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The author's role: `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// Creates a message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message {
            role: role.into(),
            content: content.into(),
        }
    }
}

/// The end of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The start of an answer, which the model continues.
    Answer,
    /// The last message, complete.
    Message,
}

/// The values that a template reads.
#[derive(Clone, Debug)]
pub struct Conversation<'a> {
    /// The messages, oldest first.
    pub messages: &'a [Message],
    /// The end of the prompt.
    pub ending: Ending,
    /// The time in UTC. If it is missing, the template may use its own default date.
    pub now: Option<SystemTime>,
    /// Values of template variables such as `enable_thinking`.
    pub switches: &'a [(String, bool)],
}

/// A rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The text, including special tokens.
    pub text: String,
    /// Notes on changes to the conversation.
    pub notes: Vec<Diagnostic>,
}

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    file: String,
    environment: Environment<'static>,
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
        if source.len() > LONGEST_TEMPLATE {
            let message = format!(
                "the chat template has {} bytes, above the limit of {LONGEST_TEMPLATE}",
                source.len()
            );
            return Err(Diagnostic::new(&codes::TEMPLATE, file, message)
                .help("use a file from a source you trust"));
        }
        let mut environment = Environment::new();
        // transformers uses these settings.
        let mut syntax = SyntaxConfig::builder();
        let syntax = syntax.trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.expect("invariant: the usual delimiters are distinct"));
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        functions::add(&mut environment);
        let added =
            environment.add_template_owned(KEY, functions::without_generation_marks(source));
        added.map_err(|e| failed(file, &e))?;
        Ok(ChatTemplate {
            file: file.to_owned(),
            environment,
            notes: Vec::new(),
        })
    }

    /// Returns notes on the template.
    pub fn notes(&self) -> &[Diagnostic] {
        &self.notes
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
        let first = self.write(tokenizer, conversation, conversation.messages);
        let done = |text: String, notes| Ok(Prompt { text, notes });
        let Some(merged) = without_system(conversation.messages) else {
            return done(first.map_err(|e| failed(&self.file, &e))?, Vec::new());
        };
        let system = conversation.messages[0].content.trim();
        if first.as_ref().is_ok_and(|text| text.contains(system)) {
            return done(first.unwrap_or_default(), Vec::new());
        }
        match (self.write(tokenizer, conversation, &merged), first) {
            (Ok(text), first) if first.is_err() || text.contains(system) => {
                let message = "the chat template does not support system messages: the system message was put before the first user message";
                let d = Diagnostic::new(&codes::SYSTEM_MERGED, self.file.as_str(), message);
                done(text, vec![d])
            }
            (_, Ok(text)) => done(text, Vec::new()),
            (_, Err(e)) => Err(failed(&self.file, &e)),
        }
    }

    fn write(
        &self,
        tokenizer: &Tokenizer,
        conversation: &Conversation<'_>,
        messages: &[Message],
    ) -> Result<String, Error> {
        let messages = messages.iter().map(|m| {
            Value::from_pairs([("role", m.role.as_str()), ("content", m.content.as_str())])
        });
        let special = tokenizer.special();
        let text = |id: Option<u32>| {
            Value::from(
                id.and_then(|id| tokenizer.token_text(id))
                    .unwrap_or_default(),
            )
        };
        let mut context = vec![
            ("messages".to_owned(), messages.collect::<Value>()),
            (
                "add_generation_prompt".to_owned(),
                (conversation.ending == Ending::Answer).into(),
            ),
            ("bos_token".to_owned(), text(special.bos)),
            ("eos_token".to_owned(), text(special.eos)),
            ("pad_token".to_owned(), text(special.padding)),
            ("unk_token".to_owned(), text(special.unknown)),
            ("tools".to_owned(), ().into()),
            ("documents".to_owned(), ().into()),
        ];
        if let Some(now) = conversation.now {
            context.push(("strftime_now".to_owned(), functions::strftime_now(now)));
        }
        let switches = conversation.switches.iter();
        context.extend(switches.map(|(name, on)| (name.clone(), Value::from(*on))));
        let mut out = Limited(Vec::new());
        let template = self.environment.get_template(KEY)?;
        template.render_captured_to(Value::from_pairs(context), &mut out)?;
        String::from_utf8(out.0)
            .map_err(|_| Error::new(ErrorKind::WriteFailure, "the prompt is not UTF-8"))
    }
}

/// Merges the leading system message into the first user message; `None` if either is missing.
fn without_system(messages: &[Message]) -> Option<Vec<Message>> {
    let (system, rest) = messages.split_first()?;
    let user = rest.iter().position(|m| m.role == "user")?;
    if system.role != "system" || system.content.trim().is_empty() {
        return None;
    }
    let mut merged = rest.to_vec();
    merged[user].content = format!("{}\n{}", system.content, merged[user].content);
    Some(merged)
}

struct Limited(Vec<u8>);

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            return Err(io::Error::other(format!(
                "the prompt is longer than {LONGEST} bytes"
            )));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failed(file: &str, e: &Error) -> Diagnostic {
    let mut innermost = e;
    while let Some(source) =
        std::error::Error::source(innermost).and_then(|s| s.downcast_ref::<Error>())
    {
        innermost = source;
    }
    let line = innermost.line().or(e.line());
    let mut message = "the chat template".to_owned();
    if let Some(line) = line {
        let _ = write!(message, ", line {line},");
    }
    let detail = innermost
        .detail()
        .map_or_else(|| innermost.kind().to_string(), str::to_owned);
    let (verb, help) = match (functions::is_refusal(e), innermost.kind()) {
        (true, _) => (
            "refuses the conversation",
            "change the conversation as the message asks",
        ),
        (_, ErrorKind::OutOfFuel) => (
            "takes too many steps",
            "shorten the conversation, or use a template from a source you trust",
        ),
        (_, ErrorKind::SyntaxError) => (
            "is not valid Jinja",
            "correct the template, or use a newer file of the model",
        ),
        _ => (
            "fails",
            "correct the template, or use a newer file of the model",
        ),
    };
    let _ = write!(
        message,
        " {verb}: {}",
        detail.chars().take(400).collect::<String>()
    );
    Diagnostic::new(&codes::TEMPLATE, file, message).help(help)
}
