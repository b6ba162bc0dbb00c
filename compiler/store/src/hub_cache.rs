//! The Hugging Face hub cache: `models--USER--NAME/snapshots/COMMIT/FILE`, with links to `blobs/HASH`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::entry::{Candidate, Entry, Files, State};
use super::repository::Repository;
use super::stores::Source;
use super::walk;

/// The maximum size of a file with a commit.
const MAX_REF: u64 = 256;
/// The maximum number of snapshots of a repository that tpc reads.
const MAX_SNAPSHOTS: usize = 32;

/// True for a commit's name.
pub(super) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns the repositories of a cache, each with its folder. An invalid name is returned as text.
pub(super) fn repositories(root: &Path) -> Vec<(Result<Repository, String>, PathBuf)> {
    // A repository may be a link to another disk.
    let folders = walk::entries(root).into_iter().filter(|p| p.is_dir());
    let with_name = folders.filter_map(|path| {
        let name = walk::name(&path)?
            .strip_prefix("models--")?
            .replacen("--", "/", 1);
        Some((Repository::parse(&name).ok_or(name), path))
    });
    with_name.collect()
}

/// Returns the snapshots of a repository: main's first, then the newest.
fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let of_main = walk::text(&folder.join("refs/main"), MAX_REF);
    let of_main = of_main
        .map(|t| t.trim().to_owned())
        .filter(|t| is_commit(t));
    let age = |path: &Path| {
        let modified = fs::metadata(path).and_then(|m| m.modified());
        let passed = modified
            .ok()
            .and_then(|t| SystemTime::now().duration_since(t).ok());
        passed.unwrap_or_default()
    };
    let mut all: Vec<PathBuf> = walk::entries(&folder.join("snapshots"))
        .into_iter()
        .filter(|p| walk::is_folder(p))
        .collect();
    all.sort_by_key(|p| (walk::name(p) != of_main.as_deref(), age(p)));
    all.truncate(MAX_SNAPSHOTS);
    all
}

/// Returns the files of a repository. If snapshots have files of one name, the first snapshot's is returned.
pub(super) fn files(folder: &Path) -> Files {
    let mut out = Files::default();
    for snapshot in snapshots(folder) {
        for (file, path) in walk::files(&snapshot) {
            if !out.0.iter().any(|c| c.file == file) {
                out.0.push(Candidate { file, path });
            }
        }
    }
    out
}

/// Returns the downloads of a repository that have not ended.
fn unfinished(source: Source, repository: &Repository, folder: &Path) -> Vec<Entry> {
    let blobs = walk::entries(&folder.join("blobs"));
    let begun = blobs.into_iter().filter(|p| {
        let name = walk::name(p).unwrap_or_default();
        name.ends_with(".incomplete") || name.ends_with(".downloadInProgress")
    });
    let entry = |path: PathBuf| Entry {
        name: repository.to_string(),
        source,
        bytes: fs::metadata(&path).map_or(0, |m| m.len()),
        state: State::Unfinished(format!(
            "the download has not ended: {}",
            walk::name(&path).unwrap_or_default()
        )),
        path,
    };
    begun.map(entry).collect()
}

/// Lists the models of a cache.
pub(super) fn list(source: Source, root: &Path) -> Vec<Entry> {
    let mut out = Vec::new();
    for (repository, folder) in repositories(root) {
        match repository {
            Ok(repository) => {
                out.extend(files(&folder).entries(source, &repository));
                out.extend(unfinished(source, &repository, &folder));
            }
            Err(name) => out.push(Entry {
                name: name.chars().take(100).collect(),
                source,
                path: folder,
                bytes: 0,
                state: State::Broken("the folder's name is not a repository's".to_owned()),
            }),
        }
    }
    out
}
