//! The manifest of an artefact. Its types belong to the file format only. Existing fields never change; additions
//! raise [`FORMAT`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tpc_ir::{DType, Window};

use crate::digest::Digest;
use crate::error::ArtefactError;
use crate::kernels;

/// The newest supported format. Format 2 added [`Manifest::bits`].
pub const FORMAT: u32 = 2;
/// The maximum size of a manifest, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of cache cells, and of tokens per batch.
const MAX_CELLS: u64 = 1 << 32;
const MAX_SEQUENCES: u64 = 1 << 16;
/// The maximum length of a text, in bytes.
const MAX_TEXT: usize = 4096;

/// The description of an artefact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format of the file and of this manifest.
    pub format: u32,
    /// The program that wrote the file, with its version; for information only.
    pub producer: String,
    /// The other sections with their format versions.
    pub sections: Vec<SectionVersion>,
    /// The requirements for running the artefact.
    pub target: TargetRecord,
    /// The device names. Names are assigned to real devices at run time.
    pub devices: Vec<String>,
    /// The model.
    pub model: ModelRecord,
    /// The compile options.
    pub options: OptionRecord,
    /// The hash of the topology file, if one was used.
    pub topology: Option<Digest>,
    /// The names of the entries with programs.
    pub programs: Vec<String>,
    /// The conditions under which the results keep their bits, in one line; `None` in format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<String>,
}

/// A section and the version of its format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SectionVersion {
    /// The name, which is also the folder of the section's entries.
    pub name: String,
    /// The format version.
    pub version: u32,
}

/// The requirements for running an artefact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetRecord {
    /// The executor: `cpu` or `cuda`.
    pub executor: String,
    /// The storage formats of the weights.
    pub stored: Vec<StoredVersion>,
    /// The required host features in addition to the baseline.
    pub host: Vec<String>,
}

/// A storage format of weights. The version changes with the byte layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredVersion {
    /// The name in program texts.
    pub name: String,
    /// The version.
    pub version: u32,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelRecord {
    /// `general.name`, or the architecture.
    pub name: String,
    /// The architecture.
    pub architecture: String,
    /// The number of parameters.
    pub params: u64,
    /// The size of the tensors, in bytes.
    pub bytes: u64,
    /// The hash of the headers and tensor tables.
    pub hash: Digest,
    /// The file names, without folders.
    pub files: Vec<String>,
    /// The attention window of layers with a window.
    pub window: Option<WindowRecord>,
}

/// An attention window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WindowRecord {
    /// A sliding window of the last `n` tokens.
    Sliding(u64),
    /// Chunks of `n` tokens.
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

/// The options that determine a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionRecord {
    /// The requested or chosen split mode.
    pub split_mode: String,
    /// The size and types of the caches.
    pub caches: CacheOptions,
    /// The maximum number of tokens per batch.
    pub ubatch: u64,
    /// The number of sequences.
    pub parallel: u64,
    /// The speculative decoding method: `none` or `draft-mtp`.
    pub drafting: String,
    /// The command-line options that reproduce the artefact.
    pub words: Vec<String>,
}

/// The options of the caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheOptions {
    /// The number of cells per cache.
    pub context: u64,
    /// The element type of the K cache.
    pub type_k: String,
    /// The element type of the V cache.
    pub type_v: String,
}

impl CacheOptions {
    /// Returns the element types of the K and V caches.
    pub fn types(&self) -> Option<[DType; 2]> {
        Some([
            DType::from_name(&self.type_k)?,
            DType::from_name(&self.type_v)?,
        ])
    }
}

/// The first field of every format.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// The known sections and their newest versions.
const SECTIONS: [(&str, u32); 2] = [("programs", 1), (kernels::SECTION, 2)];
/// The number of mandatory sections.
const NEEDED: usize = 1;

impl Manifest {
    /// Returns the sections that this tpc writes, with or without kernels.
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

    pub(crate) fn has_kernels(&self) -> bool {
        self.sections.iter().any(|s| s.name == kernels::SECTION)
    }

    /// Returns the text of the manifest.
    ///
    /// # Errors
    /// Returns [`ArtefactError::Manifest`] if the reader would reject the text.
    pub fn to_text(&self) -> Result<String, ArtefactError> {
        let pretty = ron::ser::PrettyConfig::new()
            .new_line("\n")
            .depth_limit(8)
            .struct_names(false);
        let text = ron::ser::to_string_pretty(self, pretty);
        let text = text.map_err(|e| ArtefactError::Manifest(e.to_string()))?;
        match Manifest::parse(text.as_bytes())? == *self {
            true => Ok(text),
            false => Err(wrong("the text changes when read back")),
        }
    }

    /// Parses a manifest.
    ///
    /// # Errors
    /// Returns [`ArtefactError::Newer`] or [`ArtefactError::UnknownSection`] for a later version, and
    /// [`ArtefactError::Manifest`] for an invalid manifest.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, ArtefactError> {
        if bytes.len() > MAX_BYTES {
            return Err(wrong(&format!("longer than {MAX_BYTES} bytes")));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|e| wrong(&format!("byte {} is not UTF-8 text", e.valid_up_to())))?;
        let unreadable = |e: ron::error::SpannedError| wrong(&plain(&e.to_string()));
        // A later format may have unknown fields, so the number is checked first.
        let head: Head = ron::from_str(text).map_err(unreadable)?;
        match head.format {
            0 => return Err(wrong("invalid format 0")),
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
                return Err(wrong(&format!("invalid format 0 of section `{name}`")));
            }
        }
        let missing = |(name, _): &&(&str, u32)| !self.sections.iter().any(|s| s.name == *name);
        if let Some((name, _)) = SECTIONS[..NEEDED].iter().find(missing) {
            return Err(wrong(&format!("section `{name}` is missing")));
        }
        if let Some(text) = self.texts().find(|t| !is_plain(t)) {
            return Err(wrong(&format!(
                "`{}` is too long or has control characters",
                plain(text)
            )));
        }
        self.check_values()
    }

    fn check_values(&self) -> Result<(), ArtefactError> {
        if self.model.files.is_empty() || self.devices.is_empty() {
            return Err(wrong("devices or model files are missing"));
        }
        let folder = |name: &&String| {
            name.is_empty()
                || name.contains(['/', '\\', ':'])
                || matches!(name.as_str(), "." | "..")
        };
        if let Some(name) = self.model.files.iter().find(folder) {
            return Err(wrong(&format!(
                "`{}` is not a file name without folders",
                plain(name)
            )));
        }
        if self.options.caches.types().is_none() {
            return Err(wrong("unknown type of a cache"));
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
                "the window, context, batch or number of sequences is 0 or too large",
            ));
        }
        Ok(())
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        let Manifest {
            producer,
            target,
            devices,
            model,
            options,
            programs,
            bits,
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
        .chain(bits)
    }
}

fn is_plain(text: &str) -> bool {
    text.len() <= MAX_TEXT && !text.chars().any(char::is_control)
}

fn plain(text: &str) -> String {
    let visible = |c: char| if tpc_diag::steers(c) { '\u{fffd}' } else { c };
    text.chars().take(200).map(visible).collect()
}

fn wrong(what: &str) -> ArtefactError {
    ArtefactError::Manifest(what.to_owned())
}
