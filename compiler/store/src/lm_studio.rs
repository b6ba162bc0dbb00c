//! LM Studio's folders: `USER/NAME/FILE.gguf`.

use std::path::{Path, PathBuf};

use super::entry::{Candidate, Entry, Files};
use super::repository::Repository;
use super::stores::Source;
use super::walk;

/// Returns the repositories of a folder, each with its folder. Other names are skipped: users keep other folders there.
pub(super) fn repositories(root: &Path) -> Vec<(Repository, PathBuf)> {
    let users = walk::entries(root)
        .into_iter()
        .filter(|p| walk::is_folder(p));
    let mut out = Vec::new();
    for user in users {
        // A repository may be a link to another disk.
        for folder in walk::entries(&user).into_iter().filter(|p| p.is_dir()) {
            let names = walk::name(&user).zip(walk::name(&folder));
            let repository =
                names.and_then(|(user, name)| Repository::parse(&format!("{user}/{name}")));
            out.extend(repository.map(|r| (r, folder)));
        }
    }
    out
}

/// Returns the files of a repository.
pub(super) fn files(folder: &Path) -> Files {
    let files = walk::files(folder).into_iter();
    Files(files.map(|(file, path)| Candidate { file, path }).collect())
}

/// Lists the models of a folder.
pub(super) fn list(source: Source, root: &Path) -> Vec<Entry> {
    let all = repositories(root).into_iter();
    all.flat_map(|(repository, folder)| files(&folder).entries(source, &repository))
        .collect()
}
