//! Translates options of llama.cpp, ik_llama.cpp and other programs into tpc's, before parsing.
//!
//! A subcommand's own options are unchanged. Another program's option is replaced by tpc's option, removed with a note,
//! or refused with an alternative (`table`). An unknown option is refused; the error names the nearest known option.

mod misplaced;
mod page;
mod repeated;
mod running;
mod short;
mod table;
mod words;

use std::ffi::OsString;
use std::iter::Peekable;
use std::vec::IntoIter;

use clap::{Arg, ArgAction, Command};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Arity;

use super::{codes, engine_memory_args};
use misplaced::misplaced;
pub(super) use page::rows;
use repeated::{Given, overridden};
use running::Running;
pub use short::normalise;
use table::{Effect, FOREIGN_OPTIONS, ForeignOption, Translation};
pub(super) use words::is_address;
use words::{is_option, lookup, near, own, quoted, refused};

#[derive(Debug, Default)]
pub(super) struct TranslatedLine {
    pub(super) arguments: Vec<OsString>,
    pub(super) notes: Vec<Diagnostic>,
}

/// Translates the program's arguments for their subcommand. The first argument is the program's name.
///
/// # Errors
/// Returns TPC0400 for a refused or unknown option, or for a model in place of the subcommand.
pub(super) fn translate(
    arguments: Vec<OsString>,
    program: &Command,
) -> Result<TranslatedLine, Diagnostic> {
    let Some(word) = arguments.get(1).and_then(|a| a.to_str()) else {
        return Ok(TranslatedLine {
            arguments,
            ..TranslatedLine::default()
        });
    };
    let Some(command) = program.find_subcommand(word) else {
        return match misplaced(word, &arguments[1..], program) {
            Some(d) => Err(d),
            None => Ok(TranslatedLine {
                arguments,
                ..TranslatedLine::default()
            }),
        };
    };
    let mut arguments = arguments.into_iter();
    let head: Vec<OsString> = arguments.by_ref().take(2).collect();
    let mut said = translate_words(arguments.collect(), command)?;
    said.arguments.splice(0..0, head);
    Ok(said)
}

pub(super) fn translate_words(
    words: Vec<OsString>,
    command: &Command,
) -> Result<TranslatedLine, Diagnostic> {
    let mut reader = Reader {
        command,
        words: words.into_iter().peekable(),
        said: TranslatedLine::default(),
        ignored: Vec::new(),
        undone: Vec::new(),
        engine_memory: Vec::new(),
        names_engine: false,
        given: Vec::new(),
        repository: None,
        file: None,
    };
    reader.read()?;
    Ok(reader.said)
}

/// Options with a list of values in llama-bench, but one value in tpc.
const LISTED: [&str; 9] = [
    "--ubatch-size",
    "--batch-size",
    "-b",
    "--cache-type-k",
    "--cache-type-v",
    "--n-gpu-layers",
    "--split-mode",
    "--flash-attn",
    "--no-kv-offload",
];

