use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Invisible characters: joiners, directional marks, line separators and tags.
const SHAPELESS: [RangeInclusive<char>; 9] = [
    '\u{ad}'..='\u{ad}',
    '\u{61c}'..='\u{61c}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
    '\u{e0000}'..='\u{e007f}',
];

/// True if a character controls the terminal: an escape, directional or format character.
pub fn steers(c: char) -> bool {
    c.is_control() || SHAPELESS.iter().any(|r| r.contains(&c))
}

/// The maximum length of a word, in bytes. It exceeds the length of addresses and paths.
const WORD: usize = 400;

/// The maximum length of a line, in bytes.
const LINE: usize = 4000;

/// Replaces control characters, and shortens words and lines.
pub fn visible(text: &str) -> Cow<'_, str> {
    let steers = |c: char| steers(c) && c != '\n';
    let is_long = |line: &str| {
        line.len() > WORD && (line.len() > LINE || line.split(' ').any(|w| w.len() > WORD))
    };
    if !text.contains(steers) && !text.split('\n').any(is_long) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if steers(c) { '\u{fffd}' } else { c };
    let lines = text.split('\n').map(|line| {
        let words = line.split(' ').map(|word| cut(word, WORD, 160));
        let line = words.collect::<Vec<_>>().join(" ");
        let line: String = line.chars().map(shown).collect();
        cut(&line, LINE, LINE).into_owned()
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// Truncates a text of more than `most` bytes to `characters` characters.
fn cut(text: &str, most: usize, characters: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(characters) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        assert_eq!(
            visible("a\u{1b}[2Jb\u{202e}c\nd"),
            "a\u{fffd}[2Jb\u{fffd}c\nd"
        );
        assert!(matches!(visible("日本語\n  模型"), Cow::Borrowed(_)));
    }

    #[test]
    fn names_have_a_bounded_length() {
        let long = "n".repeat(1_000_000);
        let shown = visible(&format!("a {long} b\nc")).into_owned();
        assert_eq!(shown, format!("a {}… b\nc", "n".repeat(160)));
        assert!(visible(&"n ".repeat(1_000_000)).len() < 5000);
        let path = format!("/{}", "d/".repeat(150));
        assert_eq!(visible(&path), path);
    }
}
