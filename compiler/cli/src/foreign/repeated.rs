//! Handles options given twice: the last one counts, as in llama.cpp.

use std::ffi::OsString;
use std::ops::Range;

use clap::{Arg, ArgAction, Command};
use tpc_diag::Diagnostic;

use super::words::quoted;
use crate::codes;

/// An option and the positions of its words.
#[derive(Debug)]
pub(super) struct Given {
    id: String,
    words: Range<usize>,
}

fn is_single(command: &Command, arg: &Arg) -> bool {
    // Only clap knows if the next word is this option's value.
    if arg.get_num_args().is_some_and(|n| n.min_values() == 0) && arg.get_action().takes_values() {
        return false;
    }
    match arg.get_action() {
        ArgAction::Set | ArgAction::SetTrue | ArgAction::SetFalse => !arg.is_positional(),
        // `tpc plan` compares the values of these options.
        ArgAction::Append => {
            command.get_name() != "plan" && matches!(arg.get_id().as_str(), "devices" | "ctx_size")
        }
        _ => false,
    }
}

impl Given {
    pub(super) fn new(command: &Command, arg: &Arg, words: Range<usize>) -> Option<Given> {
        is_single(command, arg).then(|| Given {
            id: arg.get_id().to_string(),
            words,
        })
    }
}

fn shown(words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|w| quoted(&w.to_string_lossy())).collect();
    words.join(" ")
}

/// Removes overridden options. Adds a note if the value changes.
pub(super) fn overridden(arguments: &mut Vec<OsString>, given: &[Given]) -> Vec<Diagnostic> {
    let mut notes = Vec::new();
    let mut out: Vec<Range<usize>> = Vec::new();
    for (i, g) in given.iter().enumerate() {
        let Some(last) = given[i + 1..].iter().rfind(|l| l.id == g.id) else {
            continue;
        };
        let text = |g: &Given| shown(&arguments[g.words.clone()]);
        let (before, after) = (text(g), text(last));
        if before != after {
            let message = format!("`{after}` overrides `{before}`");
            let d = Diagnostic::new(&codes::NO_INFLUENCE, before, message);
            notes.push(d.help("give the option once"));
        }
        out.push(g.words.clone());
    }
    for words in out.into_iter().rev() {
        arguments.drain(words);
    }
    notes
}
