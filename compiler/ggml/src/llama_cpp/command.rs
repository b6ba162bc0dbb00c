//! Reading a command line.

use super::flags::{FLAGS, Flag, Meaning, Takes};
use tpc_diag::{Diagnostic, codes};

/// One option as it was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The option.
    pub flag: &'static Flag,
    /// As it was spelled: `-c`, or `LLAMA_ARG_CTX_SIZE`.
    pub spelled: String,
    /// Its argument; of switches `on` or `off`.
    pub value: String,
    /// Whether an environment variable says it.
    pub from_env: bool,
}

/// A command line of llama.cpp.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// The program.
    pub program: String,
    /// What was given: by the environment, then by options, in order.
    pub given: Vec<Given>,
    /// Words that are no option of the program's.
    pub unknown: Vec<String>,
}

/// Whether the value of an environment variable switches something off.
fn is_off(value: &str) -> bool {
    matches!(value, "0" | "off" | "false" | "disabled")
}

impl CommandLine {
    /// Reads the words of a line: `NAME=VALUE`, as many as there are, the program, and its options.
    ///
    /// # Errors
    /// TPC0400 when there is no program, when it is none of llama.cpp's, or when an option lacks its argument.
    pub fn parse(words: &[String]) -> Result<CommandLine, Diagnostic> {
        let wrong =
            |message: String| Diagnostic::new(&codes::COMMAND_LINE, "command line", message);
        let mut words = words.iter().peekable();
        let mut given = Vec::new();
        words.next_if(|w| *w == "env");
        while let Some(word) = words.next_if(|w| assignment(w).is_some()) {
            let Some((name, value)) = assignment(word) else {
                continue;
            };
            let flag = FLAGS.iter().find(|f| f.env == name && !f.env.is_empty());
            given.extend(flag.map(|flag| {
                let off = is_off(value) != (flag.takes == Takes::NothingOff);
                let value = match flag.takes {
                    Takes::Nothing | Takes::NothingOff if off => "off",
                    Takes::Nothing | Takes::NothingOff => "on",
                    Takes::One | Takes::Two | Takes::Switch => value,
                };
                Given {
                    flag,
                    spelled: name.to_owned(),
                    value: value.to_owned(),
                    from_env: true,
                }
            }));
        }
        let Some(program) = words.next() else {
            let d = wrong("there is no program behind `--`".to_owned());
            return Err(d.help("tpc lint -- llama-server -m MODEL.gguf …"));
        };
        let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
        if !["llama", "server", "main"]
            .iter()
            .any(|p| name.starts_with(p))
        {
            let d = wrong(format!("`{program}` is no program of llama.cpp"));
            return Err(d.help("a line such as `llama-server -m MODEL.gguf -sm tensor`"));
        }
        let mut out = CommandLine {
            program: program.clone(),
            given,
            unknown: Vec::new(),
        };
        while let Some(word) = words.next() {
            let Some(flag) = FLAGS.iter().find(|f| f.names.contains(&word.as_str())) else {
                out.unknown.push(word.clone());
                // Its arguments, if it has any, are no options either.
                while word.starts_with('-') && words.next_if(|w| !w.starts_with('-')).is_some() {}
                continue;
            };
            let mut argument = || {
                words.next().cloned().ok_or_else(|| {
                    wrong(format!("`{word}` stands last and takes a value"))
                        .help(format!("{word} VALUE"))
                })
            };
            let value = match flag.takes {
                Takes::Nothing => "on".to_owned(),
                Takes::NothingOff => "off".to_owned(),
                Takes::One => argument()?,
                Takes::Two => format!("{} {}", argument()?, argument()?),
                Takes::Switch => {
                    let known = ["on", "off", "auto", "0", "1", "true", "false"];
                    let next = words.next_if(|w| known.contains(&w.as_str()));
                    next.map_or("on", String::as_str).to_owned()
                }
            };
            out.given.push(Given {
                flag,
                spelled: word.clone(),
                value,
                from_env: false,
            });
        }
        Ok(out)
    }

    /// Everything that was given of that meaning, the last one being what counts.
    pub fn all(&self, meaning: Meaning) -> impl DoubleEndedIterator<Item = &Given> {
        self.given.iter().filter(move |g| g.flag.meaning == meaning)
    }

    /// What counts of that meaning: the last option, or else the environment.
    pub fn last(&self, meaning: Meaning) -> Option<&Given> {
        self.all(meaning).next_back()
    }

    /// Its value.
    pub fn value(&self, meaning: Meaning) -> Option<&str> {
        self.last(meaning).map(|g| g.value.as_str())
    }

    /// Its value as a count.
    pub fn count(&self, meaning: Meaning) -> Option<u64> {
        self.value(meaning)?.parse().ok()
    }

    /// Whether a switch is off.
    pub fn is_off(&self, meaning: Meaning) -> bool {
        self.value(meaning).is_some_and(is_off)
    }

    /// Whether tensors are split among devices.
    pub fn splits_tensors(&self) -> bool {
        self.value(Meaning::SplitMode) == Some("tensor")
    }
}

/// The name and the value of `NAME=VALUE`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    (!name.is_empty() && name.chars().all(upper)).then_some((name, value))
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
        assert_eq!(line.value(Meaning::Model), Some("x.gguf"));
        assert_eq!(line.count(Meaning::Context), Some(8192));
        assert!(line.is_off(Meaning::KvOffload) && line.splits_tensors());
        assert_eq!(line.value(Meaning::FlashAttention), Some("on"));
        assert_eq!(line.all(Meaning::Override).count(), 2);
        assert_eq!(line.unknown, ["--frobnicate"]);
        let off = read("llama-cli -fa off -nkvo").expect("a line");
        assert!(off.is_off(Meaning::FlashAttention) && off.is_off(Meaning::KvOffload));
        let old = read("LLAMA_ARG_NO_KV_OFFLOAD=1 llama-cli").expect("a line");
        assert!(old.is_off(Meaning::KvOffload));
    }

    #[test]
    fn what_is_no_line() {
        for bad in ["", "LLAMA_ARG_CTX_SIZE=1", "vllm serve", "llama-server -m"] {
            let d = read(bad).expect_err(bad);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0400", true), "{bad}");
        }
    }

    #[test]
    fn every_spelling_is_of_one_option() {
        let mut seen = std::collections::BTreeSet::new();
        for name in FLAGS.iter().flat_map(|f| f.names) {
            assert!(name.starts_with('-') && seen.insert(name), "{name}");
        }
    }
}
