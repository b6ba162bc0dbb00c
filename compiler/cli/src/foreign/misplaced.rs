//! Diagnostics for a first word that is not a subcommand.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;
use tpc_diag::{Diagnostic, suggest};

use super::words::{is_address, lookup, own, quoted, refused};

/// Returns the diagnostic of a first word that is a program, model, option or other tool's subcommand.
pub(super) fn misplaced(word: &str, words: &[OsString], program: &Command) -> Option<Diagnostic> {
    let mut line: Vec<String> = words.iter().map(|w| quoted(&w.to_string_lossy())).collect();
    // If a subcommand follows later, the corrected line begins with it.
    let later = words.iter().position(|w| {
        let word = w.to_str();
        word.is_some_and(|w| program.find_subcommand(w).is_some())
    });
    let asks = words.iter().any(|w| w.to_str().is_some_and(is_prompt));
    let usual = if asks { "run" } else { "plan" };
    let subcommand = later.map_or_else(|| usual.to_owned(), |at| line.remove(at));
    let line = line.join(" ");
    if matches!(word, "-h" | "--help" | "-V" | "--version" | "help") {
        return None;
    }
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    if ["llama-", "llama.cpp", "ik_llama"]
        .iter()
        .any(|p| name.starts_with(p))
    {
        let message = format!("`{word}` is a program of llama.cpp, not a subcommand");
        return Some(refused(
            word,
            message,
            format!(
                "lint the command: tpc lint -- {line}; the result also has the equivalent tpc plan"
            ),
        ));
    }
    let option = word.split('=').next().unwrap_or(word);
    if word.starts_with('-') {
        let known =
            lookup(option).is_some() || program.get_subcommands().any(|c| own(c, option).is_some());
        let help = match known {
            true => format!("tpc {subcommand} {line}"),
            false => "`tpc --help` lists the subcommands; options follow them".to_owned(),
        };
        return Some(refused(
            word,
            format!("missing subcommand before `{word}`"),
            help,
        ));
    }
    let model = is_address(word)
        || word.contains(".gguf")
        || word.ends_with(".jsonl")
        || Path::new(word).is_file();
    if model {
        return Some(refused(
            word,
            format!("missing subcommand before the model `{word}`"),
            format!("tpc {subcommand} {line}"),
        ));
    }
    let names = program.get_subcommands().map(Command::get_name);
    let meant = MEANT
        .iter()
        .find(|(w, _)| w.split_whitespace().any(|w| w == word));
    let help = match (meant, suggest::nearest(word, names)) {
        (Some((_, help)), _) => format!("{help}; `tpc --help` lists the subcommands"),
        (None, Some(near)) => {
            format!("did you mean `tpc {near}`? `tpc --help` lists the subcommands")
        }
        (None, None) => "`tpc --help` lists the subcommands".to_owned(),
    };
    Some(refused(word, format!("unknown subcommand `{word}`"), help))
}

/// True if a word is an option that gives a prompt or starts a chat.
fn is_prompt(word: &str) -> bool {
    let option = word.split('=').next().unwrap_or(word);
    let asking = [
        "-p",
        "--prompt",
        "-sys",
        "--system-prompt",
        "-cnv",
        "--conversation",
        "-i",
        "-n",
        "--predict",
    ];
    asking.contains(&option)
}

/// Subcommands of other programs with the equivalent in tpc.
const MEANT: &[(&str, &str)] = &[
    (
        "serve server api",
        "a server is not supported; `tpc run MODEL` answers prompts, with `--prompts FILE -np N` several at once",
    ),
    (
        "chat cli generate complete completion ask",
        "`tpc run MODEL` starts a chat; -p TEXT answers one prompt",
    ),
    ("benchmark perf time", "`tpc bench MODEL` times a model"),
    ("show info", "`tpc inspect MODEL` shows a file's content"),
    ("list ls gpus", "`tpc devices` lists cards"),
    ("ppl", "`tpc perplexity MODEL -f TEXT` scores a text"),
    ("build", "`tpc compile MODEL -o OUT.tpc` writes an artefact"),
    (
        "split shard",
        "`tpc plan MODEL --devices N` shows how devices share a model",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_subcommand_has_a_near_one() {
        let program = Command::new("tpc").subcommands(["run", "plan", "bench"].map(Command::new));
        let help = |word: &str| {
            let d = misplaced(word, &[word.into()], &program)?;
            d.help.map(|h| h.to_string())
        };
        assert!(help("rnu").is_some_and(|h| h.contains("`tpc run`")));
        assert!(help("serve").is_some_and(|h| h.contains("server is not supported")));
        assert!(help("qqqqqqqq").is_some_and(|h| h.contains("--help")));
        assert_eq!(help("--help"), None);
    }

    #[test]
    fn options_before_the_subcommand_are_put_behind_it() {
        let option = clap::Arg::new("devices").long("devices");
        let program = Command::new("tpc").subcommand(Command::new("verify").arg(option));
        let help = |words: &[&str]| {
            let all: Vec<OsString> = words.iter().map(OsString::from).collect();
            let d = misplaced(words[0], &all, &program)?;
            d.help.map(|h| h.to_string())
        };
        let line = help(&["--devices", "2", "verify", "m.gguf"]);
        assert_eq!(line.as_deref(), Some("tpc verify --devices 2 m.gguf"));
        let line = help(&["-m", "m.gguf", "-p", "hi", "-n", "5"]);
        assert_eq!(line.as_deref(), Some("tpc run -m m.gguf -p hi -n 5"));
        let line = help(&["m.gguf", "-p", "hi there"]);
        assert_eq!(line.as_deref(), Some("tpc run m.gguf -p 'hi there'"));
        let line = help(&["--devices", "2", "m.gguf"]);
        assert_eq!(line.as_deref(), Some("tpc plan --devices 2 m.gguf"));
    }
}
