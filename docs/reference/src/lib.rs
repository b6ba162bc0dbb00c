//! The generated parts of the book: diagnostic codes, lints, options, cards and rules.
//!
//! A page contains a line `{{#reference NAME}}`; [`fill`] replaces it with the part of that name. `mdbook build docs` calls this
//! crate's program, so generated text is not committed.

mod cards;
mod codes;
mod lints;
mod markdown;
mod options;
mod rules;

/// A generated part of the book.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The name in `{{#reference NAME}}`.
    pub name: &'static str,
    /// Returns the part as Markdown.
    pub make: fn() -> String,
}

/// All parts.
pub const PARTS: &[Part] = &[
    codes::PART,
    lints::PART,
    options::PART,
    cards::PART,
    rules::PROOF,
    rules::REWRITING,
    rules::GGML_META,
    rules::REPAIRS,
];

const OPEN: &str = "{{#reference ";
const CLOSE: &str = "}}";

/// Replaces every placeholder of a page.
///
/// # Errors
/// Returns the name of a part that does not exist, or the rest of a placeholder that is not closed.
pub fn fill(page: &str) -> Result<String, String> {
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((name, after)) = after.split_once(CLOSE) else {
            return Err(format!("`{OPEN}` without `{CLOSE}`"));
        };
        let part = PARTS.iter().find(|p| p.name == name.trim());
        let part = part.ok_or_else(|| format!("the reference lacks the part `{}`", name.trim()))?;
        out.push_str(before);
        out.push_str((part.make)().trim_end());
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests;
