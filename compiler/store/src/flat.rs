//! The folder of older versions of llama.cpp: `USER_NAME_FILE.gguf` and `manifest=USER=NAME=TAG.json`.

use std::path::{Path, PathBuf};

use super::choose::{is_model, shards};
use super::entry::{Candidate, Entry, Files, State};
use super::manifest::gguf_file;
use super::repository::Repository;
use super::stores::Source;
use super::walk;

/// Returns the repository and tag of a manifest's name.
fn of_manifest(name: &str) -> Option<(Repository, String)> {
    let text = name.strip_prefix("manifest=")?.strip_suffix(".json")?;
    let mut parts = text.split('=');
    let (user, name, tag) = (parts.next()?, parts.next()?, parts.next()?);
    let repository = Repository::parse(&format!("{user}/{name}"))?;
    parts.next().is_none().then(|| (repository, tag.to_owned()))
}

/// Returns the start of the names of a repository's files.
fn prefix(repository: &Repository) -> String {
    format!("{}_{}_", repository.user, repository.name)
}

/// Returns the files of a repository. The file's path in the repository has `_` in place of `/`.
pub(super) fn files(root: &Path, repository: &Repository) -> Files {
    let prefix = prefix(repository);
    let files = walk::entries(root).into_iter().filter_map(|path| {
        let name = walk::name(&path)?;
        let head = name.get(..prefix.len())?;
        let file = head
            .eq_ignore_ascii_case(&prefix)
            .then(|| name[prefix.len()..].to_owned())?;
        Some(Candidate { file, path })
    });
    Files(files.collect())
}

/// Finds the file of a manifest with this repository and tag.
pub(super) fn of_tag(root: &Path, repository: &Repository, tag: &str) -> Option<PathBuf> {
    let manifests = walk::entries(root).into_iter();
    let file = manifests.filter_map(|path| {
        let (of, its_tag) = of_manifest(walk::name(&path)?)?;
        let same = of.is_like(repository) && its_tag.eq_ignore_ascii_case(tag);
        same.then(|| gguf_file(&path)).flatten()
    });
    let file = file.map(|f| f.replace('/', "_")).next()?;
    let files = files(root, repository);
    files.named(&file).map(|c| c.path.clone())
}

/// Returns the models of a folder by their file names.
pub(super) fn by_name(root: &Path) -> Files {
    let files = walk::entries(root).into_iter().filter_map(|path| {
        let file = walk::name(&path)?.to_owned();
        (!walk::is_folder(&path)).then_some(Candidate { file, path })
    });
    Files(files.collect())
}

/// Lists the models of a folder. A model without a manifest has its file's name.
pub(super) fn list(source: Source, root: &Path) -> Vec<Entry> {
    let all = by_name(root);
    let tagged: Vec<(Repository, String)> = (all.0.iter())
        .filter_map(|c| of_manifest(&c.file))
        .collect();
    let repository_of = |file: &str| {
        let of_file = |(r, _): &&(Repository, String)| file.starts_with(&prefix(r));
        // The longest name wins: `a/b` and `a/b_c` may begin alike.
        let found = tagged.iter().filter(of_file);
        found.max_by_key(|(r, _)| r.name.len()).map(|(r, _)| r)
    };
    let mut out = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for c in &all.0 {
        if let Some(model) = c.file.strip_suffix(".downloadInProgress") {
            out.push(Entry {
                name: model.to_owned(),
                source,
                path: c.path.clone(),
                bytes: std::fs::metadata(&c.path).map_or(0, |m| m.len()),
                state: State::Unfinished("the download has not ended".to_owned()),
            });
        }
        let first = shards(&c.file).into_iter().next().unwrap_or_default();
        if !is_model(&c.file) || seen.contains(&first) {
            continue;
        }
        seen.push(first.clone());
        let entry = match repository_of(&c.file) {
            Some(repository) => {
                let files = files(root, repository);
                let file = &first[prefix(repository).len()..];
                files.entry(source, file, files.name(repository, file))
            }
            None => all.entry(source, &first, first.clone()),
        };
        out.extend(entry);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_manifests() {
        let (repository, tag) = of_manifest("manifest=u=n-GGUF=Q4_K_M.json").expect("a manifest");
        assert_eq!(
            (repository.to_string(), tag.as_str()),
            ("u/n-GGUF".to_owned(), "Q4_K_M")
        );
        for other in [
            "manifest=u=n.json",
            "manifest=..=n=t.json",
            "manifest=u=n=t=x.json",
            "m.json",
        ] {
            assert_eq!(of_manifest(other), None, "{other}");
        }
    }
}
