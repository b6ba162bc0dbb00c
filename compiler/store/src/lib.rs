//! # Models that other programs keep on this machine
//!
//! [`Stores`] lists the folders of the Hugging Face hub cache, llama.cpp, Ollama and LM Studio. [`find`] resolves a
//! repository to a file in these folders, [`find_name`] a bare name, and [`list`] lists all models.
//! [`Hub`] lists a repository's files over HTTP, and [`download`] adds missing files to the hub cache.
//!
//! - Folders are not trusted: the number of entries, the depth, and the size of manifests are limited. Links to folders
//!   are not followed.
//! - File names with `..`, absolute names and control characters are refused.
//! - A download is verified by its SHA-256 before it gets its final name.

mod choose;
pub mod codes;
mod download;
mod entry;
mod find;
mod flat;
mod hub_cache;
mod hub_endpoint;
mod list;
mod lm_studio;
mod lock;
mod manifest;
mod ollama;
mod repository;
mod space;
mod stores;
mod token;
mod walk;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use codes::CODES;
pub use download::{Watch, download};
pub use entry::{Entry, State};
pub use find::{Found, find, find_name};
pub use hub_endpoint::{Endpoint, Hub, RemoteFile, RemoteModel};
pub use list::list;
pub use repository::{Repository, Wanted};
pub use stores::{Source, Stores};
pub use token::hub_token;
