//! Parsing a command line of llama.cpp.

use std::iter::Peekable;
use std::slice::Iter;

use super::options::{Arity, OPTIONS, OptionSpec, Setting};
use tpc_diag::{Diagnostic, codes};

/// An option of a command line, or an environment variable before it, with its argument.
#[derive(Clone, Debug)]
pub struct ParsedOption {
    /// The option.
    pub spec: &'static OptionSpec,
    /// Its spelling in the line: `-c`, or `LLAMA_ARG_CTX_SIZE`.
    pub spelling: String,
    /// Its argument, or its two arguments with a space between; `on` or `off` for a switch.
    pub value: String,
    /// Whether an environment variable stands for it.
    pub from_env: bool,
}

/// A command line of llama.cpp.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// The program.
    pub program: String,
    /// The options: those of the environment, then those of the line in order.
    pub options: Vec<ParsedOption>,
    /// Words that are not options of the program.
    pub unknown: Vec<String>,
}

/// The words that are not read yet.
type Words<'w> = Peekable<Iter<'w, String>>;

/// Whether a value switches its setting off.
fn is_off(value: &str) -> bool {
    matches!(value, "0" | "off" | "false" | "disabled")
}

fn error(message: String) -> Diagnostic {
    Diagnostic::new(&codes::COMMAND_LINE, "command line", message)
}

impl CommandLine {
    /// Parses the words of a line: any number of `NAME=VALUE`, the program, its options.
    ///
    /// # Errors
    /// TPC0400 when there is no program, when it is not one of llama.cpp's, or when an option lacks its argument.
    pub fn parse(words: &[String]) -> Result<CommandLine, Diagnostic> {
        let mut words = words.iter().peekable();
        words.next_if(|w| *w == "env");
        let mut options = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|w| assignment(w)) {
            words.next();
            options.extend(variable(name, value));
        }
        let Some(program) = words.next() else {
            return Err(error("no program follows `--`".to_owned())
                .help("tpc lint -- llama-server -m MODEL.gguf …"));
        };
        let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
        let is_llama = |prefix: &&str| name.starts_with(prefix);
        if !["llama", "server", "main"].iter().any(is_llama) {
            return Err(error(format!("`{program}` is not a program of llama.cpp"))
                .help("a line such as `llama-server -m MODEL.gguf -sm tensor`"));
        }
        let mut out = CommandLine {
            program: program.clone(),
            options,
            unknown: Vec::new(),
        };
        while let Some(word) = words.next() {
            match OPTIONS.iter().find(|o| o.names.contains(&word.as_str())) {
                Some(spec) => out.options.push(ParsedOption {
                    spec,
                    spelling: word.clone(),
                    value: argument(spec, word, &mut words)?,
                    from_env: false,
                }),
                None => {
                    out.unknown.push(word.clone());
                    // The words up to the next option are its arguments, if it has any.
                    while word.starts_with('-') && words.next_if(|w| !w.starts_with('-')).is_some()
                    {
                    }
                }
            }
        }
        Ok(out)
    }

    /// Every option that changes the setting; the last one takes effect.
    pub fn all(&self, setting: Setting) -> impl DoubleEndedIterator<Item = &ParsedOption> {
        self.options
            .iter()
            .filter(move |o| o.spec.setting == setting)
    }

    /// The option that takes effect: the last of the line, or else of the environment.
    pub fn last(&self, setting: Setting) -> Option<&ParsedOption> {
        self.all(setting).next_back()
    }

    /// The value of a setting.
    pub fn value(&self, setting: Setting) -> Option<&str> {
        self.last(setting).map(|o| o.value.as_str())
    }

    /// The value of a setting as a count.
    pub fn count(&self, setting: Setting) -> Option<u64> {
        self.value(setting)?.parse().ok()
    }

    /// Whether a setting is switched off.
    pub fn is_off(&self, setting: Setting) -> bool {
        self.value(setting).is_some_and(is_off)
    }

    /// Whether tensors are split among the devices (`-sm tensor`).
    pub fn splits_tensors(&self) -> bool {
        self.value(Setting::SplitMode) == Some("tensor")
    }
}

/// The name and the value of `NAME=VALUE`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    (!name.is_empty() && name.chars().all(upper)).then_some((name, value))
}

/// The option that an environment variable stands for.
fn variable(name: &str, value: &str) -> Option<ParsedOption> {
    let spec = OPTIONS
        .iter()
        .find(|o| o.env == name && !o.env.is_empty())?;
    let on_off = |is_on: bool| if is_on { "on" } else { "off" };
    let value = match spec.arity {
        Arity::Switch => on_off(!is_off(value)),
        Arity::NegatedSwitch => on_off(is_off(value)),
        Arity::One | Arity::Two | Arity::OnOffAuto => value,
    };
    Some(ParsedOption {
        spec,
        spelling: name.to_owned(),
        value: value.to_owned(),
        from_env: true,
    })
}

/// The argument of an option, taken from the words behind it.
fn argument(
    spec: &OptionSpec,
    spelling: &str,
    words: &mut Words<'_>,
) -> Result<String, Diagnostic> {
    let mut next = || {
        let missing =
            || error(format!("`{spelling}` needs a value")).help(format!("{spelling} VALUE"));
        words.next().cloned().ok_or_else(missing)
    };
    match spec.arity {
        Arity::Switch => Ok("on".to_owned()),
        Arity::NegatedSwitch => Ok("off".to_owned()),
        Arity::One => next(),
        Arity::Two => Ok(format!("{} {}", next()?, next()?)),
        Arity::OnOffAuto => {
            let known = ["on", "off", "auto", "0", "1", "true", "false"];
            let value = words.next_if(|w| known.contains(&w.as_str()));
            Ok(value.map_or("on", String::as_str).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CommandLine, Diagnostic> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        CommandLine::parse(&words)
    }

    #[test]
    fn options_and_environment() {
        let line = "CUDA_VISIBLE_DEVICES=0 LLAMA_ARG_CTX_SIZE=4096 LLAMA_ARG_KV_OFFLOAD=false ./llama-server -m x.gguf \
                    -fa -c 8192 -sm tensor -ot a=CPU -ot b=CPU --port 80 --frobnicate 3 --jinja";
        let line = read(line).expect("a line");
        assert_eq!(line.value(Setting::Model), Some("x.gguf"));
        assert_eq!(line.count(Setting::Context), Some(8192));
        assert!(line.is_off(Setting::KvOffload) && line.splits_tensors());
        assert_eq!(line.value(Setting::FlashAttention), Some("on"));
        assert_eq!(line.all(Setting::Override).count(), 2);
        assert_eq!(line.unknown, ["--frobnicate"]);
        let off = read("llama-cli -fa off -nkvo").expect("a line");
        assert!(off.is_off(Setting::FlashAttention) && off.is_off(Setting::KvOffload));
        let old = read("LLAMA_ARG_NO_KV_OFFLOAD=1 llama-cli").expect("a line");
        assert!(old.is_off(Setting::KvOffload));
    }

    #[test]
    fn incomplete_lines_are_refused() {
        for bad in ["", "LLAMA_ARG_CTX_SIZE=1", "vllm serve", "llama-server -m"] {
            let d = read(bad).expect_err(bad);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0400", true), "{bad}");
        }
    }

    #[test]
    fn every_spelling_belongs_to_one_option() {
        let mut seen = std::collections::BTreeSet::new();
        for name in OPTIONS.iter().flat_map(|f| f.names) {
            assert!(name.starts_with('-') && seen.insert(name), "{name}");
        }
    }
}
