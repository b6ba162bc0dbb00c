//! A compiled template, and its input.

use std::fmt::Write as _;
use std::io;
use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use serde_json::Map;
use tpc_diag::Diagnostic;

use super::functions;
use crate::codes;
use crate::tokenizer::Tokenizer;

const NAME: &str = "chat_template";

const FUEL: u64 = 20_000_000;

/// The maximum prompt length, in bytes.
const LONGEST: usize = 64 << 20;

/// The maximum template length, in bytes. Published templates have tens of thousands of bytes.
const LONGEST_TEMPLATE: usize = 4 << 20;

/// The values that a template reads, besides special tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    pub messages: &'a [serde_json::Value],
    /// The tools; `None` for a template that does not read them.
    pub tools: Option<&'a [serde_json::Value]>,
    /// True if the prompt ends with the start of an answer.
    pub generation: bool,
    pub now: Option<SystemTime>,
    pub variables: &'a Map<String, serde_json::Value>,
}

/// A compiled template.
#[derive(Debug)]
pub(super) struct Program {
    file: String,
    environment: Environment<'static>,
}

impl Program {
    /// Compiles a template. Diagnostics use `file` as the file's name.
    pub(super) fn new(file: &str, source: &str) -> Result<Program, Diagnostic> {
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
        let program = Program {
            file: file.to_owned(),
            environment,
        };
        program.with_source(functions::without_generation_marks(source))
    }

    fn with_source(mut self, source: String) -> Result<Program, Diagnostic> {
        match self.environment.add_template_owned(NAME, source) {
            Ok(()) => Ok(self),
            Err(e) => Err(self.failed(&e)),
        }
    }

    /// Returns the file's name.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Runs the template.
    pub(super) fn write(&self, tokenizer: &Tokenizer, input: &Input<'_>) -> Result<String, Error> {
        let special = tokenizer.special();
        let text = |id: Option<u32>| {
            Value::from(
                id.and_then(|id| tokenizer.token_text(id))
                    .unwrap_or_default(),
            )
        };
        let variables = input.variables.iter();
        let mut context: Vec<(String, Value)> = variables
            .map(|(name, value)| (name.clone(), Value::from(Serde(value))))
            .collect();
        let mut add = |name: &str, value| context.push((name.to_owned(), value));
        add("messages", Serde(input.messages).into());
        add("add_generation_prompt", input.generation.into());
        add("bos_token", text(special.bos));
        add("eos_token", text(special.eos));
        add("pad_token", text(special.padding));
        add("unk_token", text(special.unknown));
        add(
            "tools",
            input.tools.map_or_else(|| ().into(), |t| Serde(t).into()),
        );
        if !input.variables.contains_key("documents") {
            add("documents", ().into());
        }
        if let Some(now) = input.now {
            add("strftime_now", functions::strftime_now(now));
        }
        let mut out = Limited(Vec::new());
        let template = self.environment.get_template(NAME)?;
        template.render_captured_to(Value::from_pairs(context), &mut out)?;
        String::from_utf8(out.0)
            .map_err(|_| Error::new(ErrorKind::WriteFailure, "the prompt is not UTF-8"))
    }

    /// Describes an error of the template.
    pub(super) fn failed(&self, e: &Error) -> Diagnostic {
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
        Diagnostic::new(&codes::TEMPLATE, self.file.as_str(), message).help(help)
    }
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
