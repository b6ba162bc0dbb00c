use std::sync::OnceLock;

use super::Build;
use crate::llama_cpp::Maker;

/// The files of the releases, the newest of each engine first.
const FILES: [(&str, &str); 3] = [
    (
        "llama.cpp-0.8.0.ron",
        include_str!("data/llama.cpp-0.8.0.ron"),
    ),
    (
        "llama.cpp-0.5.0.ron",
        include_str!("data/llama.cpp-0.5.0.ron"),
    ),
    ("ik_llama.cpp.ron", include_str!("data/ik_llama.cpp.ron")),
];

/// Returns every release, the newest of each engine first.
pub fn builds() -> &'static [Build] {
    static BUILDS: OnceLock<Vec<Build>> = OnceLock::new();
    BUILDS.get_or_init(|| {
        let read = |(name, text): (&str, &str)| {
            let options = ron::Options::default()
                .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME);
            let build = options.from_str(text);
            build.unwrap_or_else(|e| panic!("invariant: tests read the file {name}: {e}"))
        };
        FILES.into_iter().map(read).collect()
    })
}

impl Build {
    /// Returns an engine's newest release.
    pub fn newest(engine: Maker) -> &'static Build {
        let found = builds().iter().find(|b| b.engine == engine);
        found.expect("invariant: every engine has a release")
    }

    /// Returns an engine's release with this version.
    pub fn find(engine: Maker, version: &str) -> Option<&'static Build> {
        let version = version.trim_start_matches('v');
        builds()
            .iter()
            .find(|b| b.engine == engine && b.version == version)
    }

    /// Returns an engine's versions, the newest first.
    pub fn versions(engine: Maker) -> impl Iterator<Item = &'static str> {
        let of = builds().iter().filter(move |b| b.engine == engine);
        of.map(|b| b.version.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read() {
        assert_eq!(builds().len(), FILES.len());
        for (name, _) in FILES {
            let named = builds().iter().any(|b| {
                let with = format!("{}-{}.ron", b.engine.name(), b.version);
                name == with || name == format!("{}.ron", b.engine.name())
            });
            assert!(named, "{name} is named after its engine and version");
        }
        assert_eq!(Build::newest(Maker::LlamaCpp).version, "0.8.0");
        assert!(Build::find(Maker::LlamaCpp, "0.5.0").is_some());
        assert!(Build::find(Maker::LlamaCpp, "0.4.0").is_none());
    }
}
