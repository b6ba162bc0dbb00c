//! The prose of the repository: phrases that make a reader stop, per 1,000 words and area; first words of doc comments; the length
//! of sentences in messages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::root;

/// The phrases that count, by kind.
const PHRASES: [(&str, &str); 10] = [
    (
        "what-clause",
        r"\b[Ww]hat (?:is|are|was|were|has|have|had|stands?|comes?|becomes?|they|it|one|no|only|else|this|that|these|those|an?|the|each|cards?|clients?|devices?|files?|models?|ops?|kernels?|users?|llama\.cpp|tpc|ggml|follows|runs?|reads?|does|do|can|cannot|could|may|must|would|another|other|all|takes?|makes?|gives?|needs?|belongs?)\b",
    ),
    (
        "is told",
        r"\b(?:is|are|was|were|be|been) told\b|\btells? (?:of|so|it|that)\b|\b(?:is|are|to be) said\b|\bsays so\b",
    ),
    (
        "those of",
        r"\b(?:[Tt]hose|[Tt]hat|[Tt]hese) (?:of|which|who|in|on|with|from|by|for|before|behind|beside)\b",
    ),
    (
        "of which",
        r"\b(?:[Oo]f|[Ii]n|[Ff]or|[Bb]y|[Ww]ith|[Ff]rom|[Tt]o|[Aa]t|[Oo]n|[Bb]ehind|[Bb]eside|[Ww]ithout|[Aa]fter) (?:which|whom|whose|what)\b",
    ),
    (
        "where-clause",
        r"\b[Ww]here (?:there|it|they|that|this|such|one|no|nothing|none|devices?|cards?|files?|models?|llama\.cpp|two|all|both|an?|the)\b",
    ),
    (
        "so many",
        r"\b(?:[Ss]o many|as many (?:as|of)|so much|that much)\b",
    ),
    (
        "behind/beside",
        r"\b(?:beside|behind|thereby|therein|thereof|apart from|but for|save for|merely|for nothing|in its turn|anew)\b",
    ),
    ("nobody/nothing", r"\b(?:[Nn]obody|[Nn]othing|[Nn]one)\b"),
    ("is no", r"\b(?:is|are|was|has|have|with) no\b"),
    ("lies", r"\b(?:lies?|lay)\b"),
];

/// Phrases per 1,000 words that an area may have. An area is the README, the changelog, the book, or a crate.
const LIMIT: f64 = 3.0;
/// The limit of the pages and texts that a new user reads first.
const FIRST_LIMIT: f64 = 2.0;
const FIRST: [&str; 3] = ["README.md", "CHANGELOG.md", "docs"];

/// The first words that a doc comment may not have.
const BAD_BEGINNINGS: [&str; 5] = ["What", "Those", "That", "Whether", "So"];

/// Words that a sentence of a message may have.
const LONGEST: usize = 30;

/// A file that people read.
struct Source {
    /// Relative to the repository.
    path: PathBuf,
    text: String,
}

impl Source {
    fn area(&self) -> String {
        let parts: Vec<&str> = self.path.iter().filter_map(|p| p.to_str()).collect();
        match parts.as_slice() {
            [first @ ("compiler" | "runtime"), second, _, ..] => format!("{first}/{second}"),
            [first, ..] => (*first).to_owned(),
            [] => String::new(),
        }
    }

    fn is(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|e| e == extension)
    }

    fn is_test(&self) -> bool {
        let folders = self.path.parent().into_iter().flatten();
        let in_folder = folders.into_iter().any(|f| f == "tests");
        in_folder || self.path.ends_with("tests.rs")
    }
}

fn sources() -> Vec<Source> {
    fn walk(folder: &Path, out: &mut Vec<Source>) {
        let entries = fs::read_dir(folder).expect("a folder");
        for path in entries.map(|e| e.expect("an entry").path()) {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    walk(&path, out);
                }
                continue;
            }
            let wanted = ["md", "rs", "cu", "cuh", "h"];
            if path
                .extension()
                .is_some_and(|e| wanted.iter().any(|w| e == *w))
            {
                let text = fs::read(&path).expect("a file");
                out.push(Source {
                    path: path.strip_prefix(root()).expect("below it").to_owned(),
                    text: String::from_utf8_lossy(&text).into_owned(),
                });
            }
        }
    }
    let mut out = Vec::new();
    walk(&root(), &mut out);
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

