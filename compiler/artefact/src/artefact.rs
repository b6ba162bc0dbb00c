use tpc_ir::Symbol;
use tpc_ir::program::{Program, StorageFormat, text, verify};

use crate::archive::{self, Entry};
use crate::error::ArtefactError;
use crate::kernels::{self, KernelModule};
use crate::manifest::Manifest;

const MANIFEST: &str = "manifest.ron";
/// The name of the program's entry.
pub const MAIN: &str = "programs/main.program";

/// An artefact: a manifest, a verified program, and kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct Artefact {
    manifest: Manifest,
    program: Program,
    kernels: Vec<KernelModule>,
}

/// An entry of an artefact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name.
    pub name: String,
    /// The offset of the data, in bytes.
    pub offset: usize,
    /// The size of the data, in bytes.
    pub bytes: usize,
}

/// Returns the entries of a file, in order.
///
/// # Errors
/// Returns the errors of [`read_archive`](crate::read_archive).
pub fn sections(bytes: &[u8]) -> Result<Vec<Section>, ArtefactError> {
    let start = bytes.as_ptr().addr();
    let section = |e: Entry<'_>| Section {
        name: e.name.to_owned(),
        offset: e.data.as_ptr().addr() - start,
        bytes: e.data.len(),
    };
    Ok(archive::read(bytes)?.into_iter().map(section).collect())
}

impl Artefact {
    /// Creates an artefact without kernels.
    ///
    /// # Errors
    /// Returns an error if the verifier rejects the program, or if the manifest contradicts the program.
    pub fn new(manifest: Manifest, program: Program) -> Result<Artefact, ArtefactError> {
        let refused = |what: String| ArtefactError::Program {
            entry: MAIN.to_owned(),
            what,
        };
        verify(&program).map_err(|errors| {
            let first = errors.first();
            let first = first.map_or_else(String::new, |e| format!("{}: {}: {e}", e.code, e.part));
            refused(first)
        })?;
        agree(&manifest, &program)?;
        Ok(Artefact {
            manifest,
            program,
            kernels: Vec::new(),
        })
    }

    /// Adds kernels.
    ///
    /// # Errors
    /// Returns an error if `kernels` is empty but the manifest lists kernels, or the reverse.
    pub fn with_kernels(self, kernels: Vec<KernelModule>) -> Result<Artefact, ArtefactError> {
        match self.manifest.has_kernels() == kernels.is_empty() {
            true => Err(ArtefactError::Manifest(
                "sections: the list of sections does not match the kernels".to_owned(),
            )),
            false => Ok(Artefact { kernels, ..self }),
        }
    }

    /// Returns the kernels in order.
    pub fn kernels(&self) -> &[KernelModule] {
        &self.kernels
    }

    /// Returns the manifest.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the verified program.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the manifest and the program.
    pub fn into_parts(self) -> (Manifest, Program) {
        (self.manifest, self.program)
    }

