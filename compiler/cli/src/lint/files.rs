//! Lists the files to lint: named files, pattern matches, models in folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::output::Failure;
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::SplitName;

/// The maximum number of files that a pattern may match.
const MAX_FILES: usize = 10_000;

fn wrong(pattern: &str, message: String, help: &str) -> Failure {
    Failure::usage(Diagnostic::new(&codes::COMMAND_LINE, pattern, message).help(help))
}

/// True if a word contains a wildcard and no file has this name.
fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '[']) && !word.contains("://") && !Path::new(word).exists()
}

fn matching(pattern: &str) -> Result<Vec<PathBuf>, Failure> {
    let help = "`*` matches any part of a name, `**` any folders, `[ab]` one of these letters";
    let paths = glob::glob(pattern).map_err(|e| {
        wrong(
            pattern,
            format!("`{pattern}` is not a pattern: {}", e.msg),
            help,
        )
    })?;
    // Unreadable folders are skipped.
    let files = paths.filter_map(Result::ok).filter(|p| p.is_file());
    let files: Vec<PathBuf> = files.take(MAX_FILES + 1).collect();
    match files.len() {
        0 => Err(wrong(
            pattern,
            format!("no file matches `{pattern}`"),
            "check the folder and upper or lower case; `**` matches any folders",
        )),
        n if n > MAX_FILES => Err(wrong(
            pattern,
            format!("`{pattern}` matches more than {MAX_FILES} files"),
            "give a pattern that matches fewer files",
        )),
        _ => Ok(files),
    }
}

/// Returns the files of these words. Lints a split model once, at its first shard, unless a word names another shard.
pub(super) fn expand(words: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let first = |p: &PathBuf| SplitName::of_path(p).is_none_or(|s| s.number == 1);
    let mut out = Vec::new();
    for word in words {
        let text = word.to_string_lossy();
        let inside = |p: &str| folder.join(p).to_string_lossy().into_owned();
        if is_pattern(&inside(&text)) {
            out.extend(matching(&inside(&text))?.into_iter().filter(first));
        } else if folder.join(word).is_dir() {
            let all = format!("{}/*.gguf", glob::Pattern::escape(&inside(&text)));
            out.extend(matching(&all)?.into_iter().filter(first));
        } else {
            // `join` would treat an address as a path.
            out.push(
                match folder.as_os_str().is_empty() || text.contains("://") {
                    true => word.clone(),
                    false => folder.join(word),
                },
            );
        }
    }
    let mut seen = BTreeSet::new();
    out.retain(|p| seen.insert(p.clone()));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_files() {
        let folder = std::env::temp_dir().join(format!("tpc-files-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("deep")).expect("a folder");
        for name in [
            "a.gguf",
            "b.gguf",
            "deep/c.gguf",
            "m-00001-of-00002.gguf",
            "m-00002-of-00002.gguf",
            "x[1].gguf",
        ] {
            std::fs::write(folder.join(name), b"").expect("a file");
        }
        let names = |words: &[&str]| -> Option<Vec<String>> {
            let words: Vec<PathBuf> = words.iter().map(PathBuf::from).collect();
            let files = expand(&words, &folder).ok()?;
            let of = |p: &PathBuf| p.strip_prefix(&folder).unwrap_or(p).display().to_string();
            Some(files.iter().map(of).collect())
        };
        let list = |all: &[&str]| Some(all.iter().map(|&s| s.to_owned()).collect::<Vec<String>>());
        assert_eq!(names(&["?.gguf", "a.gguf"]), list(&["a.gguf", "b.gguf"]));
        assert_eq!(names(&["m*.gguf"]), list(&["m-00001-of-00002.gguf"]));
        assert_eq!(
            names(&["m-00002-of-00002.gguf"]),
            list(&["m-00002-of-00002.gguf"])
        );
        assert_eq!(names(&["**/c.gguf"]), list(&["deep/c.gguf"]));
        assert_eq!(names(&["x[1].gguf"]), list(&["x[1].gguf"]));
        assert_eq!(names(&["https://h/a?x=*"]), list(&["https://h/a?x=*"]));
        assert_eq!((names(&["z*.gguf"]), names(&["[a"])), (None, None));
        let here = folder.to_str().expect("a name");
        assert_eq!(names(&[here]).map(|n| n.len()), Some(4));
        std::fs::remove_dir_all(&folder).expect("the folder");
    }
}
