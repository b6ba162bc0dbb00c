use super::entry::Entry;
use super::stores::{Layout, Stores};
use super::{flat, hub_cache, lm_studio, ollama};

/// Lists the models in all caches. Unfinished and broken models are listed as such.
pub fn list(stores: &Stores) -> Vec<Entry> {
    let mut out = Vec::new();
    for store in &stores.all {
        let root = store.root.as_path();
        out.extend(match store.layout {
            Layout::Hub => hub_cache::list(store.source, root),
            Layout::Flat => flat::list(store.source, root),
            Layout::Ollama => ollama::list(store.source, root),
            Layout::LmStudio => lm_studio::list(store.source, root),
        });
    }
    out
}
