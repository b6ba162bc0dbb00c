use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The program that keeps a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The Hugging Face hub cache.
    Hub,
    /// A folder of llama.cpp.
    LlamaCpp,
    /// Ollama.
    Ollama,
    /// LM Studio.
    LmStudio,
}

impl Source {
    /// Returns the program's name for tables and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Hub => "hub",
            Source::LlamaCpp => "llama.cpp",
            Source::Ollama => "ollama",
            Source::LmStudio => "lmstudio",
        }
    }
}

/// The arrangement of files in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// `models--USER--NAME/snapshots/COMMIT/FILE`.
    Hub,
    /// `USER_NAME_FILE.gguf`.
    Flat,
    /// Manifests and blobs.
    Ollama,
    /// `USER/NAME/FILE.gguf`.
    LmStudio,
}

/// A folder with models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Store {
    pub(super) source: Source,
    pub(super) layout: Layout,
    pub(super) root: PathBuf,
}

/// The folders with models, in the order of search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stores {
    pub(super) all: Vec<Store>,
    hub: Option<PathBuf>,
}

fn hub_cache(path: &impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let cache = path("HF_HUB_CACHE").or_else(|| path("HUGGINGFACE_HUB_CACHE"));
    cache
        .or_else(|| Some(path("HF_HOME")?.join("hub")))
        .or_else(|| Some(path("XDG_CACHE_HOME")?.join("huggingface/hub")))
        .or_else(|| Some(home(path)?.join(".cache/huggingface/hub")))
}

fn home(path: &impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    path("HOME").or_else(|| path("USERPROFILE"))
}

/// Returns the folders of llama.cpp before it used the hub's layout.
fn older_llama_cpp(path: &impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        return Some(home(path)?.join("Library/Caches/llama.cpp"));
    }
    if cfg!(windows) {
        return Some(path("LOCALAPPDATA")?.join("llama.cpp"));
    }
    let cache = path("XDG_CACHE_HOME").or_else(|| Some(home(path)?.join(".cache")));
    Some(cache?.join("llama.cpp"))
}

impl Stores {
    /// Returns the folders that the environment variables name, and the default folders.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Stores {
        let given = |name: &str| Some(PathBuf::from(variable(name).filter(|v| !v.is_empty())?));
        // Other programs expand `~`, which a shell does not expand in quotes.
        let path = |name: &str| {
            let path = given(name)?;
            match path.strip_prefix("~") {
                Ok(rest) => Some(given("HOME")?.join(rest)),
                Err(_) => Some(path),
            }
        };
        let hub = hub_cache(&path);
        let mut all: Vec<Store> = Vec::new();
        let mut add = |source, layout, root: Option<PathBuf>| {
            let Some(root) = root else { return };
            let store = Store {
                source,
                layout,
                root,
            };
            if !all.contains(&store) {
                all.push(store);
            }
        };
        add(Source::Hub, Layout::Hub, hub.clone());
        let cache = path("LLAMA_CACHE");
        add(Source::LlamaCpp, Layout::Hub, cache.clone());
        add(Source::LlamaCpp, Layout::Flat, cache);
        add(Source::LlamaCpp, Layout::Flat, older_llama_cpp(&path));
        let under_home = |folder: &str| home(&path).map(|h| h.join(folder));
        match path("OLLAMA_MODELS") {
            Some(root) => add(Source::Ollama, Layout::Ollama, Some(root)),
            None => {
                add(Source::Ollama, Layout::Ollama, under_home(".ollama/models"));
                // The folder of Ollama's service on Linux.
                let service = cfg!(target_os = "linux")
                    .then(|| PathBuf::from("/usr/share/ollama/.ollama/models"));
                add(Source::Ollama, Layout::Ollama, service);
            }
        }
        for folder in [".lmstudio/models", ".cache/lm-studio/models"] {
            add(Source::LmStudio, Layout::LmStudio, under_home(folder));
        }
        Stores { all, hub }
    }

    /// Returns the folder for downloads: the hub cache.
    pub fn hub(&self) -> Option<&Path> {
        self.hub.as_deref()
    }

    /// Returns all folders with their programs, in the order of search.
    pub fn folders(&self) -> impl Iterator<Item = (Source, &Path)> {
        self.all.iter().map(|s| (s.source, s.root.as_path()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(variables: &[(&str, &str)]) -> Vec<String> {
        let of = |name: &str| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let stores = Stores::from_variables(of);
        let shown =
            |(source, root): (Source, &Path)| format!("{} {}", source.name(), root.display());
        stores.folders().map(shown).collect()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn folders_of_variables() {
        let all = roots(&[("HOME", "/h")]);
        assert_eq!(
            all,
            [
                "hub /h/.cache/huggingface/hub",
                "llama.cpp /h/.cache/llama.cpp",
                "ollama /h/.ollama/models",
                "ollama /usr/share/ollama/.ollama/models",
                "lmstudio /h/.lmstudio/models",
                "lmstudio /h/.cache/lm-studio/models",
            ]
        );
        let hub = |variables: &[(&str, &str)]| roots(variables)[0].clone();
        assert_eq!(hub(&[("HF_HOME", "/f"), ("HOME", "/h")]), "hub /f/hub");
        assert_eq!(hub(&[("HF_HOME", "~/f"), ("HOME", "/h")]), "hub /h/f/hub");
        assert_eq!(hub(&[("HF_HUB_CACHE", "/c"), ("HF_HOME", "/f")]), "hub /c");
        assert_eq!(hub(&[("XDG_CACHE_HOME", "/x")]), "hub /x/huggingface/hub");
        let all = roots(&[
            ("LLAMA_CACHE", "/l"),
            ("OLLAMA_MODELS", "/o"),
            ("HF_HOME", ""),
        ]);
        assert_eq!(all, ["llama.cpp /l", "llama.cpp /l", "ollama /o"]);
    }
}
