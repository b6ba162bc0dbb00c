//! Checks that imports between files have no cycles.
//!
//! A file imports from the file that defines a name, even if a `mod.rs` between them re-exports the name. A `mod.rs`
//! that only re-exports names (`pub use`) therefore imports no file. Tests are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{CRATES, root, sources};

/// The path of a file's module in its crate; empty for `lib.rs`.
type Module = Vec<String>;

/// A `use` or a path in code: its segments, and true if it is public.
struct Import {
    public: bool,
    path: Vec<String>,
}

/// Removes comments, strings and tests from a file.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {");
    // A raw string ends with its hashes; quotes inside do not end it.
    let mut text = text[..end.unwrap_or(text.len())].to_owned();
    while let Some((before, raw)) = text.split_once("r#\"") {
        let behind = raw.split_once("\"#").map_or("", |(_, behind)| behind);
        text = format!("{before}{behind}");
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = rest.next() {
        match (in_string, c) {
            (true, '\\') => drop(rest.next()),
            (_, '"') => in_string = !in_string,
            (true, _) => {}
            (false, '\'') if rest.peek() == Some(&'"') => drop(rest.next()),
            (false, '/') if rest.peek() == Some(&'/') => {
                while rest.peek().is_some_and(|c| *c != '\n') {
                    rest.next();
                }
            }
            (false, c) => out.push(c),
        }
    }
    out
}

/// Splits a list at commas outside of braces.
fn items(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    for (i, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&list[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(&list[start..]);
    out
}

fn expand(tree: &str, prefix: &[String], out: &mut Vec<Vec<String>>) {
    let segments = |path: &str| -> Vec<String> {
        let names = path.split("::").map(str::trim).filter(|s| !s.is_empty());
        names.map(str::to_owned).collect()
    };
    let tree = tree.trim();
    match tree.split_once('{') {
        None if tree.is_empty() => {}
        None => {
            let path = tree.split(" as ").next().unwrap_or_default();
            out.push([prefix, &segments(path)].concat());
        }
        Some((head, list)) => {
            let prefix = [prefix, &segments(head)].concat();
            let list = list.rsplit_once('}').map_or(list, |(list, _)| list);
            items(list)
                .iter()
                .for_each(|item| expand(item, &prefix, out));
        }
    }
}

/// Returns the imports of a file: its `use` declarations, and paths from `crate`, `self` and `super`.
fn imports(code: &str) -> Vec<Import> {
    let mut out = Vec::new();
    let mut outside = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let before = &rest[..at];
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        let is_declaration = line.is_empty() || line.starts_with("pub");
        outside.push_str(before);
        rest = &rest[at + 4..];
        if !is_declaration {
            continue;
        }
        let (tree, behind) = rest.split_once(';').unwrap_or((rest, ""));
        let mut paths = Vec::new();
        expand(tree, &[], &mut paths);
        let public = line.starts_with("pub");
        out.extend(paths.into_iter().map(|path| Import { public, path }));
        rest = behind;
    }
    outside.push_str(rest);
    for word in outside.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        let path: Vec<String> = word.split("::").map(str::to_owned).collect();
        if path.len() > 1 && ["crate", "self", "super"].contains(&path[0].as_str()) {
            out.push(Import {
                public: false,
                path,
            });
        }
    }
    out
}

#[derive(Default)]
struct Crate {
    modules: BTreeMap<Module, Vec<Import>>,
    /// The path in the `use` of a re-exported name, by module and name.
    passed_on: BTreeMap<(Module, String), (Module, String)>,
}

impl Crate {
    /// Makes a crate from the path and the text of each module.
    fn new(files: impl Iterator<Item = (Module, String)>) -> Crate {
        let mut out = Crate::default();
        for (module, text) in files {
            out.modules.insert(module, imports(&code(&text)));
        }
        let mut passed_on = BTreeMap::new();
        for (module, imports) in &out.modules {
            for import in imports {
                let name = import.path.last().cloned().unwrap_or_default();
                let found = out.resolve(module, &import.path);
                if let Some((target, rest)) =
                    found.filter(|(t, rest)| t != module && rest.len() == 1)
                {
                    passed_on.insert((module.clone(), name), (target, rest[0].clone()));
                }
            }
        }
        out.passed_on = passed_on;
        out
    }

    /// Finds the module that a path begins with, and the names after it; `None` for another crate.
    fn resolve(&self, from: &Module, path: &[String]) -> Option<(Module, Vec<String>)> {
        let mut rest = path.iter().peekable();
        let mut module = match path.first()?.as_str() {
            "crate" => {
                rest.next();
                Module::new()
            }
            "self" => {
                rest.next();
                from.clone()
            }
            "super" => {
                let mut module = from.clone();
                while rest.next_if(|s| *s == "super").is_some() {
                    module.pop();
                }
                module
            }
            first => {
                let mut child = from.clone();
                child.push(first.to_owned());
                self.modules.get(&child)?;
                from.clone()
            }
        };
        while let Some(name) = rest.peek() {
            module.push((*name).clone());
            if !self.modules.contains_key(&module) {
                module.pop();
                break;
            }
            rest.next();
        }
        Some((module, rest.cloned().collect()))
    }

