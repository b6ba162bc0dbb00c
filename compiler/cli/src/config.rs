//! `tpc.toml`: files, devices and policy for `tpc lint`.
//!
//! The file is untrusted: its length is limited. Errors name the nearest known key, or the line and column of a wrong
//! value.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::codes;
use super::input;
use super::output::Failure;
use tpc_diag::{Diagnostic, suggest};

const NAME: &str = "tpc.toml";
const MAX_BYTES: u64 = 1 << 20;
const EXAMPLE: &str =
    "[lint]\nfiles = [\"models/*.gguf\"]\ndevices = \"2x3090\"\ndeny = [\"warnings\"]";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    /// The file's path; empty if there is no file.
    pub(super) path: PathBuf,
    pub(super) lint: Section,
    pub(super) overrides: Vec<Section>,
}

/// Settings for all files, or for files that match patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) files: Vec<String>,
    pub(super) devices: Option<String>,
    /// Codes, or `warnings`, that become errors.
    pub(super) deny: Vec<String>,
    pub(super) allow: Vec<String>,
}

const KEYS: [&str; 5] = ["files", "devices", "deny", "allow", "override"];

pub(super) fn find(folder: &Path) -> Option<PathBuf> {
    let mut above = folder.ancestors().map(|f| f.join(NAME));
    above.find(|p| p.is_file())
}

pub(super) fn read(path: &Path) -> Result<Config, Failure> {
    let bytes = input::read_file(path, MAX_BYTES)?;
    let shown = path.display().to_string();
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let d = Diagnostic::new(
            &codes::CONFIG,
            &shown,
            format!("byte {at} is not UTF-8 text"),
        );
        Failure::usage(d.help("save the file as UTF-8"))
    })?;
    let config = parse(&shown, &text).map_err(Failure::usage)?;
    Ok(Config {
        path: path.to_owned(),
        ..config
    })
}

struct Text<'t> {
    name: &'t str,
    text: &'t str,
}

type Table<'t> = DeTable<'t>;

impl Text<'_> {
    fn wrong(
        &self,
        at: &Range<usize>,
        message: impl std::fmt::Display,
        help: impl Into<String>,
    ) -> Diagnostic {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        let message = format!("{}: line {line}, column {column}: {message}", self.name);
        Diagnostic::new(&codes::CONFIG, self.name, message).help(help.into())
    }

    fn unknown(&self, key: &Spanned<std::borrow::Cow<'_, str>>, known: &[&str]) -> Diagnostic {
        let name: String = key.get_ref().chars().take(64).collect();
        let list = format!("the keys here are {}", known.join(", "));
        let help = match suggest::nearest(&name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? {list}"),
            None => list,
        };
        self.wrong(&key.span(), format!("unknown key `{name}`"), help)
    }

    fn table<'v, 'd>(
        &self,
        value: &'v Spanned<DeValue<'d>>,
        form: &str,
    ) -> Result<&'v Table<'d>, Diagnostic> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.wrong(&value.span(), format!("expected a table: {form}"), EXAMPLE)),
        }
    }

    fn string(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<String, Diagnostic> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.wrong(
                &value.span(),
                format!("a value of `{key}` is not text in quotes"),
                format!("write {key} = \"…\""),
            )),
        }
    }

    fn strings(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<Vec<String>, Diagnostic> {
        match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|v| self.string(v, key)).collect(),
            _ => Err(self.wrong(
                &value.span(),
                format!("`{key}` is not a list"),
                format!("write {key} = [\"…\", \"…\"]"),
            )),
        }
    }

    fn section(
        &self,
        table: &Table<'_>,
        keys: &[&str],
    ) -> Result<(Section, Vec<Section>), Diagnostic> {
        let (mut out, mut overrides) = (Section::default(), Vec::new());
        for (key, value) in table {
            match key.get_ref().as_ref() {
                name if !keys.contains(&name) => return Err(self.unknown(key, keys)),
                "files" => out.files = self.strings(value, "files")?,
                "deny" => out.deny = self.strings(value, "deny")?,
                "allow" => out.allow = self.strings(value, "allow")?,
                "devices" => {
                    out.devices = Some(match value.get_ref() {
                        DeValue::Integer(n) => n.to_string(),
                        _ => self.string(value, "devices")?,
                    });
                }
                _ => {
                    let DeValue::Array(list) = value.get_ref() else {
                        let help =
                            "[[lint.override]]\nfiles = [\"drafts/*.gguf\"]\nallow = [\"TPC0309\"]";
                        return Err(self.wrong(
                            &value.span(),
                            "the override has single instead of double brackets",
                            help,
                        ));
                    };
                    for item in list {
                        let table = self.table(item, "[[lint.override]]")?;
                        let (section, _) = self.section(table, &KEYS[..4])?;
                        if section.files.is_empty() {
                            let help = "add files = [\"drafts/*.gguf\"]";
                            return Err(self.wrong(
                                &item.span(),
                                "the override names no files",
                                help,
                            ));
                        }
                        overrides.push(section);
                    }
                }
            }
        }
        Ok((out, overrides))
    }
}

