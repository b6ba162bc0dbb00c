//! Headers of gpt-oss messages: the channel and the recipient.

/// The longest header, in bytes.
const LONGEST: usize = 512;

/// The markers that start a header.
pub(super) const STARTS: [&str; 2] = ["<|start|>", "<|channel|>"];

/// The markers that end a message.
pub(super) const ENDS: [&str; 3] = ["<|end|>", "<|return|>", "<|call|>"];

const MESSAGE: &str = "<|message|>";

/// The kind of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Content,
    Reasoning,
    /// A call of a function.
    Call(String),
}

/// The result of reading a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A header of some bytes.
    Found(Kind, usize),
    /// The text ends before the message.
    Waits,
    /// The text is not a header. Its first marker has some bytes.
    Bad(usize),
}

/// Reads the header at the start of a text.
pub(super) fn read(text: &str) -> Read {
    let starts = ["to=", STARTS[0], STARTS[1]];
    let Some(start) = starts.iter().find(|s| text.starts_with(**s)) else {
        return match starts.iter().any(|s| s.starts_with(text)) {
            true => Read::Waits,
            false => Read::Bad(0),
        };
    };
    let head = &text[..text.floor_char_boundary(LONGEST)];
    let Some(end) = head.find(MESSAGE) else {
        return match text.len() < LONGEST {
            true => Read::Waits,
            false => Read::Bad(start.len()),
        };
    };
    let head = &head[..end];
    let word = |behind: &str, ends: &[char]| {
        let (_, word) = head.split_once(behind)?;
        word.split(ends).next()
    };
    let recipient = word("to=", &[' ', '<', '\n', '\t']).unwrap_or("");
    let channel = word(STARTS[1], &[' ', '<', '\n', '\t']).unwrap_or("");
    let function = recipient.strip_prefix("functions.");
    let kind = match (function, channel) {
        (Some(name), _) if !name.is_empty() => Kind::Call(name.to_owned()),
        (_, "analysis") => Kind::Reasoning,
        _ => Kind::Content,
    };
    Read::Found(kind, end + MESSAGE.len())
}
