use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use tpc_ggml::llama_cpp::quote;

use crate::format::columns;

/// A shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    words: Vec<String>,
}

impl Serialize for ShellCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for ShellCommand {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ShellCommand".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl std::fmt::Display for ShellCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self.words.iter().map(|w| quote(w)).collect();
        f.write_str(&words.join(" "))
    }
}

impl ShellCommand {
    pub(crate) fn new(words: Vec<String>) -> ShellCommand {
        ShellCommand { words }
    }

    /// Returns the unquoted words.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    fn pieces(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut open = false;
        for word in &self.words {
            let is_option = word.starts_with('-') && word.len() > 1;
            match out.last_mut() {
                Some(last) if open && !is_option => {
                    last.push(' ');
                    last.push_str(&quote(word));
                    open = false;
                }
                _ => {
                    out.push(quote(word));
                    open = is_option;
                }
            }
        }
        out
    }

    /// Formats the command in lines of at most `width` columns that a shell reads as one. Breaks lines between options.
    /// Words longer than a line are cut so that the shell joins them again.
    pub fn lines(&self, width: usize, indent: usize) -> String {
        const MORE: usize = 2;
        let mut lines: Vec<String> = vec![" ".repeat(indent)];
        let mut column = indent;
        for (i, piece) in self.pieces().iter().enumerate() {
            let space = usize::from(i > 0);
            // All lines but the last need room for a blank and a backslash.
            if i > 0 && column + space + columns(piece) + 2 > width {
                lines.push(" ".repeat(indent + MORE));
                column = indent + MORE;
            } else if i > 0 {
                push(&mut lines, " ");
                column += 1;
            }
            for (n, part) in cut(piece, [column, 0], width).iter().enumerate() {
                if n > 0 {
                    push(&mut lines, JOINED);
                    lines.push(String::new());
                    column = 0;
                }
                push(&mut lines, part);
                column += columns(part);
            }
        }
        let mut out = String::new();
        let last = lines.len() - 1;
        for (n, line) in lines.iter().enumerate() {
            match line.strip_suffix(JOINED) {
                Some(line) => {
                    out.push_str(line);
                    out.push('\\');
                }
                None if n < last => {
                    out.push_str(line);
                    out.push_str(" \\");
                }
                None => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }
}

/// Marks a line whose last word continues on the next line.
const JOINED: &str = "\0";

fn push(lines: &mut [String], text: &str) {
    if let Some(last) = lines.last_mut() {
        last.push_str(text);
    }
}

/// Cuts a piece into parts for lines that start at the columns `[first, others]`. Quotes are closed at the end of a
/// line and reopened on the next.
fn cut(piece: &str, [first, others]: [usize; 2], width: usize) -> Vec<String> {
    const ESCAPED_QUOTE: &str = r"'\''";
    let mut out: Vec<String> = Vec::new();
    let (mut part, mut column) = (String::new(), first);
    let (mut rest, mut open) = (piece, false);
    let mut left = columns(piece);
    while !rest.is_empty() {
        let len = match open && rest.starts_with(ESCAPED_QUOTE) {
            true => ESCAPED_QUOTE.len(),
            false => rest.chars().next().map_or(1, char::len_utf8),
        };
        let (atom, after) = rest.split_at(len);
        // All lines but the last need room for a quote or blank, and a backslash.
        let last = column + left + 2 <= width;
        if !last && column + columns(atom) + 2 > width && columns(&part) > 1 {
            part.push_str(if open { "'" } else { "" });
            out.push(std::mem::take(&mut part));
            part.push_str(if open { "'" } else { "" });
            column = others + usize::from(open);
        }
        open ^= atom == "'";
        part.push_str(atom);
        column += columns(atom);
        left = left.saturating_sub(columns(atom));
        rest = after;
    }
    out.push(part);
    out
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn command(words: &[&str]) -> ShellCommand {
        ShellCommand::new(words.iter().map(|&w| w.to_owned()).collect())
    }

    #[test]
    fn options_keep_their_values() {
        let c = command(&[
            "tpc",
            "run",
            "m.gguf",
            "--devices",
            "2x3090",
            "-nkvo",
            "-c",
            "4096",
        ]);
        assert_eq!(
            c.to_string(),
            "tpc run m.gguf --devices 2x3090 -nkvo -c 4096"
        );
        assert_eq!(
            c.lines(30, 2),
            "  tpc run m.gguf \\\n    --devices 2x3090 -nkvo \\\n    -c 4096\n"
        );
    }

    #[test]
    fn a_shell_reads_the_lines_as_the_words() {
        let long = "x/y z'".repeat(40);
        let quotes = "'".repeat(50);
        let all = [
            &[
                "printf",
                "my model.gguf",
                "a'b",
                "$HOME",
                "*",
                "",
                "\\",
                "日本語のモデル",
            ][..],
            &[
                "printf",
                "/a/very/long/path/without/blanks/of/a/model/that/goes/on/and/on/and/on.gguf",
                "-c",
                "1",
            ],
            &[
                "printf",
                &long,
                "-ot",
                r"blk\.(1|2)\.ffn_(up|down)_exps=CPU",
            ],
            &["printf", &quotes, "-x", &quotes],
        ];
        for words in all {
            for width in [20, 24, 40, 61, 80, 200] {
                let mut c = command(words);
                c.words.insert(1, r"<%s>\n".to_owned());
                let lines = c.lines(width, 2);
                for line in lines.lines() {
                    assert!(columns(line) <= width, "{width}: {line}");
                }
                let ran = Command::new("sh").arg("-c").arg(&lines).output();
                let ran = ran.expect("there is a shell");
                let expected: String = words[1..].iter().map(|w| format!("<{w}>\n")).collect();
                assert_eq!(
                    String::from_utf8_lossy(&ran.stdout),
                    expected,
                    "{width}: {lines}"
                );
                assert_eq!(ran.stderr, b"", "{width}: {lines}");
            }
        }
    }
}