/// Replaces inline code by one word.
fn without_code(text: &str) -> String {
    let mut parts = text.split('`');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let (Some(_), after) = (parts.next(), parts.next()) {
        out.push('X');
        out.push_str(after.unwrap_or_default());
    }
    out
}

/// Returns the prose of a Markdown page: no code, no indented blocks.
fn markdown(page: &str) -> String {
    let outside: Vec<&str> = page.split("```").step_by(2).collect();
    let lines = outside.join("\n\n");
    let lines: Vec<&str> = lines.lines().filter(|l| !l.starts_with("    ")).collect();
    without_code(&lines.join("\n"))
}

/// A comment, or a string literal, with its line.
enum Token {
    Comment(usize, String),
    Literal(usize, String),
}

/// Returns the comments and the string literals of Rust or CUDA code, up to the unit tests at the end of a file.
fn tokens(code: &str) -> Vec<Token> {
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    let bytes = code.as_bytes();
    let mut out = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let rest = &code[at..];
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            out.push(Token::Comment(line, rest[..length].to_owned()));
            length
        } else if let Some(hashes) = raw_string(rest, at.checked_sub(1).map(|b| bytes[b])) {
            let open = hashes + 2;
            let close = format!("\"{}", "#".repeat(hashes));
            let length = rest[open..].find(&close).unwrap_or(rest.len() - open);
            out.push(Token::Literal(line, rest[open..open + length].to_owned()));
            (open + length + close.len()).min(rest.len())
        } else if rest.starts_with('"') {
            let length = closing_quote(rest);
            out.push(Token::Literal(line, unescaped(&rest[1..length - 1])));
            length
        } else if let Some(length) = character(rest) {
            length
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        line += rest[..length].matches('\n').count();
        at += length;
    }
    out
}

/// Returns the number of `#` of a raw string that begins here.
fn raw_string(rest: &str, before: Option<u8>) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    if before.is_some_and(|b| b.is_ascii_alphanumeric() && b != b'b' || b == b'_') {
        return None;
    }
    let hashes = after.bytes().take_while(|b| *b == b'#').count();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// Returns the length of a string literal with its quotes.