fn parse(name: &str, text: &str) -> Result<Config, Diagnostic> {
    let this = Text { name, text };
    let root = DeTable::parse(text).map_err(|e| {
        let at = e.span().unwrap_or(0..0);
        this.wrong(&at, e.message(), format!("write TOML, such as\n{EXAMPLE}"))
    })?;
    let mut out = Config::default();
    for (key, value) in root.get_ref() {
        match key.get_ref().as_ref() {
            "lint" => {
                let table = this.table(value, "[lint]")?;
                (out.lint, out.overrides) = this.section(table, &KEYS)?;
            }
            _ => return Err(this.unknown(key, &["lint"])),
        }
    }
    Ok(out)
}

impl Config {
    /// Returns the folder that patterns are relative to.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Returns `[lint]` and the overrides for a file, in order.
    pub(super) fn sections<'c>(&'c self, file: &'c Path) -> impl Iterator<Item = &'c Section> {
        let matching = move |s: &&Section| s.files.iter().any(|p| self.matches(p, file));
        std::iter::once(&self.lint).chain(self.overrides.iter().filter(matching))
    }

    fn matches(&self, pattern: &str, file: &Path) -> bool {
        let here = |p: &Path| std::path::absolute(p).unwrap_or_else(|_| p.to_owned());
        let pattern = here(&self.folder().join(pattern));
        let pattern = pattern.to_str().and_then(|p| glob::Pattern::new(p).ok());
        pattern.is_some_and(|p| p.matches_path(&here(file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_book_is_read() {
        let text = include_str!("../../../docs/examples/tpc.toml");
        let config = parse("tpc.toml", text).expect("the example");
        assert!(!config.lint.files.is_empty() && config.lint.devices.is_some());
        assert!(!config.overrides.is_empty());
        parse("tpc.toml", EXAMPLE).expect("the example of the cures");
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, place, said, cure) in [
            (
                "[lint]\nfils = []",
                "line 2, column 1",
                "unknown key `fils`",
                "`files`",
            ),
            ("[lnt]", "line 1, column 2", "unknown key `lnt`", "`lint`"),
            ("lint = 3", "line 1, column 8", "a table", "[lint]"),
            (
                "[lint]\ndeny = \"warnings\"",
                "line 2, column 8",
                "is not a list",
                "deny = [",
            ),
            (
                "[lint]\nallow = [\"TPC0306\", 7]",
                "line 2, column 21",
                "text in quotes",
                "allow = ",
            ),
            (
                "[lint]\ndevices = [2]",
                "line 2, column 11",
                "text in quotes",
                "devices = ",
            ),
            ("[lint\n", "line 1", "", "TOML"),
            (
                "[lint]\n\n[lint.override]\nfiles = []",
                "line 3",
                "double brackets",
                "[[lint.override]]",
            ),
            (
                "[[lint.override]]\nallow = []",
                "line 1",
                "no files",
                "files = ",
            ),
            (
                "[[lint.override]]\nfiles = [\"a\"]\noverride = []",
                "line 3, column 1",
                "unknown key",
                "allow",
            ),
        ] {
            let d = parse("tpc.toml", text).expect_err(text);
            assert_eq!(d.code.id, "TPC0424");
            let message = d.to_string();
            assert!(
                message.contains(place) && message.contains(said),
                "{text}: {message}"
            );
            let help = d.help.map(|h| h.to_string()).unwrap_or_default();
            assert!(help.contains(cure), "{text}: {help}");
        }
    }

    #[test]
    fn overrides_are_for_the_files_that_match() {
        let text = "[lint]\nallow = [\"A\"]\n[[lint.override]]\nfiles = [\"d/**/*.gguf\"]\nallow = [\"B\"]";
        let mut config = parse("tpc.toml", text).expect("settings");
        config.path = PathBuf::from("/x/tpc.toml");
        let count = |file: &str| config.sections(Path::new(file)).count();
        assert_eq!(
            (
                count("/x/d/e/m.gguf"),
                count("/x/m.gguf"),
                count("/d/m.gguf")
            ),
            (2, 1, 1)
        );
    }
}
