use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::choose::{choose, is_first, is_model, quant_of, shards};
use super::repository::Repository;
use super::stores::Source;

/// The condition of a model in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// All files are present.
    Ready,
    /// A download that has not ended, with the details.
    Unfinished(String),
    /// A model that cannot be used, with the reason.
    Broken(String),
}

/// A model in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name that finds the model: `USER/NAME:QUANT`, `NAME:TAG`, `hf://USER/NAME/FILE`.
    pub name: String,
    /// The program that keeps the model.
    pub source: Source,
    /// The file, or the first of its shards.
    pub path: PathBuf,
    /// The bytes of the file, or of all its shards.
    pub bytes: u64,
    /// The condition of the files.
    pub state: State,
}

/// A file of a repository on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The path in the repository.
    pub(super) file: String,
    /// The path on this machine, perhaps a link.
    pub(super) path: PathBuf,
}

/// The files of a repository on this machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(pub(super) Vec<Candidate>);

fn length(path: &Path) -> Option<u64> {
    let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(file.len())
}

impl Files {
    fn of(&self, file: &str) -> Option<&Candidate> {
        self.0.iter().find(|c| c.file == file)
    }

    /// Returns the bytes of a model's shards, and the condition of the files.
    fn condition(&self, file: &str) -> (u64, State) {
        let all = shards(file);
        let mut bytes = 0u64;
        let mut missing = Vec::new();
        for shard in &all {
            match self.of(shard).and_then(|c| length(&c.path)) {
                Some(n) => bytes = bytes.saturating_add(n),
                None => missing.push(shard.as_str()),
            }
        }
        let state = match (missing.as_slice(), all.len()) {
            ([], _) => State::Ready,
            (_, 1) => State::Broken("the link points to a missing file".to_owned()),
            (some, n) => {
                let first = some.first().copied().unwrap_or_default();
                State::Unfinished(format!(
                    "{} of {n} shards are missing, such as {first}",
                    some.len()
                ))
            }
        };
        (bytes, state)
    }

    fn is_ready(&self, file: &str) -> bool {
        self.condition(file).1 == State::Ready
    }

    /// Chooses a complete model by llama.cpp's rule.
    pub(super) fn choose(&self, quant: Option<&str>) -> Option<&Candidate> {
        let ready: Vec<&Candidate> = (self.0.iter())
            .filter(|c| is_model(&c.file) && is_first(&c.file) && self.is_ready(&c.file))
            .collect();
        let paths: Vec<&str> = ready.iter().map(|c| c.file.as_str()).collect();
        choose(&paths, quant).map(|at| ready[at])
    }

    /// Finds a complete file by its path in the repository.
    pub(super) fn named(&self, file: &str) -> Option<&Candidate> {
        self.of(file).filter(|_| self.is_ready(file))
    }

    /// Lists the models of a repository. A split model is listed once, even without its first shard.
    pub(super) fn entries(&self, source: Source, repository: &Repository) -> Vec<Entry> {
        let mut seen = BTreeSet::new();
        let models = self.0.iter().filter(|c| is_model(&c.file));
        let firsts = models.filter_map(|c| shards(&c.file).into_iter().next());
        let firsts: Vec<String> = firsts.filter(|f| seen.insert(f.clone())).collect();
        firsts
            .iter()
            .filter_map(|file| self.entry(source, file, self.name(repository, file)))
            .collect()
    }

    /// Returns the entry of the model with this first shard.
    pub(super) fn entry(&self, source: Source, file: &str, name: String) -> Option<Entry> {
        let present = shards(file)
            .into_iter()
            .find_map(|shard| self.of(&shard).cloned());
        let (bytes, state) = self.condition(file);
        Some(Entry {
            name,
            source,
            path: present?.path,
            bytes,
            state,
        })
    }

    /// Returns the shortest name that chooses a file of the repository.
    pub(super) fn name(&self, repository: &Repository, file: &str) -> String {
        // The first shard counts even if only others are present.
        let firsts = (self.0.iter()).filter_map(|c| shards(&c.file).into_iter().next());
        let firsts: Vec<String> = firsts.collect();
        let paths: Vec<&str> = firsts.iter().map(String::as_str).collect();
        let chosen =
            |quant: Option<&str>| choose(&paths, quant).is_some_and(|at| paths[at] == file);
        match quant_of(file).filter(|q| chosen(Some(q))) {
            Some(quant) => format!("{repository}:{quant}"),
            None if chosen(None) => repository.to_string(),
            None => format!("hf://{repository}/{file}"),
        }
    }
}