    fn definition(&self, mut module: Module, name: Option<&String>) -> Module {
        let Some(mut name) = name.cloned() else {
            return module;
        };
        let mut steps = 0;
        while let Some((next, original)) = self.passed_on.get(&(module.clone(), name.clone())) {
            (module, name) = (next.clone(), original.clone());
            steps += 1;
            if steps > 16 {
                break;
            }
        }
        module
    }

    fn arrows(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let mut out: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, imports) in &self.modules {
            let to = out.entry(module).or_default();
            for import in imports {
                let Some((target, rest)) = self.resolve(module, &import.path) else {
                    continue;
                };
                if import.public && target.starts_with(module) {
                    continue;
                }
                let target = self.definition(target, rest.first());
                if target != *module {
                    to.insert(target);
                }
            }
        }
        out
    }

    /// Returns a cycle of imports, if there is one.
    fn circle(&self) -> Option<Vec<Module>> {
        let arrows = self.arrows();
        let mut done = BTreeSet::new();
        arrows
            .keys()
            .find_map(|start| search(start, &arrows, &mut Vec::new(), &mut done))
    }
}

/// Searches a cycle depth first.
fn search(
    at: &Module,
    arrows: &BTreeMap<&Module, BTreeSet<Module>>,
    path: &mut Vec<Module>,
    done: &mut BTreeSet<Module>,
) -> Option<Vec<Module>> {
    if let Some(begin) = path.iter().position(|m| m == at) {
        return Some(path[begin..].to_vec());
    }
    if done.contains(at) {
        return None;
    }
    path.push(at.clone());
    let next = arrows.get(at).into_iter().flatten();
    let found = next
        .into_iter()
        .find_map(|next| search(next, arrows, path, done));
    path.pop();
    done.insert(at.clone());
    found
}

fn module_of(path: &Path) -> Module {
    let mut out: Module = path
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if out.last().is_some_and(|last| last == "mod") || out == ["lib"] {
        out.pop();
    }
    out
}

#[test]
fn files_import_one_way() {
    let mut circles = Vec::new();
    let mut arrows = 0;
    for krate in CRATES.iter().filter(|k| **k != "tests") {
        let src = root().join(krate).join("src");
        let mut files = Vec::new();
        sources(&src, &mut files);
        let files = files.iter().filter_map(|f| {
            let path = f.strip_prefix(&src).expect("a file of the crate");
            let is_left_out = path
                .iter()
                .any(|p| p == "tests" || p == "tests.rs" || p == "main.rs");
            let text = std::fs::read_to_string(f).expect("a source file");
            (!is_left_out).then(|| (module_of(path), text))
        });
        let files = Crate::new(files);
        arrows += files.arrows().values().map(BTreeSet::len).sum::<usize>();
        let circle = files.circle().unwrap_or_default();
        let names: Vec<String> = circle.iter().map(|m| m.join("/")).collect();
        if !names.is_empty() {
            circles.push(format!("{krate}: {} -> {}", names.join(" -> "), names[0]));
        }
    }
    assert!(
        circles.is_empty(),
        "circles of files:\n{}",
        circles.join("\n")
    );
    assert!(arrows > 1000, "{arrows} imports were checked");
}

#[test]
fn a_planted_circle_is_found() {
    let circle = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(path, text)| {
            let names = path.split('/').filter(|p| !p.is_empty());
            (names.map(str::to_owned).collect(), (*text).to_owned())
        });
        Crate::new(files).circle()
    };
    let lib = ("", "mod a;\nmod b;\npub use a::A;\npub use b::B;\n");
    let a = ("a", "use crate::b::B;\npub struct A(B);\n");
    assert_eq!(circle(&[lib, a, ("b", "pub struct B;\n")]), None);
    for b in [
        "use crate::a::A;\npub struct B(Box<A>);\n",
        "use super::{a::{A as X}};\npub struct B(Box<X>);\n",
        // References by a name that the root re-exports, and by a path in the code.
        "use crate::A;\npub struct B(Box<A>);\n",
        "pub struct B(Box<crate::a::A>);\n",
    ] {
        assert!(circle(&[lib, a, ("b", b)]).is_some(), "{b}");
    }
    let commented =
        "// use crate::a::A;\npub struct B(&'static str);\nconst X: &str = \"crate::a::A\";\n";
    assert_eq!(circle(&[lib, a, ("b", commented)]), None);
    let parent = (
        "a",
        "mod c;\nuse c::C;\npub struct A(C);\npub const N: usize = 1;\n",
    );
    let child = ("a/c", "use super::N;\npub struct C([u8; N]);\n");
    assert!(circle(&[("", "mod a;\n"), parent, child]).is_some());
    let facade = ("a", "mod c;\nmod d;\npub use c::C;\npub use d::N;\n");
    let d = ("a/d", "pub const N: usize = 1;\n");
    assert_eq!(circle(&[("", "mod a;\n"), facade, child, d]), None);
}
