//! Ollama's folder: `manifests/HOST/NAMESPACE/NAME/TAG`, with the models in `blobs/sha256-…`.

use std::fs;
use std::path::{Path, PathBuf};

use super::entry::{Entry, State};
use super::manifest::model_layer;
use super::stores::Source;
use super::walk;

const REGISTRY: &str = "registry.ollama.ai";
const LIBRARY: &str = "library";

/// Returns the name of a manifest's path, as Ollama shows it.
fn name(relative: &str) -> Option<String> {
    let (path, tag) = relative.rsplit_once('/')?;
    let path = match path
        .strip_prefix(REGISTRY)
        .and_then(|p| p.strip_prefix('/'))
    {
        Some(path) => path
            .strip_prefix(LIBRARY)
            .and_then(|p| p.strip_prefix('/'))
            .unwrap_or(path),
        None => path,
    };
    Some(format!("{path}:{tag}"))
}

/// Returns the manifest's path of a name such as `llama3`, `llama3:8b`, `user/llama3` or `hf.co/user/name:Q4_K_M`.
fn manifest(root: &Path, word: &str) -> Option<PathBuf> {
    let (path, tag) = match word.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, tag),
        _ => (word, "latest"),
    };
    let mut parts: Vec<&str> = path.split('/').collect();
    match parts.len() {
        1 => parts = vec![REGISTRY, LIBRARY, parts[0]],
        2 => parts.insert(0, REGISTRY),
        3 => {}
        _ => return None,
    }
    parts.push(tag);
    let known = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let safe = |p: &&str| !p.is_empty() && !p.starts_with('.') && p.chars().all(known);
    let all_safe = parts.iter().all(safe);
    all_safe.then(|| root.join("manifests").join(parts.join("/")))
}

/// Returns the blob of a manifest, its size, and its condition.
fn blob(root: &Path, manifest: &Path) -> (PathBuf, u64, State) {
    let layer = match model_layer(manifest) {
        Ok(layer) => layer,
        Err(why) => return (manifest.to_owned(), 0, State::Broken(why)),
    };
    let path = root.join(format!("blobs/sha256-{}", layer.digest));
    let found = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
    let bytes = found.as_ref().map_or(0, fs::Metadata::len);
    let begun = path.with_file_name(format!("sha256-{}-partial", layer.digest));
    let state = match (found.is_some(), layer.bytes) {
        (true, Some(whole)) if bytes < whole => {
            State::Unfinished(format!("{bytes} of {whole} bytes are present"))
        }
        (true, _) => State::Ready,
        (false, _) if begun.exists() => State::Unfinished("the download has not ended".to_owned()),
        (false, _) => State::Broken("the model's blob is missing".to_owned()),
    };
    (path, bytes, state)
}

/// Finds a complete model by its name.
pub(super) fn find(root: &Path, word: &str) -> Option<PathBuf> {
    let manifest = manifest(root, word).filter(|m| m.is_file())?;
    match blob(root, &manifest) {
        (path, _, State::Ready) => Some(path),
        _ => None,
    }
}

/// Lists the models of a folder.
pub(super) fn list(source: Source, root: &Path) -> Vec<Entry> {
    let manifests = walk::files(&root.join("manifests")).into_iter();
    let entries = manifests.filter_map(|(relative, path)| {
        // Hidden files are the system's, such as .DS_Store.
        let hidden = walk::name(&path)?.starts_with('.');
        let name = name(&relative).filter(|_| !hidden)?;
        let (path, bytes, state) = blob(root, &path);
        Some(Entry {
            name,
            source,
            path,
            bytes,
            state,
        })
    });
    // A model for embeddings is a model; manifests without a model's layer, such as adapters, are listed as broken.
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_manifests() {
        let root = Path::new("/o");
        for (word, path) in [
            ("llama3", "registry.ollama.ai/library/llama3/latest"),
            ("llama3:8b", "registry.ollama.ai/library/llama3/8b"),
            ("u/llama3:8b", "registry.ollama.ai/u/llama3/8b"),
            ("hf.co/u/n:Q4_K_M", "hf.co/u/n/Q4_K_M"),
        ] {
            let expected = root.join("manifests").join(path);
            assert_eq!(manifest(root, word), Some(expected), "{word}");
            let again = name(path).and_then(|name| manifest(root, &name));
            assert_eq!(again, manifest(root, word), "{word}");
        }
        for word in ["", "..", "a:..", "../a:b", "a/b/c/d", "a//b", "a:", "a b"] {
            assert_eq!(manifest(root, word), None, "{word}");
        }
    }
}
