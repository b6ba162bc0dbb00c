//! Fills the generated parts of the book: as a preprocessor of mdBook, or into a folder.

use std::io::{Read, Write, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use tpc_reference::fill;

const USAGE: &str = "usage: tpc-reference supports RENDERER    (mdBook asks if a renderer is supported)\n\
                     \x20      tpc-reference < BOOK.json          (preprocessor of mdBook)\n\
                     \x20      tpc-reference SOURCE FOLDER        (writes the pages of SOURCE, filled, to FOLDER)\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["supports", _] => Ok(()),
        [] => preprocess(),
        [source, folder] => write_pages(Path::new(source), Path::new(folder)),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "tpc-reference: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Reads mdBook's `[context, book]` from standard input, and writes the book with its chapters filled.
fn preprocess() -> Result<(), String> {
    let mut text = String::new();
    stdin()
        .read_to_string(&mut text)
        .map_err(|e| format!("standard input: {e}"))?;
    let mut input: Value =
        serde_json::from_str(&text).map_err(|e| format!("standard input: {e}\n{USAGE}"))?;
    let book = input
        .get_mut(1)
        .ok_or("standard input is not `[context, book]`")?;
    fill_chapters(book)?;
    let text = serde_json::to_string(book).map_err(|e| e.to_string())?;
    stdout()
        .write_all(text.as_bytes())
        .map_err(|e| format!("standard output: {e}"))
}

/// Fills the `content` of every chapter. mdBook's versions name the list of chapters differently.
fn fill_chapters(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(fill_chapters),
        Value::Object(fields) => fields.iter_mut().try_for_each(|(key, v)| match v {
            Value::String(page) if key == "content" => fill(page).map(|filled| *page = filled),
            other => fill_chapters(other),
        }),
        _ => Ok(()),
    }
}

fn write_pages(source: &Path, folder: &Path) -> Result<(), String> {
    let named = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let entries = std::fs::read_dir(source).map_err(|e| named(source, e))?;
    std::fs::create_dir_all(folder).map_err(|e| named(folder, e))?;
    for entry in entries {
        let path = entry.map_err(|e| named(source, e))?.path();
        if path.extension().is_none_or(|e| e != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).map_err(|e| named(&path, e))?;
        let filled = fill(&page).map_err(|e| format!("{}: {e}", path.display()))?;
        let to = folder.join(path.file_name().unwrap_or_default());
        std::fs::write(&to, filled).map_err(|e| named(&to, e))?;
    }
    Ok(())
}
