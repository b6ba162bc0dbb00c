//! Finds models by their names: in the caches of other programs, then on the hub.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use tpc_core::format::bytes;
use tpc_diag::Diagnostic;
use tpc_fetch::{Address, Limits};
use tpc_store::{Found, Hub, Repository, Stores, Wanted, Watch, codes, download, find, find_name};

use super::web;
use crate::foreign::is_address;
use crate::output::{self, Failure};
use crate::progress::Progress;

/// The prefix of a repository in place of a file: `hf://USER/NAME:QUANT`.
const REPOSITORY: &str = "hf://";
/// The total time of a download.
const WHOLE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The part of a model that a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Header,
    /// Also the tensor data, so that a missing model is downloaded.
    Data,
}

/// Options for models that are named, not given as a file.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct HubArgs {
    /// Never open a connection: find models only on this machine [also: HF_HUB_OFFLINE=1].
    #[arg(long)]
    offline: bool,
}

impl HubArgs {
    /// Returns the options of a command that does not open connections.
    pub(crate) fn offline() -> HubArgs {
        HubArgs { offline: true }
    }

    fn is_offline(&self) -> bool {
        let variable = std::env::var("HF_HUB_OFFLINE").unwrap_or_default();
        let yes = ["1", "on", "yes", "true"];
        self.offline || yes.contains(&variable.to_ascii_lowercase().as_str())
    }

    /// Replaces the name of a model by its file, or by its address if a header suffices. Paths stay.
    pub(crate) fn resolve(&self, word: &mut PathBuf, need: Need) -> Result<(), Failure> {
        let Some(text) = word.to_str().filter(|_| !word.exists()) else {
            return Ok(());
        };
        if let Some(name) = text.strip_prefix(REPOSITORY) {
            let wanted = Wanted::parse(name).map_err(Failure::usage)?;
            *word = self.of_repository(&wanted, need)?;
        } else if is_address(text) {
            if self.is_offline() {
                let shown = super::shown(word);
                let message = "an address needs a connection, but the command is offline";
                let d = Diagnostic::new(&codes::OFFLINE, shown, message);
                return Err(Failure::usage(d.help(
                    "leave out --offline and unset HF_HUB_OFFLINE, or give a file on this machine",
                )));
            }
        } else if is_name(text) {
            let found = find_name(&stores(), text).map_err(Failure::usage)?;
            if let Some(found) = found {
                tell(text, &found);
                *word = found.path;
            }
        }
        Ok(())
    }

    /// Returns the file or address of a repository's model.
    fn of_repository(&self, wanted: &Wanted, need: Need) -> Result<PathBuf, Failure> {
        let stores = stores();
        if let Some(found) = find(&stores, wanted) {
            tell(&format!("-hf {wanted}"), &found);
            return Ok(found.path);
        }
        if self.is_offline() {
            let message = "no cache has the model, and the command is offline";
            let d = Diagnostic::new(&codes::NOT_HERE, wanted.to_string(), message);
            return Err(Failure::usage(d.help(
                "`tpc models` lists the models here; leave out --offline and unset HF_HUB_OFFLINE to use the hub",
            )));
        }
        let limits = Limits {
            whole: match need {
                Need::Header => Limits::default().whole,
                Need::Data => WHOLE,
            },
            ..Limits::default()
        };
        let client = web::client(limits)?;
        let endpoint = web::endpoint();
        let hub = Hub {
            client: &client,
            endpoint: &endpoint,
        };
        let refused = |d: Diagnostic| Failure::from_diagnostics(vec![d]);
        let progress = Progress::start(format!(
            "reading the list of files of {}",
            wanted.repository
        ));
        let model = hub.find(wanted).map_err(refused)?;
        drop(progress);
        if need == Need::Header {
            let Some(first) = model.files.first() else {
                return Ok(PathBuf::new());
            };
            let address = hub.address(&model, first).map_err(refused)?;
            return Ok(PathBuf::from(address.request()));
        }
        let Some(root) = stores.hub() else {
            let message = "no folder for downloads: HOME is not set";
            let d = Diagnostic::new(&tpc_diag::codes::FILE_ACCESS, "HF_HUB_CACHE", message);
            return Err(Failure::usage(d.help("set HF_HUB_CACHE to a folder")));
        };
        download(hub, root, &model, &Bar::default()).map_err(refused)
    }
}

/// Returns the caches that the environment variables name.
pub(crate) fn stores() -> Stores {
    Stores::from_variables(|name| std::env::var_os(name))
}

/// True if a word may be a name, not the path of another kind of file.
fn is_name(word: &str) -> bool {
    let other = [".tpc", ".jsonl", ".ndjson"];
    !word.contains("://") && !other.iter().any(|e| word.ends_with(e))
}

/// Reports the file that tpc chose, unless the name left no choice.
fn tell(name: &str, found: &Found) {
    if !found.chosen {
        return;
    }
    let path = found.path.display();
    let message = format!("`{name}` is {path}, from {}", found.source.name());
    let d = Diagnostic::new(&codes::FOUND, name.to_owned(), message);
    output::diagnostic(&d.help(
        "give a quantisation, such as :Q4_K_M, to choose another file; `tpc models` lists them",
    ));
}

/// Returns the repository and the file of a hub's address on the branch `main`.
pub(super) fn of_address(text: &str) -> Option<(String, String)> {
    let address = Address::parse(text).ok()?.display_name();
    let api = web::endpoint().api().ok()?.display_name();
    let path = address.strip_prefix(api.strip_suffix("api/models")?)?;
    let mut parts = path.splitn(5, '/');
    let repository = format!("{}/{}", parts.next()?, parts.next()?);
    let at_main = parts.next() == Some("resolve") && parts.next() == Some("main");
    let file = parts.next().filter(|_| at_main)?;
    Repository::parse(&repository).map(|r| (r.to_string(), file.to_owned()))
}

/// The bar of a download.
#[derive(Default)]
struct Bar(RefCell<Option<Progress>>);

impl Watch for Bar {
    fn begin(&self, file: &str, at: u64, whole: u64) {
        let progress =
            Progress::receiving(format!("downloading {file}, {}", bytes(whole)), at, whole);
        *self.0.borrow_mut() = Some(progress);
    }

    fn advance(&self, received: u64) {
        if let Some(progress) = self.0.borrow().as_ref() {
            progress.received(received);
        }
    }

    fn wait(&self, file: &str) {
        let work = format!("waiting for another process that downloads {file}");
        *self.0.borrow_mut() = Some(Progress::start(work));
    }
}
