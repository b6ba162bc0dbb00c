//! The manifest: what an artefact says of itself.
//!
//! The types here are those of the file, so that no other type of tpc becomes a format by accident. A field is never
//! changed: what a later version adds raises [`FORMAT`].

use serde::{Deserialize, Serialize};
use tpc_ir::{DType, Window};

use crate::digest::Digest;
use crate::error::ArtefactError;
use crate::kernels;

/// The newest format of artefacts that is known.
pub const FORMAT: u32 = 1;
/// The longest manifest, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The most cells of a cache, and tokens of a batch.
const MAX_CELLS: u64 = 1 << 32;
/// The most sequences.
const MAX_SEQUENCES: u64 = 1 << 16;
/// The longest text in it, in bytes.
const MAX_TEXT: usize = 4096;

/// What an artefact says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the file and of this manifest.
    pub format: u32,
    /// The program that wrote it, and its version. Nothing is decided by it.
    pub producer: String,
    /// The other sections and their versions.
    pub sections: Vec<SectionVersion>,
    /// What runs it.
    pub target: TargetRecord,
    /// The names of the devices, in their order. They are bound to real ones when it runs.
    pub devices: Vec<String>,
    /// The model.
    pub model: ModelRecord,
    /// How it came about.
    pub options: OptionRecord,
    /// The topology file's hash, where there was one.
    pub topology: Option<Digest>,
    /// The entries with programs.
    pub programs: Vec<String>,
}

/// A section and the version of its form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionVersion {
    /// Its name, that of the entries' folder.
    pub name: String,
    /// Its version.
    pub version: u32,
}

/// What runs an artefact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetRecord {
    /// The executor: `cpu` or `cuda`.
    pub executor: String,
    /// The forms in which it stores weights.
    pub stored: Vec<StoredVersion>,
    /// What a host must have beyond what every one has; names of features.
    pub host: Vec<String>,
}

/// A form in which weights are stored, and its version: other versions have other bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredVersion {
    /// The form's name, as in the text of programs.
    pub name: String,
    /// Its version.
    pub version: u32,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRecord {
    /// `general.name`, or the architecture's.
    pub name: String,
    /// The architecture.
    pub architecture: String,
    /// The number of elements of its tensors.
    pub params: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The hash of header and tensor table.
    pub hash: Digest,
    /// The names of its files, without folders.
    pub files: Vec<String>,
    /// The attention window of the layers that have one.
    pub window: Option<WindowRecord>,
}

/// An attention window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowRecord {
    /// The last so many tokens.
    Sliding(u64),
    /// Those of its chunk.
    Chunks(u64),
}

impl From<Window> for WindowRecord {
    fn from(window: Window) -> WindowRecord {
        match window {
            Window::Sliding(n) => WindowRecord::Sliding(n),
            Window::Chunks(n) => WindowRecord::Chunks(n),
        }
    }
}

impl From<WindowRecord> for Window {
    fn from(window: WindowRecord) -> Window {
        match window {
            WindowRecord::Sliding(n) => Window::Sliding(n),
            WindowRecord::Chunks(n) => Window::Chunks(n),
        }
    }
}

/// The options that decide what a program is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionRecord {
    /// How the devices share the model: the mode that was asked for or chosen.
    pub split_mode: String,
    /// Cells of the caches, and their types.
    pub caches: CacheOptions,
    /// The largest batch, in tokens.
    pub ubatch: u64,
    /// The number of sequences.
    pub parallel: u64,
    /// The drafting of tokens: `none`, `draft-mtp`.
    pub drafting: String,
    /// The options of the command line that give this artefact again.
    pub words: Vec<String>,
}

/// The caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheOptions {
    /// Cells.
    pub context: u64,
    /// Element type of the K cache.
    pub type_k: String,
    /// Element type of the V cache.
    pub type_v: String,
}

impl CacheOptions {
    /// The element types of K and V.
    pub fn types(&self) -> Option<[DType; 2]> {
        Some([
            DType::from_name(&self.type_k)?,
            DType::from_name(&self.type_v)?,
        ])
    }
}

/// What every version's manifest begins with.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// The versions of the sections that are known.
const SECTIONS: [(&str, u32); 2] = [("programs", 1), (kernels::SECTION, 1)];
/// How many of them every artefact has.
const NEEDED: usize = 1;

impl Manifest {
    /// The versions of the sections that this tpc writes, of kernels only where there are some.
    pub fn section_versions(kernels: bool) -> Vec<SectionVersion> {
        let count = if kernels { SECTIONS.len() } else { NEEDED };
        let each = SECTIONS
            .into_iter()
            .take(count)
            .map(|(name, version)| SectionVersion {
                name: name.to_owned(),
                version,
            });
        each.collect()
    }

    /// Whether it says that there are kernels.
    pub(crate) fn has_kernels(&self) -> bool {
        self.sections.iter().any(|s| s.name == kernels::SECTION)
    }

