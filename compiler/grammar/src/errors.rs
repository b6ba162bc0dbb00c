//! Diagnostics about grammars.

use tpc_diag::Diagnostic;

use crate::codes;

/// Returns the diagnostic of an error of llguidance.
pub(crate) fn refused(message: &str, place: impl Fn(&str) -> String) -> Diagnostic {
    let line = match message.strip_prefix("panic:") {
        Some(reason) => format!("llguidance fails: {}", first_line(reason)),
        None if message.contains("NoExtension") => "no answer fits".to_owned(),
        None => first_line(message),
    };
    let entity = place(message);
    let limited = [
        "too large",
        "too big",
        "too complex",
        "too deeply",
        "limit",
        "fuel",
        "panic:",
    ];
    match limited.iter().any(|word| message.contains(word)) {
        true => too_large(&entity, &line),
        false => {
            let help = "correct this place, or leave out the keyword if it is not supported";
            invalid(&entity, &line, help)
        }
    }
}

/// The maximum length of a message of llguidance, in characters.
const LONGEST_MESSAGE: usize = 200;

/// Returns the first line of an error of llguidance, shortened. Lark's errors start with the line and column.
pub(crate) fn first_line(message: &str) -> String {
    let line = message.lines().find(|l| !l.trim().is_empty());
    let line = line.unwrap_or("llguidance gives no reason").trim();
    line.chars().take(LONGEST_MESSAGE).collect()
}

pub(crate) fn invalid(entity: &str, message: &str, help: &str) -> Diagnostic {
    Diagnostic::new(&codes::INVALID, entity.to_owned(), message.to_owned()).help(help.to_owned())
}

pub(crate) fn too_large(entity: &str, message: &str) -> Diagnostic {
    Diagnostic::new(&codes::TOO_LARGE, entity.to_owned(), message.to_owned())
        .help("simplify the schema or grammar, or lower its bounds")
}