struct Reader<'c> {
    command: &'c Command,
    words: Peekable<IntoIter<OsString>>,
    said: TranslatedLine,
    /// Options without effect, each with the reason.
    ignored: Vec<(String, &'static str)>,
    /// Options for features that tpc does not have, each with the reason.
    undone: Vec<(String, &'static str)>,
    /// Options for llama.cpp's memory, as given.
    engine_memory: Vec<String>,
    names_engine: bool,
    /// Options with one value.
    given: Vec<Given>,
    /// The repository of `-hf`, and the position of its word.
    repository: Option<(String, usize)>,
    file: Option<String>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Diagnostic> {
        while let Some(word) = self.words.next() {
            if word == "--" {
                self.said.arguments.push(word);
                self.said.arguments.extend(self.words.by_ref());
                break;
            }
            match word.to_str() {
                Some(text) if text.len() > 1 && text.starts_with('-') => {
                    self.option(text.to_owned())?;
                }
                _ => self.said.arguments.push(word),
            }
        }
        self.take_file()?;
        let notes = overridden(&mut self.said.arguments, &self.given);
        self.said.notes.extend(notes);
        self.told();
        Ok(())
    }

    fn option(&mut self, text: String) -> Result<(), Diagnostic> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (text.clone(), None),
        };
        let own = own(self.command, &name);
        if self.command.get_name() == "bench" && self.is_switched(&name, value.as_deref())? {
            return Ok(());
        }
        let foreign = lookup(&name).filter(|h| match h.effect {
            // For an option of the subcommand, only the value may need translation.
            Effect::Translated(to, _) => to == name || own.is_none(),
            _ => own.is_none(),
        });
        if let Some(foreign) = foreign.filter(|h| self.concerns(h)) {
            return self.foreign(foreign, &name, value);
        }
        let takes =
            own.is_some_and(|a| matches!(a.get_action(), ArgAction::Set | ArgAction::Append));
        if own.is_none() && !self.is_cluster(&name) {
            return Err(self.unknown(&name));
        }
        let start = self.said.arguments.len();
        self.said.arguments.push(text.into());
        if takes && value.is_none() {
            let optional = own
                .and_then(Arg::get_num_args)
                .is_some_and(|n| n.min_values() == 0);
            // Options in one word, such as `-ctk q8_0 -ctv q8_0`, are a value.
            let several = |w: &OsString| w.to_str().is_some_and(|w| w.contains(' '));
            let hyphens = own.is_some_and(Arg::is_allow_hyphen_values_set);
            let taken =
                (self.words).next_if(|w| !optional && (!is_option(w) || hyphens && several(w)));
            self.said.arguments.extend(taken);
        }
        self.took(own, start);
        Ok(())
    }

    fn took(&mut self, own: Option<&Arg>, start: usize) {
        // `tpc run` drafts, so that it needs the number of drafts itself.
        let drafts = own.is_some_and(|a| a.get_long() == Some("spec-draft-n-max"))
            && self.command.get_name() == "run";
        let heading = own.and_then(Arg::get_help_heading);
        if heading == Some(engine_memory_args::HEADING) && !drafts {
            let text = self.said.arguments[start..].join(" ".as_ref());
            self.engine_memory.push(text.to_string_lossy().into_owned());
        }
        self.names_engine |= own.is_some_and(|a| a.get_long() == Some("engine"));
        let words = start..self.said.arguments.len();
        let given = own.and_then(|arg| Given::new(self.command, arg, words));
        self.given.extend(given);
    }

    /// Reads llama-bench's values of options that are switches or have one value in tpc: `-nkvo 1`, `-ub 16,32`.
    /// Returns true if the option needs no further handling.
    fn is_switched(&mut self, name: &str, value: Option<&str>) -> Result<bool, Diagnostic> {
        let behind = value.is_none();
        let next = self.words.peek().and_then(|w| w.to_str());
        let value = value.or(next).unwrap_or_default().to_owned();
        if LISTED.contains(&name) && value.contains(',') {
            return Err(refused(
                name,
                format!("`{name} {value}` is a list, but tpc bench takes one value of {name}"),
                format!(
                    "for v in {}; do tpc bench … {name} $v; done",
                    value.replace(',', " ")
                ),
            ));
        }
        if name != "--no-kv-offload" || !["0", "1"].contains(&value.as_str()) {
            return Ok(false);
        }
        if behind {
            self.words.next();
        }
        if value == "1" {
            self.said.arguments.push(name.into());
        }
        Ok(true)
    }

    fn concerns(&self, foreign: &ForeignOption) -> bool {
        let plans = own(self.command, "--split-mode").is_some();
        match foreign.effect {
            Effect::Model | Effect::Repository | Effect::RepositoryFile => {
                plans || self.command.get_arguments().any(|a| a.get_id() == "model")
            }
            _ => plans,
        }
    }

    /// True for words that clap parses: short options in one word (`-vc4096`), negative numbers, and all options of
    /// subcommands without placement options.
    fn is_cluster(&self, name: &str) -> bool {
        let rest = name.trim_start_matches('-');
        let first = rest.chars().next();
        if name.starts_with("--") {
            // Every command has `--help`.
            return rest == "help" || own(self.command, "--split-mode").is_none();
        }
        let digits = rest
            .chars()
            .nth(1)
            .is_none_or(|c| c.is_ascii_digit() || c == '=');
        let letter =
            first.is_some_and(|c| own(self.command, &format!("-{c}")).is_some() || c == 'h');
        first.is_none_or(|c| c.is_ascii_digit() || c == '.')
            || (letter && digits)
            || own(self.command, "--split-mode").is_none()
    }

    fn unknown(&self, name: &str) -> Diagnostic {
        let ours = self.command.get_arguments();
        let ours: Vec<String> = ours
            .filter_map(|a| Some(format!("--{}", a.get_long()?)))
            .collect();
        let short = short::SHORT.iter().map(|(s, _)| *s);
        let own = near(name, ours.iter().map(String::as_str).chain(short));
        let theirs = || near(name, FOREIGN_OPTIONS.iter().flat_map(ForeignOption::names));
        let list = format!("`tpc {} --help` lists the options", self.command.get_name());
        let help = match own.or_else(theirs) {
            Some(near) => format!("did you mean {near}? {list}"),
            None => list,
        };
        refused(name, format!("unknown option `{name}`"), help)
    }

    fn value(
        &mut self,
        foreign: &ForeignOption,
        name: &str,
        given: Option<String>,
    ) -> Result<String, Diagnostic> {
        if let Some(value) = given {
            return Ok(value);
        }
        let mut next = || {
            let word = self.words.next_if(|w| !is_option(w) && w != "--");
            word.map(|w| w.to_string_lossy().into_owned())
        };
        let value = match foreign.arity() {
            Arity::Switch | Arity::NegatedSwitch => None,
            Arity::One => next(),
            Arity::Two => next().and_then(|a| Some(format!("{a} {}", next()?))),
            Arity::OnOffAuto => {
                let known = ["on", "off", "auto", "0", "1", "true", "false"];
                let word = self.words.next_if(|w| known.iter().any(|k| w == k));
                word.map(|w| w.to_string_lossy().into_owned())
            }
        };
        let needed = matches!(foreign.arity(), Arity::One | Arity::Two)
            && !matches!(
                foreign.effect,
                Effect::Ignored(_) | Effect::Unplanned(_) | Effect::Refused(..)
            );
        match value {
            None if needed => Err(refused(
                name,
                format!("`{name}` needs a value"),
                match foreign.effect {
                    Effect::Repository => format!(
                        "give a repository: {name} USER/NAME:Q4_K_M, or {name} USER/NAME -hff FILE.gguf"
                    ),
                    Effect::Model => format!("give the model: {name} MODEL.gguf"),
                    _ => format!("write {name} VALUE"),
                },
            )),
            value => Ok(value.unwrap_or_default()),
        }
    }

    fn foreign(
        &mut self,
        foreign: &ForeignOption,
        name: &str,
        given: Option<String>,
    ) -> Result<(), Diagnostic> {
        let value = self.value(foreign, name, given)?;
        let shown = match value.is_empty() {
            true => name.to_owned(),
            false => format!("{name} {value}"),
        };
        match foreign.effect {
            Effect::Model => self.said.arguments.push(value.into()),
            Effect::Repository => self.take_repository(&value),
            Effect::RepositoryFile => self.file = Some(value),
            Effect::Means(option) => self.means(option, &value, &shown, None),
            Effect::Translated(option, translation) => match translation(&value) {
                Translation::Same => self.push(option, &value),
                Translation::Other(value, why) => self.means(option, &value, &shown, Some(why)),
                Translation::Dropped(why) => self.ignored.push((shown, why)),
            },
            Effect::Unplanned(why) if self.changes_results(why) => {
                if let Some(why) = running::off(name, &value) {
                    self.ignored.push((shown, why));
                    return Ok(());
                }
                let command = self.command.get_name();
                let result = match command {
                    "perplexity" => "perplexity",
                    _ => "text",
                };
                return Err(refused(
                    name,
                    format!(
                        "`{shown}` would change the {result}, but tpc {command} does not support it yet"
                    ),
                    format!("leave out the option; `tpc {command} --help` lists the options"),
                ));
            }
            Effect::Ignored(why) | Effect::Unplanned(why) => {
                match running::meaning(self.command.get_name(), name, why) {
                    None => self.ignored.push((shown, why)),
                    Some(Running::Same(why)) => self.ignored.push((shown, why)),
                    Some(Running::Undone(why)) => self.undone.push((shown, why)),
                }
            }
            Effect::Refused(what, cure) => {
                return Err(refused(
                    name,
                    format!("`{shown}` is not an option of tpc: {what}"),
                    cure,
                ));
            }
        }
        Ok(())
    }

    /// True if the subcommand runs the model, and options with this reason change its results.
    fn changes_results(&self, why: &str) -> bool {
        let scores = self.command.get_name() == "perplexity";
        own(self.command, "--temp").is_some()
            || scores && [table::BESIDE, table::POSITIONS].contains(&why)
    }

    fn push(&mut self, option: &str, value: &str) {
        let start = self.said.arguments.len();
        self.said.arguments.push(format!("{option}={value}").into());
        self.took(own(self.command, option), start);
    }

    /// Replaces an option by tpc's `option`; removes it if the subcommand has no such option. Adds a note.
    fn means(&mut self, option: &'static str, value: &str, shown: &str, why: Option<&'static str>) {
        if own(self.command, option).is_none() {
            self.ignored
                .push((shown.to_owned(), "this command does not have an equivalent"));
            return;
        }
        let same = format!("{option} {}", quoted(value));
        let message = match why {
            Some(why) => format!("`{shown}` is read as `{same}`: {why}"),
            None => format!("`{shown}` is read as `{same}`"),
        };
        let d = Diagnostic::new(&codes::READ_AS, shown, message);
        self.said.notes.push(d.help(format!("write {same}")));
        self.push(option, value);
    }

    /// Adds the word `hf://REPOSITORY` in place of the option. The last repository counts.
    fn take_repository(&mut self, repository: &str) {
        let bare = repository.strip_prefix("hf://").unwrap_or(repository);
        let word = format!("hf://{bare}").into();
        let at = match &self.repository {
            Some((_, at)) => *at,
            None => self.said.arguments.len(),
        };
        match self.said.arguments.get_mut(at) {
            Some(before) => *before = word,
            None => self.said.arguments.push(word),
        }
        self.repository = Some((bare.to_owned(), at));
    }

    /// Adds the file of `-hff` to the repository's word.
    fn take_file(&mut self) -> Result<(), Diagnostic> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let Some((repository, at)) = &self.repository else {
            return Err(refused(
                "-hff",
                format!("`-hff {file}` needs a repository"),
                format!(
                    "add -hf USER/NAME, or give the file: tpc {} {}",
                    self.command.get_name(),
                    quoted(&file)
                ),
            ));
        };
        let name = repository.split(':').next().unwrap_or_default();
        if let Some(word) = self.said.arguments.get_mut(*at) {
            *word = format!("hf://{name}/{file}").into();
        }
        Ok(())
    }

    /// Adds notes on options without effect and on missing features.
    fn told(&mut self) {
        if !self.names_engine {
            let why = "the option needs --engine llama.cpp";
            let options = self.engine_memory.drain(..).map(|option| (option, why));
            self.ignored.extend(options);
        }
        let help = "you can leave out these options: the result is the same";
        self.said.notes.extend(note(&self.ignored, help));
        let help = "leave out these options: tpc does not support them";
        self.said.notes.extend(note(&self.undone, help));
    }
}

fn note(options: &[(String, &'static str)], help: &str) -> Option<Diagnostic> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (shown, why) in options {
        match reasons.iter_mut().find(|(w, _)| w == why) {
            Some((_, options)) => options.push(shown),
            None => reasons.push((why, vec![shown])),
        }
    }
    // With one reason, the entity names all options.
    let lines: Vec<String> = match reasons.as_slice() {
        [(why, _)] => vec![(*why).to_owned()],
        several => several
            .iter()
            .map(|(why, options)| format!("{}: {why}", options.join(", ")))
            .collect(),
    };
    let all: Vec<&str> = options.iter().map(|(shown, _)| shown.as_str()).collect();
    let d = Diagnostic::new(&codes::NO_INFLUENCE, all.join(" "), lines.join("\n"));
    (!options.is_empty()).then(|| d.help(help))
}

#[cfg(test)]
mod tests;
