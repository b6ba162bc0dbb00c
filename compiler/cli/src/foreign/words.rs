//! Classifies words of a command line: options, addresses, values.

use std::ffi::OsString;

use clap::{Arg, Command};
use tpc_diag::{Diagnostic, codes as common, suggest};

use super::table::{FOREIGN_OPTIONS, ForeignOption};

pub(super) fn refused(
    entity: &str,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Diagnostic {
    Diagnostic::new(&common::COMMAND_LINE, entity, message.into()).help(help.into())
}

pub(crate) fn is_address(word: &str) -> bool {
    let head = word.get(..8).unwrap_or(word).to_ascii_lowercase();
    head.starts_with("http://") || head.starts_with("https://")
}

pub(super) fn quoted(word: &str) -> String {
    tpc_ggml::llama_cpp::quote(word)
}

pub(super) fn lookup(name: &str) -> Option<&'static ForeignOption> {
    FOREIGN_OPTIONS
        .iter()
        .find(|h| h.names().any(|n| n == name))
}

pub(super) fn own<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    let long = name.strip_prefix("--");
    let short = name
        .strip_prefix('-')
        .filter(|n| long.is_none() && n.chars().count() == 1);
    let short = short.and_then(|n| n.chars().next());
    command.get_arguments().find(|a| {
        long.is_some_and(|l| {
            a.get_long() == Some(l) || a.get_all_aliases().is_some_and(|all| all.contains(&l))
        }) || (short.is_some() && a.get_short() == short)
    })
}

/// True if a word is an option, not the value of the previous option.
pub(super) fn is_option(word: &OsString) -> bool {
    let Some(word) = word.to_str() else {
        return false;
    };
    let mut rest = word.chars();
    rest.next() == Some('-') && rest.next().is_some_and(|c| !c.is_ascii_digit() && c != '.')
}

/// Finds the nearest option name, ignoring leading hyphens.
pub(super) fn near<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    fn bare(name: &str) -> &str {
        name.trim_start_matches('-')
    }
    let all: Vec<&'n str> = names.filter(|n| bare(n).len() > 1).collect();
    let found = suggest::nearest(bare(name), all.iter().copied().map(bare))?;
    all.iter().copied().find(|n| bare(n) == found)
}
