//! Reads the function's name before a call's arguments.

use super::format::ToolFormat;

/// The longest text before the arguments, in bytes.
const LONGEST: usize = 512;

/// The name of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub name: String,
    pub id: Option<String>,
    /// The length of the text before the arguments, in bytes.
    pub length: usize,
}

/// The result of reading a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Found(Head),
    /// The text ends before the arguments.
    Waits,
    Bad,
}

/// Returns the text before a marker, and the length with the marker.
fn until<'a>(text: &'a str, marker: &str) -> Option<(&'a str, usize)> {
    let end = text.find(marker)?;
    Some((&text[..end], end + marker.len()))
}

/// Returns the text before any of some characters, and its length.
fn before<'a>(text: &'a str, ends: &[char]) -> Option<(&'a str, usize)> {
    let end = text.find(ends)?;
    Some((&text[..end], end))
}

/// Returns the name in a Kimi id such as `functions.add:0`.
fn kimi_name(id: &str) -> &str {
    let name = id.strip_prefix("functions.").unwrap_or(id);
    match name.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => name,
    }
}

/// Reads a name with the syntax of a format.
fn find(format: ToolFormat, text: &str) -> Option<(&str, Option<&str>, usize)> {
    match format {
        ToolFormat::DeepSeekV3 => {
            let (head, length) = until(text, "```json")?;
            let (_, name) = head.split_once("<｜tool▁sep｜>").unwrap_or(("", head));
            Some((name, None, length))
        }
        ToolFormat::DeepSeekV31 => {
            until(text, "<｜tool▁sep｜>").map(|(name, length)| (name, None, length))
        }
        ToolFormat::KimiK2 => {
            let (id, length) = until(text, "<|tool_call_argument_begin|>")?;
            Some((kimi_name(id.trim()), Some(id.trim()), length))
        }
        ToolFormat::QwenCoder => {
            let (head, length) = until(text, ">")?;
            let name = head.trim_start().strip_prefix("<function=");
            Some((name.unwrap_or(""), None, length))
        }
        ToolFormat::Glm45 => {
            let start = text.len() - text.trim_start().len();
            let (name, length) = before(&text[start..], &['\n', '<'])?;
            Some((name, None, start + length))
        }
        ToolFormat::Gemma4 => {
            let (head, length) = before(text, &['{'])?;
            let name = head.trim_start().strip_prefix("call:");
            Some((name.unwrap_or(""), None, length))
        }
        _ => {
            let (head, length) = match (until(text, "[ARGS]"), before(text, &['{'])) {
                (Some(found), Some(brace)) if found.1 > brace.1 => brace,
                (Some(found), _) => found,
                (None, brace) => brace?,
            };
            let (name, id) = match head.split_once("[CALL_ID]") {
                Some((name, id)) => (name, Some(id.trim())),
                None => (head, None),
            };
            Some((name, id, length))
        }
    }
}

/// Reads the name at the start of a text.
pub(super) fn read(format: ToolFormat, text: &str) -> Read {
    let head = &text[..text.floor_char_boundary(LONGEST)];
    let Some((name, id, length)) = find(format, head) else {
        return match text.len() < LONGEST {
            true => Read::Waits,
            false => Read::Bad,
        };
    };
    let name = name.trim();
    let bad = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '{' | '}');
    match name.is_empty() || name.contains(bad) {
        true => Read::Bad,
        false => Read::Found(Head {
            name: name.to_owned(),
            id: id.map(str::to_owned),
            length,
        }),
    }
}
