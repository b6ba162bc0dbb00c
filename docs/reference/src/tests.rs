//! The pages of the book: placeholders, links, commands, options and codes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{PARTS, codes, fill};
use crate::markdown::anchor;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the README and the pages of the book by path, filled.
fn pages() -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut add = |path: String| {
        let text = std::fs::read_to_string(repository().join(&path));
        let text = text.unwrap_or_else(|e| panic!("{path}: {e}"));
        let text = fill(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
        out.insert(path, text);
    };
    add("README.md".to_owned());
    for entry in std::fs::read_dir(repository().join("docs/src")).expect("the book") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("UTF-8");
        if name.ends_with(".md") {
            add(format!("docs/src/{name}"));
        }
    }
    out
}

#[test]
fn every_part_stands_in_one_page() {
    let folder = repository().join("docs/src");
    let mut texts = String::new();
    for entry in std::fs::read_dir(folder).expect("the book") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            texts.push_str(&std::fs::read_to_string(path).expect("a page"));
        }
    }
    for part in PARTS {
        let placeholder = format!("{{{{#reference {}}}}}", part.name);
        assert_eq!(texts.matches(&placeholder).count(), 1, "{placeholder}");
        assert!((part.make)().lines().count() > 3, "{}", part.name);
    }
    assert!(fill("{{#reference nothing}}").is_err());
    assert!(fill("{{#reference codes").is_err());
    assert_eq!(fill("text").as_deref(), Ok("text"));
}

#[test]
fn every_code_has_an_entry() {
    let page = fill("{{#reference codes}}").expect("a part");
    for code in tpc::catalogue::codes() {
        let heading = format!("\n### {code}: ");
        assert_eq!(page.matches(&heading).count(), 1, "{code}");
        let first = codes::SECTIONS[0].0;
        assert!(code.id >= first, "{code} is before the first section");
    }
}

/// Returns a page without its fenced blocks.
fn prose(page: &str) -> String {
    let parts = page.split("```").step_by(2);
    parts.collect::<Vec<_>>().join("\n")
}

#[test]
fn links_lead_to_pages_and_headings() {
    let pages = pages();
    let headings = |page: &str| -> BTreeSet<String> {
        let lines = prose(page);
        let lines = lines.lines().filter(|l| l.starts_with('#'));
        lines
            .map(|l| anchor(l.trim_start_matches('#').trim()))
            .collect()
    };
    let anchors: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|(path, text)| (path.as_str(), headings(text)))
        .collect();
    let mut wrong = Vec::new();
    for (path, text) in &pages {
        let folder = Path::new(path).parent().expect("a folder");
        let blockless = prose(text);
        // A `](` in inline code is no link.
        let outside: Vec<&str> = blockless.split('`').step_by(2).collect();
        for link in outside.join("X").split("](").skip(1) {
            let link = link.split([')', ' ']).next().unwrap_or_default();
            if link.contains("://") {
                continue;
            }
            let (file, at) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => folder.join(file).to_str().expect("UTF-8").to_owned(),
            };
            let there = repository().join(&target).exists();
            let known = at.is_empty() || anchors.get(&*target).is_some_and(|all| all.contains(at));
            if !there || !known {
                wrong.push(format!("{path}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the codes that a text names.
fn named_codes(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("TPC").map(|(at, _)| at);
    starts.filter_map(|at| {
        let code = text.get(at..at + 7)?;
        let digits = code[3..].bytes().all(|b| b.is_ascii_digit());
        digits.then_some(code)
    })
}

#[test]
fn codes_in_pages_exist() {
    let codes: BTreeSet<&str> = tpc::catalogue::codes().iter().map(|c| c.id).collect();
    for (path, text) in pages() {
        for code in named_codes(&text) {
            // The contributor pages show a code that does not exist yet.
            let example = path.contains("/add-a-") && code == "TPC0699";
            assert!(codes.contains(code) || example, "{path} names {code}");
        }
    }
}

/// Returns the commands of a page that begin with `tpc`: lines of blocks, and inline code. A `\` continues a line.
fn commands(page: &str) -> Vec<String> {
    let joined = page.replace("\\\n", " ");
    let mut out = Vec::new();
    for (i, part) in joined.split("```").enumerate() {
        let fenced = i % 2 == 1;
        // Inline code may go over a line.
        let inline = part.split('`').skip(1).step_by(2);
        let lines = part.lines().filter(|l| fenced || l.starts_with("    "));
        let lines = lines.map(|l| l.trim().trim_start_matches("$ ").to_owned());
        let inline = inline
            .filter(|_| !fenced)
            .map(|c| c.split_whitespace().collect::<Vec<_>>().join(" "));
        out.extend(lines.chain(inline));
    }
    let release = "cargo run --release -p tpc -- ";
    let commands = out.into_iter().map(|l| match l.strip_prefix(release) {
        Some(rest) => format!("tpc {rest}"),
        None => l,
    });
    commands.filter(|l| l.starts_with("tpc ")).collect()
}

/// Splits a command as a shell does, up to a pipe, a redirection or a comment. Returns nothing for a form with placeholders.
fn words(command: &str) -> Option<Vec<OsString>> {
    const PLACEHOLDERS: [&str; 4] = ["NAME", "SHELL", "COMMAND", "RENDERER"];
    let placeholder = |w: &str| w.contains(['…', '[', '<', '|', '*']) || PLACEHOLDERS.contains(&w);
    if command.split(' ').any(placeholder) {
        return None;
    }
    let mut words: Vec<String> = Vec::new();
    let mut quote = None;
    let mut open = false;
    for c in command.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                if !open {
                    words.push(String::new());
                    open = true;
                }
            }
            (None, ' ') => open = false,
            (None, '#' | '>' | ';' | '&') if !open => break,
            (_, c) => {
                if !open {
                    words.push(String::new());
                    open = true;
                }
                words.last_mut()?.push(c);
            }
        }
    }
    Some(words.into_iter().map(OsString::from).collect())
}

/// True if a command is only unfinished: its model or the value of its last option is missing.
fn unfinished(d: &str) -> bool {
    d.contains("required arguments were not provided") || d.contains("needs a value")
}

/// Every command in the README and in the book is valid usage. `tpc NAME` alone is the name of a command, and inline code may
/// leave out the model.
#[test]
fn commands_in_pages_are_valid() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (path, text) in pages() {
        if path.ends_with("/codes.md") {
            // Examples of mistakes.
            continue;
        }
        for command in commands(&text) {
            let Some(words) = words(&command) else {
                continue;
            };
            let result = match words.as_slice() {
                [program, name] => {
                    let help = [program.clone(), name.clone(), "--help".into()];
                    tpc::check_usage(help)
                }
                _ => tpc::check_usage(words),
            };
            checked += 1;
            if let Err(d) = result
                && !unfinished(&d.to_string())
            {
                wrong.push(format!("{path}: {command}\n    {d}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 60, "{checked}");
}
