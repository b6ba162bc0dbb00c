mod caches;
mod downloads;
mod hostile;
mod server;
mod token;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Stores;

/// A folder that is deleted at the end of a test.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tpc-store-{}-{n}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Adds a file to a hub cache below `hub/`, as huggingface_hub does.
    pub(super) fn hub(&self, repository: &str, commit: &str, file: &str) {
        let folder = format!("hub/models--{}", repository.replace('/', "--"));
        let blob = format!("{:0>64}", file.len());
        self.write(&format!("{folder}/blobs/{blob}"), file);
        self.write(&format!("{folder}/refs/main"), commit);
        let link = self.path(&format!("{folder}/snapshots/{commit}/{file}"));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        let up = "../".repeat(2 + file.matches('/').count());
        symlink(Path::new(&format!("{up}blobs/{blob}")), &link);
    }

    pub(super) fn stores(&self) -> Stores {
        let folder = |name: &str| Some(self.path(name).into_os_string());
        Stores::from_variables(|name| -> Option<OsString> {
            match name {
                "HF_HUB_CACHE" => folder("hub"),
                "LLAMA_CACHE" => folder("llama"),
                "OLLAMA_MODELS" => folder("ollama"),
                "HOME" => folder("home"),
                _ => None,
            }
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn symlink(target: &Path, link: &Path) {
    std::os::unix::fs::symlink(target, link).unwrap();
}