    /// Its text.
    ///
    /// # Errors
    /// [`ArtefactError::Manifest`] for what its reader would refuse, so that nothing is written that cannot be read.
    pub fn to_text(&self) -> Result<String, ArtefactError> {
        let pretty = ron::ser::PrettyConfig::new()
            .new_line("\n")
            .depth_limit(8)
            .struct_names(false);
        let text = ron::ser::to_string_pretty(self, pretty);
        let text = text.map_err(|e| ArtefactError::Manifest(e.to_string()))?;
        match Manifest::parse(text.as_bytes())? == *self {
            true => Ok(text),
            false => Err(wrong("it changes when it is written")),
        }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ArtefactError::Newer`] and [`ArtefactError::UnknownSection`] for one of a later version,
    /// [`ArtefactError::Manifest`] for what is none.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, ArtefactError> {
        if bytes.len() > MAX_BYTES {
            return Err(wrong(&format!("it is longer than {MAX_BYTES} bytes")));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|e| wrong(&format!("byte {} is not UTF-8 text", e.valid_up_to())))?;
        let unreadable = |e: ron::error::SpannedError| wrong(&plain(&e.to_string()));
        // A later version may have fields that this one does not know: its number is read first.
        let head: Head = ron::from_str(text).map_err(unreadable)?;
        match head.format {
            0 => return Err(wrong("there is no format 0")),
            found if found > FORMAT => {
                return Err(ArtefactError::Newer {
                    what: "the artefact".to_owned(),
                    found,
                    newest: FORMAT,
                });
            }
            _ => {}
        }
        let manifest: Manifest = ron::from_str(text).map_err(unreadable)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// What must hold of every manifest by itself.
    fn check(&self) -> Result<(), ArtefactError> {
        for section in &self.sections {
            let known = SECTIONS.iter().find(|(name, _)| *name == section.name);
            let (name, newest) =
                *known.ok_or_else(|| ArtefactError::UnknownSection(plain(&section.name)))?;
            if section.version > newest {
                return Err(ArtefactError::Newer {
                    what: format!("section `{name}`"),
                    found: section.version,
                    newest,
                });
            }
            if section.version == 0 {
                return Err(wrong(&format!("section `{name}` has no format 0")));
            }
        }
        let missing = |(name, _): &&(&str, u32)| !self.sections.iter().any(|s| s.name == *name);
        if let Some((name, _)) = SECTIONS[..NEEDED].iter().find(missing) {
            return Err(wrong(&format!("section `{name}` is missing")));
        }
        if let Some(text) = self.texts().find(|t| !is_plain(t)) {
            return Err(wrong(&format!(
                "`{}` is too long or has characters that no text has",
                plain(text)
            )));
        }
        self.check_values()
    }

    /// What must hold of its values.
    fn check_values(&self) -> Result<(), ArtefactError> {
        if self.model.files.is_empty() || self.devices.is_empty() {
            return Err(wrong("it has no device or no file of the model"));
        }
        let folder = |name: &&String| {
            name.is_empty()
                || name.contains(['/', '\\', ':'])
                || matches!(name.as_str(), "." | "..")
        };
        if let Some(name) = self.model.files.iter().find(folder) {
            return Err(wrong(&format!(
                "`{}` is no name of a file without folders",
                plain(name)
            )));
        }
        if self.options.caches.types().is_none() {
            return Err(wrong("a cache has a type that tpc does not know"));
        }
        let windows = match self.model.window {
            Some(WindowRecord::Sliding(n) | WindowRecord::Chunks(n)) => n > 0,
            None => true,
        };
        let options = &self.options;
        let sized = [
            (options.caches.context, MAX_CELLS),
            (options.ubatch, MAX_CELLS),
            (options.parallel, MAX_SEQUENCES),
        ];
        if !windows || sized.iter().any(|(n, most)| !(1..=*most).contains(n)) {
            return Err(wrong(
                "a window, a context, a batch or a number of sequences is 0, or beyond what can be",
            ));
        }
        Ok(())
    }

    /// All texts.
    fn texts(&self) -> impl Iterator<Item = &String> {
        let Manifest {
            producer,
            target,
            devices,
            model,
            options,
            programs,
            ..
        } = self;
        let stored = target.stored.iter().map(|s| &s.name);
        [
            producer,
            &target.executor,
            &model.name,
            &model.architecture,
            &options.split_mode,
            &options.drafting,
        ]
        .into_iter()
        .chain(stored)
        .chain(&target.host)
        .chain(devices)
        .chain(&model.files)
        .chain(&options.words)
        .chain(programs)
    }
}

/// Whether a text can be shown.
fn is_plain(text: &str) -> bool {
    text.len() <= MAX_TEXT && !text.chars().any(char::is_control)
}

/// A text that can be shown: without what steers a terminal, and not too long.
fn plain(text: &str) -> String {
    let visible = |c: char| if tpc_diag::steers(c) { '\u{fffd}' } else { c };
    text.chars().take(200).map(visible).collect()
}

fn wrong(what: &str) -> ArtefactError {
    ArtefactError::Manifest(what.to_owned())
}
