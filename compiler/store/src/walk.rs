use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The maximum number of entries that tpc reads of one folder tree.
const MAX_ENTRIES: usize = 100_000;
/// The maximum depth of folders below a root.
const MAX_DEPTH: usize = 8;

/// Returns a folder's entries in the order of their names. Unreadable folders are empty.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(read) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let entries = read.filter_map(Result::ok).take(MAX_ENTRIES);
    let mut out: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    out.sort();
    out
}

/// Returns an entry's name, if it is text.
pub(super) fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// True for a folder; false for a link to a folder.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| m.is_dir())
}

/// Returns the files and links below a folder, each with its path relative to the folder, with `/` between its parts.
/// Links to folders are not followed.
pub(super) fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut out = Vec::new();
    let mut left = MAX_ENTRIES;
    below(folder, "", MAX_DEPTH, &mut left, &mut out);
    out
}

fn below(
    folder: &Path,
    prefix: &str,
    depth: usize,
    left: &mut usize,
    out: &mut Vec<(String, PathBuf)>,
) {
    for path in entries(folder) {
        let Some(name) = name(&path) else { continue };
        if *left == 0 {
            return;
        }
        *left -= 1;
        let relative = match prefix {
            "" => name.to_owned(),
            _ => format!("{prefix}/{name}"),
        };
        if !is_folder(&path) {
            out.push((relative, path));
        } else if depth > 1 {
            below(&path, &relative, depth - 1, left, out);
        }
    }
}

/// Reads a text file of at most `most` bytes; `None` for a longer file, a pipe or a device.
pub(super) fn text(path: &Path, most: u64) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut out = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(most + 1).read_to_end(&mut out).ok()?;
    match out.len() as u64 > most {
        true => None,
        false => String::from_utf8(out).ok(),
    }
}