fn closing_quote(rest: &str) -> usize {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return i + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a character literal; `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    let first = inner.chars().next()?;
    if first == '\\' {
        return Some(inner.get(2..)?.find('\'')? + 4);
    }
    let end = first.len_utf8();
    inner[end..].starts_with('\'').then_some(end + 2)
}

/// Joins continued lines, and reads the escapes that a reader sees.
fn unescaped(literal: &str) -> String {
    let mut out = String::new();
    let mut chars = literal.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            Some('n') => out.push_str("\n\n"),
            Some('"') => out.push('"'),
            _ => out.push(' '),
        }
    }
    out
}

/// True for a text of at least four words.
fn is_message(literal: &str) -> bool {
    literal.split_whitespace().count() >= 4
}

/// True for a list of options or programs, a row of a table, or a script.
fn is_list(literal: &str) -> bool {
    const GLUE: [&str; 6] = ["a", "the", "is", "of", "to", "and"];
    let glued = literal.split_whitespace().any(|w| GLUE.contains(&w));
    !glued || literal.contains("| ") || literal.contains("//")
}

/// Returns the sentences of a text; a colon and a semicolon end one too.
fn sentences(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    for paragraph in text.split("\n\n") {
        for word in paragraph.split_whitespace() {
            let last = out.last_mut().expect("one");
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
            if word.ends_with(['.', ':', ';', '!', '?']) {
                out.push(String::new());
            }
        }
        out.push(String::new());
    }
    out.retain(|s| !s.is_empty());
    out
}

fn words(text: &str) -> usize {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !inside(c)).filter(|w| !w.is_empty()).count()
}

/// Returns the text of a file that people read.
fn prose(source: &Source) -> String {
    if source.is("md") {
        return markdown(&source.text);
    }
    let mut out = String::new();
    let mut last = 0;
    for token in tokens(&source.text) {
        match token {
            Token::Comment(line, text) => {
                if line > last + 1 {
                    out.push_str("\n\n");
                }
                last = line;
                let text = text.trim_start_matches(['/', '!']).trim();
                out.push_str(if text.is_empty() { "\n" } else { text });
                out.push('\n');
            }
            Token::Literal(_, text) if !source.is_test() && is_message(&text) => {
                out.push_str("\n\n");
                out.push_str(&text);
                out.push_str("\n\n");
            }
            Token::Literal(..) => {}
        }
    }
    without_code(&out)
}

/// Returns the number of phrases in a sentence.
fn phrases(patterns: &[Regex], sentence: &str) -> usize {
    patterns.iter().map(|p| p.find_iter(sentence).count()).sum()
}

fn patterns() -> Vec<Regex> {
    let compiled = PHRASES.map(|(_, p)| Regex::new(p).expect("a pattern"));
    compiled.into()
}

/// This file spells the phrases, so it is not counted.
fn counted() -> impl Iterator<Item = Source> {
    sources()
        .into_iter()
        .filter(|s| !s.path.ends_with("tidy/prose.rs"))
}

#[test]
fn sentences_are_read_once() {
    let patterns = patterns();
    let mut areas: BTreeMap<String, (usize, usize, Vec<String>)> = BTreeMap::new();
    for source in counted() {
        let (count, hits, worst) = areas.entry(source.area()).or_default();
        for sentence in sentences(&prose(&source)) {
            let found = phrases(&patterns, &sentence);
            *count += words(&sentence);
            *hits += found;
            if found > 0 {
                worst.push(format!("{}: {sentence}", source.path.display()));
            }
        }
    }
    assert!(areas.len() > 20, "all areas are read: {areas:?}");
    let mut wrong = String::new();
    for (area, (count, hits, worst)) in areas {
        let rate = 1000.0 * hits as f64 / count.max(1) as f64;
        let limit = if FIRST.contains(&&*area) {
            FIRST_LIMIT
        } else {
            LIMIT
        };
        // A short text with one phrase is not an area.
        if count >= 300 && rate > limit {
            let some: Vec<&str> = worst.iter().take(20).map(String::as_str).collect();
            wrong.push_str(&format!(
                "{area}: {rate:.1} phrases per 1,000 words, above {limit}\n  {}\n",
                some.join("\n  ")
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn doc_comments_begin_with_a_verb_or_a_noun() {
    let mut wrong = Vec::new();
    for source in counted().filter(|s| s.is("rs")) {
        let mut inside = false;
        for (number, line) in source.text.lines().enumerate() {
            let line = line.trim();
            let Some(text) = ["///", "//!"].iter().find_map(|m| line.strip_prefix(m)) else {
                inside = false;
                continue;
            };
            let first = text.split_whitespace().next().unwrap_or_default();
            if !inside && BAD_BEGINNINGS.contains(&first) {
                wrong.push(format!("{}:{}: {line}", source.path.display(), number + 1));
            }
            // A paragraph begins after an empty line.
            inside = !text.trim().is_empty();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn messages_have_short_sentences() {
    let mut wrong = Vec::new();
    for source in counted().filter(|s| s.is("rs") && !s.is_test()) {
        if source.path.starts_with("tests") {
            continue;
        }
        for token in tokens(&source.text) {
            let Token::Literal(line, text) = token else {
                continue;
            };
            if !is_message(&text) || is_list(&text) {
                continue;
            }
            for sentence in sentences(&without_code(&text)) {
                let long = words(&sentence);
                if long > LONGEST {
                    let path = source.path.display();
                    wrong.push(format!("{path}:{line}: {long} words: {sentence}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} sentences\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_counter_sees_what_it_must() {
    let patterns = patterns();
    for bad in [
        "What is left is what no device has.",
        "Those of the first are told so.",
        "The buffer lies behind the arena.",
        "There is nothing of which a device has so many.",
    ] {
        assert!(phrases(&patterns, bad) >= 2, "{bad}");
    }
    assert_eq!(
        phrases(&patterns, "Fused Q/K norm, RoPE and KV-cache write."),
        0
    );
    let code = "/// A `comment`.\nlet a = \"one two \\\n    three \\\"four\\\"\"; // '\"'\nlet c = '\"'; let r = r#\"a \"raw\" text of five\"#;\n";
    let mut comments = Vec::new();
    let mut literals = Vec::new();
    for token in tokens(code) {
        match token {
            Token::Comment(line, text) => comments.push((line, text)),
            Token::Literal(line, text) => literals.push((line, text)),
        }
    }
    assert_eq!(comments.len(), 2);
    assert_eq!(
        literals,
        [
            (2, "one two three \"four\"".to_owned()),
            (4, "a \"raw\" text of five".to_owned())
        ]
    );
    assert_eq!(sentences("One: two. Three\n\nfour").len(), 4);
    assert_eq!(without_code("a `b c` d"), "a X d");
}