    /// Encodes the artefact. Equal artefacts give the same bytes.
    ///
    /// # Errors
    /// Returns an error if the manifest has no readable text form, or if the entries exceed half of
    /// [`archive::MAX_BYTES`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ArtefactError> {
        let manifest = self.manifest.to_text()?;
        let program = self.program.to_string();
        let kernels = kernels::entries(&self.kernels)?;
        let mut entries = Vec::new();
        for (name, text) in [(MANIFEST, &manifest), (MAIN, &program)] {
            let data = text.as_bytes();
            entries.push(Entry { name, data });
        }
        entries.extend(kernels.iter().map(|(name, data)| Entry { name, data }));
        let all: u64 = entries.iter().map(|e| e.data.len() as u64).sum();
        if all > archive::MAX_BYTES / 2 {
            let what = format!("programs and kernels take {all} bytes, above the limit");
            return Err(ArtefactError::Archive(what));
        }
        let mut out = Vec::new();
        archive::write(&mut out, &entries).map_err(|e| ArtefactError::Archive(e.to_string()))?;
        Ok(out)
    }

    /// Returns the manifest of a file without reading the other entries.
    ///
    /// # Errors
    /// Returns the errors of the container and the manifest.
    pub fn read_manifest(bytes: &[u8]) -> Result<Manifest, ArtefactError> {
        Ok(opened(bytes)?.manifest)
    }

    /// Reads a file and verifies its program. `formats` are the storage formats other than the GGUF file's.
    ///
    /// # Errors
    /// Returns an [`ArtefactError`] for any defect of the file.
    pub fn read(bytes: &[u8], formats: &[StorageFormat]) -> Result<Artefact, ArtefactError> {
        let Opened {
            manifest,
            program,
            kernels,
        } = opened(bytes)?;
        let refused = |what: String| ArtefactError::Program {
            entry: MAIN.to_owned(),
            what,
        };
        let source = std::str::from_utf8(program)
            .map_err(|e| refused(format!("byte {} is not UTF-8 text", e.valid_up_to())))?;
        let parsed = text::parse(source, formats).map_err(|errors| {
            refused(errors.first().map_or_else(String::new, |e| {
                let before = source.get(..e.span.range().start).unwrap_or(source);
                let line = before.matches('\n').count() + 1;
                format!("line {line}: {}: {e}", e.code())
            }))
        })?;
        let program = parsed.program().map_err(|e| refused(e.to_string()))?;
        let kernels = match kernels.is_empty() {
            true => Vec::new(),
            false => kernels::read(&kernels)?,
        };
        Artefact::new(manifest, program)?.with_kernels(kernels)
    }
}

/// The parts of a file. Only the manifest is parsed.
struct Opened<'a> {
    manifest: Manifest,
    program: &'a [u8],
    kernels: Vec<Entry<'a>>,
}

fn opened(bytes: &[u8]) -> Result<Opened<'_>, ArtefactError> {
    let entries = archive::read(bytes).map_err(|e| match archive::first_name(bytes) {
        Some(first) if first != MANIFEST => ArtefactError::Foreign { first },
        _ => e,
    })?;
    let Some((first, rest)) = entries.split_first().filter(|(e, _)| e.name == MANIFEST) else {
        let first = archive::first_name(bytes).unwrap_or_else(|| "missing".to_owned());
        return Err(ArtefactError::Foreign { first });
    };
    let manifest = Manifest::parse(first.data)?;
    match rest {
        [program, kernels @ ..]
            if program.name == MAIN
                && manifest.programs == [MAIN]
                && manifest.has_kernels() != kernels.is_empty() =>
        {
            Ok(Opened {
                manifest,
                program: program.data,
                kernels: kernels.to_vec(),
            })
        }
        _ => {
            let names: Vec<&str> = rest.iter().map(|e| e.name).take(8).collect();
            Err(ArtefactError::Manifest(format!(
                "programs: format 1 has one program, `{MAIN}`, and no other entry except listed kernels; found {}",
                names.join(", ")
            )))
        }
    }
}

fn agree(manifest: &Manifest, program: &Program) -> Result<(), ArtefactError> {
    let differs = |field: &str| {
        let what = format!("{field}: differs from the program");
        Err(ArtefactError::Manifest(what))
    };
    let devices = program.graph.devices.iter().map(|d| &d.name);
    if !devices.eq(&manifest.devices) {
        return differs("devices");
    }
    let most = program.shapes.last().map(|s| s.most).unwrap_or_default();
    let options = &manifest.options;
    for (field, said, symbol) in [
        (
            "options.caches.context",
            options.caches.context,
            Symbol::NCtx,
        ),
        ("options.ubatch", options.ubatch, Symbol::NTokens),
        ("options.parallel", options.parallel, Symbol::NSeqMax),
    ] {
        if most.get(symbol) != said {
            return differs(field);
        }
    }
    Ok(())
}
