//! Conversations as prompts: the chat template of a file, rendered as Hugging Face's `apply_chat_template` renders it.
//!
//! A template is a program of the file's author, in the language of Jinja. It reads the conversation and writes the prompt;
//! it reaches nothing else: no files, no environment, no clock but the one that the caller gives. Its steps and the length
//! of its output are limited. The texts that it builds meanwhile are not: a template that doubles a text in a loop fills
//! memory.

mod date;
mod functions;
mod json;

use std::fmt::Write as _;
use std::io;
use std::time::SystemTime;

use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use tpc_diag::{Diagnostic, suggest};
use tpc_gguf::{GgufFile, Metadata};

use super::codes;
use super::tokenizer::Tokenizer;

const KEY: &str = "tokenizer.chat_template";

/// The template of models that have none: ChatML, which llama.cpp takes too.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\
                      {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// The most steps of a template.
const FUEL: u64 = 20_000_000;

/// The longest prompt, in bytes.
const LONGEST: usize = 64 << 20;

/// The longest template, in bytes; published ones have at most some tens of thousands.
const LONGEST_TEMPLATE: usize = 4 << 20;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who says it: `system`, `user`, `assistant`, `tool`.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A message.
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
    /// The begin of an answer, which the model goes on with.
    Answer,
    /// The last message.
    Message,
}

/// What a template reads.
#[derive(Clone, Debug)]
pub struct Conversation<'a> {
    /// The messages, the first first.
    pub messages: &'a [Message],
    /// What the prompt ends with.
    pub ending: Ending,
    /// The time that the template may name, in UTC; without one it has no clock, and names its own default if any.
    pub now: Option<SystemTime>,
    /// Switches of the template, such as `enable_thinking`.
    pub switches: &'a [(String, bool)],
}

/// A prompt that a template made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its text, in which special tokens are written.
    pub text: String,
    /// What was done to the conversation for it.
    pub notes: Vec<Diagnostic>,
}

/// A chat template, ready to render.
#[derive(Debug)]
pub struct ChatTemplate {
    /// The file's name, for messages.
    file: String,
    environment: Environment<'static>,
    notes: Vec<Diagnostic>,
}

/// The names of a file's templates besides the one without a name, in alphabetical order.
fn names(metadata: &Metadata) -> Vec<&str> {
    let keys = metadata.entries().iter().map(|e| e.key.as_str());
    let mut names: Vec<&str> = keys
        .filter_map(|k| k.strip_prefix(KEY)?.strip_prefix('.'))
        .collect();
    names.sort_unstable();
    names
}

impl ChatTemplate {
    /// Whether a file has a template of its own, without a name.
    pub fn is_in(file: &GgufFile) -> bool {
        file.header().metadata().contains(KEY)
    }

    /// The template of a file: the one of this name, or without a name the file's own; ChatML where it has none, which
    /// [`ChatTemplate::notes`] tells.
    ///
    /// # Errors
    /// No template of that name; one that is not a string, too long, or no Jinja.
    pub fn from_gguf(file: &GgufFile, name: Option<&str>) -> Result<ChatTemplate, Diagnostic> {
        ChatTemplate::from_metadata(file.header().metadata(), name)
    }

    /// The template that metadata have.
    ///
    /// # Errors
    /// As [`ChatTemplate::from_gguf`].
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
                        "a model that was not trained on ChatML answers badly: give it plain text",
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
                let message = format!("the file has no template {:?}", suggest::shorten(name));
                let d = Diagnostic::new(&codes::TEMPLATE, file, message);
                Err(d.help(match known.is_empty() {
                    true => "it has none with a name".to_owned(),
                    false => format!("{near}it has {}", known.join(", ")),
                }))
            }
        }
    }

    /// A template from its text; `file` is what messages name.
    ///
    /// # Errors
    /// It is too long, or no Jinja.
    pub fn new(file: &str, source: &str) -> Result<ChatTemplate, Diagnostic> {
        if source.len() > LONGEST_TEMPLATE {
            let message = format!(
                "the chat template has {} bytes: at most {LONGEST_TEMPLATE} are read",
                source.len()
            );
            return Err(Diagnostic::new(&codes::TEMPLATE, file, message)
                .help("use a file from a source you trust"));
        }
        let mut environment = Environment::new();
        // As transformers sets Jinja up.
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
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

    /// What is worth knowing of the template.
    pub fn notes(&self) -> &[Diagnostic] {
        &self.notes
    }

    /// The prompt of a conversation. A template that knows no system messages gets them before the first message of the
    /// user, which the prompt's notes tell.
    ///
    /// # Errors
    /// The template refuses the conversation, does something wrong, or takes too many steps.
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
                let message =
                    "the chat template takes no system message: it was put before the user's first";
                let d = Diagnostic::new(&codes::SYSTEM_MERGED, self.file.as_str(), message);
                done(text, vec![d])
            }
            // A template may write the text otherwise than it was given.
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
            let fields = [("role", m.role.as_str()), ("content", m.content.as_str())];
            fields.into_iter().collect::<Value>()
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
        template.render_captured_to(context.into_iter().collect::<Value>(), &mut out)?;
        String::from_utf8(out.0)
            .map_err(|_| Error::new(ErrorKind::WriteFailure, "the prompt is no UTF-8"))
    }
}

/// The messages with the text of the leading system message put before the first of the user's; `None` where there are no
/// such two.
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

/// Bytes up to a limit.
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

/// The diagnostic of a template that fails.
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
            "is no Jinja",
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
