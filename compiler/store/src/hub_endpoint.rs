use serde_json::Value as Json;
use tpc_diag::Diagnostic;
use tpc_fetch::{Address, Client};

use super::choose::{choose, is_model, quant_of, shards};
use super::codes;
use super::hub_cache::is_commit;
use super::manifest::is_sha256;
use super::repository::{Repository, Wanted, is_safe_file};

/// The hub without HF_ENDPOINT and MODEL_ENDPOINT.
const HUGGING_FACE: &str = "https://huggingface.co";
/// The maximum size of an answer of the API, in bytes.
const MAX_ANSWER: u64 = 32 << 20;
/// The maximum number of pages of a list of files. A page of Hugging Face has 1,000 files.
const MAX_PAGES: usize = 64;
/// The maximum number of names in a message.
const MAX_LISTED: usize = 12;

/// The address of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    /// Returns the hub of the variables MODEL_ENDPOINT and HF_ENDPOINT, or else Hugging Face.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Endpoint {
        let named = ["MODEL_ENDPOINT", "HF_ENDPOINT"].into_iter();
        let named = named.filter_map(variable).find(|v| !v.trim().is_empty());
        let address = named.map(|v| v.trim().trim_end_matches('/').to_owned());
        Endpoint(address.unwrap_or_else(|| HUGGING_FACE.to_owned()))
    }

    /// Returns the address of the hub's API.
    ///
    /// # Errors
    /// Returns TPC0430 if a variable does not have an address.
    pub fn api(&self) -> Result<Address, Diagnostic> {
        self.address("/api/models")
    }

    /// Returns the address of a path on the hub. The path begins with `/`.
    ///
    /// # Errors
    /// Returns TPC0430 if a variable does not have an address.
    pub fn address(&self, path: &str) -> Result<Address, Diagnostic> {
        Address::on_hub(&self.0, path)
    }
}

/// A file in a repository of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// The path in the repository.
    pub path: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The name of the blob: the SHA-256, or Git's SHA-1 for a small file.
    pub hash: String,
}

impl RemoteFile {
    /// True if the hash is the SHA-256 of the content.
    pub(super) fn has_sha256(&self) -> bool {
        is_sha256(&self.hash)
    }

    fn read(item: &Json) -> Option<RemoteFile> {
        let path = item["path"].as_str().filter(|p| is_safe_file(p))?;
        let lfs = &item["lfs"];
        let (hash, bytes) = match lfs.is_object() {
            true => (
                lfs["oid"].as_str()?,
                lfs["size"].as_u64().or(item["size"].as_u64())?,
            ),
            false => (item["oid"].as_str()?, item["size"].as_u64()?),
        };
        let is_file = item["type"].as_str() == Some("file");
        (is_file && (is_sha256(hash) || is_commit(hash))).then(|| RemoteFile {
            path: path.to_owned(),
            bytes,
            hash: hash.to_ascii_lowercase(),
        })
    }
}

/// A model in a repository of a hub: its commit and its files, the first shard first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteModel {
    /// The repository.
    pub repository: Repository,
    /// The commit of the branch `main`.
    pub commit: String,
    /// The file, or all shards.
    pub files: Vec<RemoteFile>,
    /// True if the name did not give the quantisation or the file.
    pub chosen: bool,
}

/// A hub, asked over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Hub<'c> {
    /// The client, with the token of the hub.
    pub client: &'c Client,
    /// The hub's address.
    pub endpoint: &'c Endpoint,
}

fn unusable(at: &Address, what: &str) -> Diagnostic {
    let d = Diagnostic::new(&codes::HUB_ANSWER, at.display_name(), what.to_owned());
    d.help("check HF_ENDPOINT and MODEL_ENDPOINT, or download the file and give its path")
}

