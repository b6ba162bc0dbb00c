//! Texts in YAML.

/// Returns a double-quoted scalar. Characters that YAML forbids, or that older YAML reads as line ends, are escaped.
pub(super) fn string(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || is_break(c) => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// True for line and paragraph separators, the byte order mark, and code points that are not characters.
pub(super) fn is_break(c: char) -> bool {
    matches!(
        c,
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

/// Returns a list of scalars, each on a line with this indentation.
pub(super) fn list(texts: &[String], indent: usize) -> String {
    let line = |text: &String| format!("{:indent$}- {}\n", "", string(text));
    texts.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_characters_are_escaped() {
        assert_eq!(string("a \"b\" \\ $"), r#""a \"b\" \\ $""#);
        assert_eq!(
            string("\n\t\u{0}\u{7f}\u{85}\u{2028}日"),
            r#""\n\t\u0000\u007F\u0085\u2028日""#
        );
        assert_eq!(
            list(&["a".to_owned(), "b".to_owned()], 2),
            "  - \"a\"\n  - \"b\"\n"
        );
    }
}
