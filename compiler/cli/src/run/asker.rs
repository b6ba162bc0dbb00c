//! Reads the prompts of the command: texts, files, lists of ids, or a chat.

use std::io::{self, IsTerminal};
use std::path::Path;

use tpc_diag::{Diagnostic, codes};
use tpc_engine::check_tokens;
use tpc_engine::generate::Prompter;
use tpc_gguf::GgufFile;
use tpc_text::{ChatTemplate, Tokenizer};

use super::args::{Args, TokenIds};
use crate::input;
use crate::output::{self, Console, Failure};

/// True if prompts are the lines of a terminal or, with `--chat-lines`, of standard input.
fn chats(args: &Args) -> bool {
    args.chat_lines
        || args.tokens.is_empty()
            && args.prompt.is_empty()
            && args.file.is_none()
            && args.prompts.is_none()
            && io::stdin().is_terminal()
}

/// Returns the file's tokenizer, or `None` if the prompts are token ids.
pub(super) fn tokenizer(args: &Args, file: &GgufFile) -> Result<Option<Tokenizer>, Failure> {
    let found = Tokenizer::from_gguf(file);
    if !args.tokens.is_empty() {
        return Ok(found.ok());
    }
    let found = found.map_err(|d| {
        Failure::usage(match d.code.id == tpc_text::NO_TOKENIZER.id {
            true => d.help("use a file with a vocabulary, or give token ids: --tokens 1,2,3"),
            false => d,
        })
    })?;
    found.notes().iter().for_each(output::diagnostic);
    Ok(Some(found))
}

pub(super) struct Asker<'a, 't> {
    pub(super) args: &'a Args,
    pub(super) file: &'a GgufFile,
    pub(super) tokenizer: Option<&'t Tokenizer>,
}

impl<'t> Asker<'_, 't> {
    /// Returns the converter of texts into prompts. Uses a chat template if the file has one or an option requests a
    /// chat.
    pub(super) fn prompter(&self) -> Result<Prompter<'t>, Failure> {
        let args = self.args;
        let Some(tokenizer) = self.tokenizer.filter(|_| args.tokens.is_empty()) else {
            return Ok(Prompter::Ids(Vec::new()));
        };
        let asked = args.system_prompt.is_some() || chats(args);
        match !args.raw && (asked || ChatTemplate::is_in(self.file)) {
            true => {
                let system = args.system_prompt.as_deref();
                let console = Console::default();
                Ok(Prompter::of_messages(
                    tokenizer, self.file, system, &console,
                )?)
            }
            false => Ok(Prompter::of_texts(tokenizer)),
        }
    }

    /// Checks that the model's vocabulary has every token id.
    ///
    /// # Errors
    /// Returns TPC0400 for the first id that is not in the vocabulary.
    pub(super) fn in_vocabulary(&self, n_vocab: usize) -> Result<(), Failure> {
        let ids = self.args.tokens.iter().flat_map(|TokenIds(ids)| ids);
        Ok(check_tokens(ids.copied(), n_vocab, "--tokens")?)
    }

    /// Returns the tokens of all prompts, or an empty list for a chat. A single text continues the conversation of
    /// `prompter`. An empty prompt continues the text of `--load`.
    pub(super) fn prompts(&self, prompter: &mut Prompter<'t>) -> Result<Vec<Vec<u32>>, Failure> {
        let args = self.args;
        if chats(args) {
            return Ok(Vec::new());
        }
        let texts = texts(args)?;
        // Each of several prompts starts its own conversation.
        let console = Console::default();
        let of_text = |text: &String| Ok(self.prompter()?.prompt(text, &console)?);
        let mut out = match texts.as_slice() {
            [one] if one.is_empty() && args.kept.goes_on() && !prompter.is_conversation() => {
                vec![Vec::new()]
            }
            [one] => vec![prompter.prompt(one, &console)?],
            several => several
                .iter()
                .map(of_text)
                .collect::<Result<_, Failure>>()?,
        };
        out.extend(args.tokens.iter().map(|TokenIds(ids)| ids.clone()));
        let wrong = |option, what, help: &str| {
            let d = Diagnostic::new(&codes::COMMAND_LINE, option, what);
            Err(Failure::usage(d.help(help)))
        };
        if out.iter().any(Vec::is_empty) && !args.kept.goes_on() {
            let help = "give a text, or ids such as `--tokens 1,2,3`";
            return wrong("--prompt", "the prompt is empty", help);
        }
        if out.len() > 1 && args.kept.is_asked() {
            let what = "a session file holds one prompt, but several are given";
            return wrong("--save", what, "give one prompt");
        }
        Ok(out)
    }
}

/// Returns the texts of the options or of standard input; empty if the prompts are token ids.
pub(super) fn texts(args: &Args) -> Result<Vec<String>, Failure> {
    Ok(match (&args.prompts, args.prompt.as_slice()) {
        _ if !args.tokens.is_empty() => Vec::new(),
        (Some(path), _) => lines(path)?,
        (None, given) => match (&args.file, given) {
            (Some(path), _) => vec![input::text_of_file(path)?],
            (None, []) => vec![input::text(None)?],
            (None, given) if args.escape => given.iter().map(|t| unescaped(t)).collect(),
            (None, given) => given.to_vec(),
        },
    })
}

fn refused(path: &Path, message: String, help: &str) -> Failure {
    let d = Diagnostic::new(&codes::FILE_ACCESS, path.display().to_string(), message);
    Failure::usage(d.help(help))
}

/// Replaces backslash escapes; keeps unknown ones.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let behind = rest.as_str();
        let hex = behind.strip_prefix('x').and_then(|h| h.get(..2));
        let hex = hex.and_then(|h| u8::from_str_radix(h, 16).ok());
        let (c, read) = match (behind.chars().next(), hex) {
            (Some('n'), _) => ('\n', 1),
            (Some('t'), _) => ('\t', 1),
            (Some('r'), _) => ('\r', 1),
            (Some(c @ ('\\' | '\'' | '"')), _) => (c, 1),
            (Some('x'), Some(byte)) if byte.is_ascii() => (char::from(byte), 3),
            _ => ('\\', 0),
        };
        out.push(c);
        rest = behind[read..].chars();
    }
    out
}

fn lines(path: &Path) -> Result<Vec<String>, Failure> {
    let refused =
        |message: String| refused(path, message, "give UTF-8 text with a prompt per line");
    let text = input::text_of_file(path)?;
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    match lines.is_empty() {
        true => Err(refused("the file does not hold a prompt".into())),
        false => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_stand_for_characters() {
        for (given, wanted) in [
            ("a\\nb", "a\nb"),
            ("\\t\\r\\\\\\'\\\"", "\t\r\\'\""),
            ("\\x41\\x0a", "A\n"),
            ("\\x4", "\\x4"),
            ("\\xff", "\\xff"),
            ("\\q\\", "\\q\\"),
            ("\\\\n", "\\n"),
            ("ä\\x€", "ä\\x€"),
        ] {
            assert_eq!(unescaped(given), wanted, "{given}");
        }
    }
}
