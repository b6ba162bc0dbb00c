//! GBNF, llama.cpp's format of grammars, in Lark.

mod automaton;
mod chars;
mod follow;
mod lexemes;
mod parse;
mod parts;
mod regex;
mod rules;

use std::fmt::Write;

use tpc_diag::Diagnostic;

use parts::Part;
use regex::write_bounds;

/// Translates a grammar to Lark.
///
/// # Errors
/// Returns TPC0596 with the line and column of an error, TPC0597 if brackets are nested too deeply.
pub(crate) fn to_lark(text: &str) -> Result<String, Diagnostic> {
    let rules = parse::parse(text)?;
    let division = lexemes::divide(&rules);
    let mut out = format!("start: r{}\n", rules.root);
    // Writing to a string cannot fail.
    for rule in &division.order {
        let _ = write!(out, "r{rule}: ");
        if let Some(part) = division.parts.get(rule) {
            write_part(part, &mut out);
        }
        out.push('\n');
    }
    for (i, lexeme) in division.lexemes.iter().enumerate() {
        let _ = write!(out, "T{i}: /{}/", lexeme.regex);
        // Lexemes are never empty: an optional lexeme may be missing instead.
        out.push_str(if lexeme.nullable {
            " & /(?s:.)+/\n"
        } else {
            "\n"
        });
    }
    Ok(out)
}

fn write_part(part: &Part, out: &mut String) {
    match part {
        Part::Empty => out.push_str("\"\""),
        Part::Lexeme(index) => {
            let _ = write!(out, "T{index}");
        }
        Part::Rule(rule) => {
            let _ = write!(out, "r{rule}");
        }
        Part::Seq(items) => write_items(items, " ", out),
        Part::Alt(items) => write_items(items, " | ", out),
        Part::Repeat { item, min, max } => {
            out.push('(');
            write_part(item, out);
            out.push(')');
            write_bounds(*min, *max, out);
        }
    }
}

fn write_items(items: &[Part], between: &str, out: &mut String) {
    if items.is_empty() {
        out.push_str("\"\"");
        return;
    }
    out.push('(');
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { between });
        write_part(item, out);
    }
    out.push(')');
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;