impl Hub<'_> {
    fn json(&self, at: &Address) -> Result<Json, Diagnostic> {
        self.page(at).map(|(json, _)| json)
    }

    fn page(&self, at: &Address) -> Result<(Json, Option<Address>), Diagnostic> {
        let page = self.client.text(at, MAX_ANSWER)?;
        let json = serde_json::from_str(&page.text);
        let json = json.map_err(|_| unusable(at, "the hub's answer is not JSON"))?;
        Ok((json, page.next))
    }

    /// Returns all files of a commit.
    fn files(&self, repository: &Repository, commit: &str) -> Result<Vec<RemoteFile>, Diagnostic> {
        let path = format!("/api/models/{repository}/tree/{commit}");
        let mut at = self.endpoint.address(&path)?.with_query("recursive=true");
        let mut out = Vec::new();
        for _ in 0..MAX_PAGES {
            let (tree, next) = self.page(&at)?;
            let items = tree.as_array();
            let items = items.ok_or_else(|| unusable(&at, "the list of files is not a list"))?;
            out.extend(items.iter().filter_map(RemoteFile::read));
            match next {
                Some(next) => at = next,
                None => return Ok(out),
            }
        }
        let what = format!("the list of files has more than {MAX_PAGES} pages");
        Err(unusable(&at, &what))
    }

    /// Returns the commit of the branch `main`, or else of the first branch.
    fn commit(&self, repository: &Repository) -> Result<String, Diagnostic> {
        let at = self
            .endpoint
            .address(&format!("/api/models/{repository}/refs"))?;
        let refs = self.json(&at)?;
        let branches = refs["branches"].as_array().map_or(&[][..], Vec::as_slice);
        let commit = |b: &Json| {
            let commit = b["targetCommit"].as_str().filter(|c| is_commit(c))?;
            Some((b["name"].as_str() == Some("main"), commit.to_owned()))
        };
        let all: Vec<(bool, String)> = branches.iter().filter_map(commit).collect();
        let main = all.iter().find(|(main, _)| *main).or_else(|| all.first());
        main.map(|(_, commit)| commit.clone())
            .ok_or_else(|| unusable(&at, "the hub does not name a commit of the repository"))
    }

    /// Finds a model in a repository, by llama.cpp's rule for quantisations.
    ///
    /// # Errors
    /// Returns TPC0447 with the repository's models if it lacks the wanted one, TPC0450 for an unusable answer, and the
    /// errors of the connection.
    pub fn find(&self, wanted: &Wanted) -> Result<RemoteModel, Diagnostic> {
        let repository = &wanted.repository;
        let commit = self.commit(repository)?;
        let all = self.files(repository, &commit)?;
        let paths: Vec<&str> = all.iter().map(|f| f.path.as_str()).collect();
        let found = match &wanted.file {
            Some(file) => paths.iter().position(|p| p == file),
            None => choose(&paths, wanted.quant.as_deref()),
        };
        let Some(first) = found else {
            return Err(lacks(wanted, &paths));
        };
        let named = shards(paths[first]).into_iter();
        let files: Option<Vec<RemoteFile>> = named
            .map(|shard| all.iter().find(|f| f.path == shard).cloned())
            .collect();
        match files {
            Some(files) => Ok(RemoteModel {
                repository: repository.clone(),
                commit,
                files,
                chosen: wanted.quant.is_none() && wanted.file.is_none(),
            }),
            None => {
                let message = format!("the repository lacks shards of {}", paths[first]);
                let d = Diagnostic::new(&codes::NO_SUCH_MODEL, wanted.to_string(), message);
                Err(d.help("wait until the upload is finished, or choose another file"))
            }
        }
    }

    /// Returns the address of a file of a model.
    ///
    /// # Errors
    /// Returns TPC0430 if a variable does not have a hub's address.
    pub fn address(&self, model: &RemoteModel, file: &RemoteFile) -> Result<Address, Diagnostic> {
        let RemoteModel {
            repository, commit, ..
        } = model;
        let path = format!("/{repository}/resolve/{commit}/{}", file.path);
        self.endpoint.address(&path)
    }
}

/// Returns the diagnostic of a repository without the wanted model.
fn lacks(wanted: &Wanted, paths: &[&str]) -> Diagnostic {
    let what = match (&wanted.file, &wanted.quant) {
        (Some(file), _) => format!("the repository lacks the file {file}"),
        (None, Some(quant)) => format!("the repository lacks a GGUF file with {quant}"),
        (None, None) => "the repository does not have a GGUF model".to_owned(),
    };
    let d = Diagnostic::new(&codes::NO_SUCH_MODEL, wanted.to_string(), what);
    let models = paths.iter().filter(|p| is_model(p));
    let mut names: Vec<String> = models
        .map(|p| quant_of(p).map_or_else(|| (*p).to_owned(), |q| format!(":{q}")))
        .collect();
    names.sort();
    names.dedup();
    names.truncate(MAX_LISTED);
    d.help(match names.is_empty() {
        false => format!("choose one of its models: {}", names.join(", ")),
        true => "choose a repository with GGUF files; their names often end in -GGUF".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_on_hubs() {
        let of = |name: &'static str, value: &'static str| {
            Endpoint::from_variables(|n| (n == name).then(|| value.to_owned()))
        };
        for (endpoint, base) in [
            (of("", ""), "https://huggingface.co"),
            (of("HF_ENDPOINT", " "), "https://huggingface.co"),
            (
                of("HF_ENDPOINT", "https://hub.example/"),
                "https://hub.example",
            ),
            (of("MODEL_ENDPOINT", "http://h:8080/a"), "http://h:8080/a"),
        ] {
            let address = |path: &str| endpoint.address(path).map(|a| a.request());
            let api = endpoint.api().map(|a| a.request());
            assert_eq!(api, Ok(format!("{base}/api/models")));
            assert_eq!(
                address("/api/models/u/n/refs"),
                Ok(format!("{base}/api/models/u/n/refs"))
            );
            let file = address("/u/n/resolve/main/a b?#%.gguf");
            assert_eq!(
                file,
                Ok(format!("{base}/u/n/resolve/main/a%20b%3F%23%25.gguf"))
            );
        }
        assert!(of("HF_ENDPOINT", "hub").api().is_err());
    }
}
