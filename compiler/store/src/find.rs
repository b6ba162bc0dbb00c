use std::path::{Path, PathBuf};

use tpc_diag::Diagnostic;

use super::choose::{has_gguf_extension, is_model};
use super::entry::Files;
use super::repository::{Repository, Wanted};
use super::stores::{Layout, Source, Store, Stores};
use super::{codes, flat, hub_cache, lm_studio, ollama};

/// The longest name that tpc looks up, in bytes.
const LONGEST: usize = 512;
/// The maximum number of names in a message.
const MAX_LISTED: usize = 8;

/// A model in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file, or the first of its shards.
    pub path: PathBuf,
    /// The program that keeps the file.
    pub source: Source,
    /// True if the name did not give the quantisation or the file.
    pub chosen: bool,
}

/// A repository in a cache, with its files.
struct Kept {
    repository: Repository,
    files: Files,
}

impl Store {
    /// Returns the repositories with a fitting name. Flat folders do not list repositories.
    fn repositories(&self, fits: impl Fn(&Repository) -> bool) -> Vec<Kept> {
        match self.layout {
            Layout::Hub => {
                let all = hub_cache::repositories(&self.root).into_iter();
                let all = all.filter_map(|(r, folder)| Some((r.ok()?, folder)));
                all.filter(|(r, _)| fits(r))
                    .map(|(repository, folder)| Kept {
                        repository,
                        files: hub_cache::files(&folder),
                    })
                    .collect()
            }
            Layout::LmStudio => {
                let all = lm_studio::repositories(&self.root).into_iter();
                all.filter(|(r, _)| fits(r))
                    .map(|(repository, folder)| Kept {
                        repository,
                        files: lm_studio::files(&folder),
                    })
                    .collect()
            }
            Layout::Flat | Layout::Ollama => Vec::new(),
        }
    }

    fn found(&self, path: &Path, chosen: bool) -> Found {
        Found {
            path: path.to_owned(),
            source: self.source,
            chosen,
        }
    }

    fn find(&self, wanted: &Wanted) -> Option<Found> {
        let Wanted {
            repository,
            quant,
            file,
        } = wanted;
        let of = |files: &Files, file: Option<&str>| {
            let found = match file {
                Some(file) => files.named(file),
                None => files.choose(quant.as_deref()),
            };
            found.map(|c| self.found(&c.path, quant.is_none() && file.is_none()))
        };
        match self.layout {
            Layout::Flat => {
                let tag = quant.as_deref().unwrap_or("latest");
                let tagged = || flat::of_tag(&self.root, repository, tag);
                let tagged = file.is_none().then(tagged).flatten();
                let file = file.as_ref().map(|f| f.replace('/', "_"));
                tagged
                    .map(|path| self.found(&path, quant.is_none()))
                    .or_else(|| of(&flat::files(&self.root, repository), file.as_deref()))
            }
            Layout::Ollama => {
                // Ollama keeps models of the hub under the hub's host.
                let quant = quant.as_deref().filter(|_| file.is_none())?;
                let name = format!("hf.co/{repository}:{quant}");
                ollama::find(&self.root, &name).map(|path| self.found(&path, false))
            }
            Layout::Hub | Layout::LmStudio => {
                let mut kept = self.repositories(|r| r.is_like(repository));
                kept.sort_by_key(|k| k.repository != *repository);
                kept.iter().find_map(|k| of(&k.files, file.as_deref()))
            }
        }
    }

    /// Finds models by a bare name, each with the name that only it has.
    fn named(&self, word: &str) -> Vec<(String, Found)> {
        let (name, quant) = word
            .split_once(':')
            .map_or((word, None), |(n, q)| (n, Some(q)));
        match self.layout {
            Layout::Ollama => {
                let path = ollama::find(&self.root, word);
                path.map(|path| (word.to_owned(), self.found(&path, false)))
                    .into_iter()
                    .collect()
            }
            Layout::Flat => {
                let files = flat::by_name(&self.root);
                self.of_file(&files, word, &|file| file.to_owned())
            }
            Layout::Hub | Layout::LmStudio => {
                let named = self.repositories(|r| is_called(r, name));
                let chosen = named.iter().filter_map(|k| {
                    let c = k.files.choose(quant)?;
                    let shown = k.files.name(&k.repository, &c.file);
                    Some((shown, self.found(&c.path, true)))
                });
                let chosen: Vec<(String, Found)> = chosen.collect();
                if !chosen.is_empty() {
                    return chosen;
                }
                let all = self.repositories(|_| true).into_iter();
                all.flat_map(|k| {
                    let shown = |file: &str| k.files.name(&k.repository, file);
                    self.of_file(&k.files, word, &shown)
                })
                .collect()
            }
        }
    }

    /// Finds models by the name of their file, with or without its extension.
    fn of_file(
        &self,
        files: &Files,
        word: &str,
        shown: &dyn Fn(&str) -> String,
    ) -> Vec<(String, Found)> {
        let fits = |file: &str| {
            let name = file.rsplit('/').next().unwrap_or(file);
            let stem = match has_gguf_extension(name) {
                true => &name[..name.len() - 5],
                false => name,
            };
            word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case(stem)
        };
        let fitting = files
            .0
            .iter()
            .filter(|c| is_model(&c.file) && fits(&c.file));
        let ready = fitting.filter_map(|c| files.named(&c.file));
        ready
            .map(|c| (shown(&c.file), self.found(&c.path, false)))
            .collect()
    }
}

/// True if a bare name is a repository's name, perhaps without the `-GGUF` at its end.
fn is_called(repository: &Repository, name: &str) -> bool {
    let own = repository.name.as_str();
    let without = own.len().checked_sub(5).filter(|&at| {
        own.get(at..)
            .is_some_and(|t| t.eq_ignore_ascii_case("-gguf"))
    });
    own.eq_ignore_ascii_case(name) || without.is_some_and(|at| own[..at].eq_ignore_ascii_case(name))
}

/// Finds a repository's model in the caches. Incomplete models are skipped.
pub fn find(stores: &Stores, wanted: &Wanted) -> Option<Found> {
    stores.all.iter().find_map(|store| store.find(wanted))
}

/// Finds a model by a bare name: `USER/NAME[:QUANT]`, an Ollama name, a repository's name without its user, or a file's
/// name. The first cache with a fitting model wins.
///
/// # Errors
/// Returns TPC0448 if several models of one cache have the name.
pub fn find_name(stores: &Stores, word: &str) -> Result<Option<Found>, Diagnostic> {
    let odd = |c: char| c.is_control() || c == '\\';
    if word.is_empty()
        || word.len() > LONGEST
        || word.starts_with(['-', '.', '/', '~'])
        || word.contains(odd)
    {
        return Ok(None);
    }
    let wanted = Wanted::parse(word).ok();
    for store in &stores.all {
        let of_repository = wanted.as_ref().and_then(|w| store.find(w));
        if let Some(found) = of_repository {
            return Ok(Some(found));
        }
        let mut all = store.named(word);
        all.dedup_by(|a, b| a.1.path == b.1.path);
        match all.as_slice() {
            [] => {}
            [(_, found)] => return Ok(Some(found.clone())),
            several => {
                let names: Vec<&str> = several.iter().map(|(n, _)| n.as_str()).collect();
                let message = format!(
                    "`{word}` fits {} models of {}",
                    names.len(),
                    store.source.name()
                );
                let d = Diagnostic::new(&codes::AMBIGUOUS, word.to_owned(), message);
                let shown = names[..names.len().min(MAX_LISTED)].join(", ");
                return Err(d.help(format!("give one of {shown}")));
            }
        }
    }
    Ok(None)
}
