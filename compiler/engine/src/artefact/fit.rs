//! Checks that an artefact fits this version of tpc, the model and the devices.

use std::path::Path;

use tpc_artefact::{self as artefacts, Artefact, Manifest, StoredVersion, codes};
use tpc_core::placement::DeviceKind;
use tpc_cpu::CpuTarget;
use tpc_cuda::CudaTarget;
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::quote;
use tpc_gguf::GgufFile;
use tpc_ir::program::{StorageFormat, Target};
use tpc_ir::{Code, Op};
use tpc_passes::layout::Layouts;

/// Name of the CPU executor in artefacts.
pub const CPU: &str = "cpu";
/// Name of the CUDA executor in artefacts.
pub const CUDA: &str = "cuda";
/// Version of the weight storage formats.
const STORED_VERSION: u32 = 1;

/// Weight formats of the executors, in addition to the file's formats.
pub const STORAGE_FORMATS: &[StorageFormat] = &[tpc_cpu::ROWS16, tpc_cuda::planes::Planes::FORMAT];

/// Lists the supported storage formats with versions.
pub fn stored_versions() -> Vec<StoredVersion> {
    let all = [&[StorageFormat::FILE], STORAGE_FORMATS].concat();
    let each = all.into_iter().map(|f| StoredVersion {
        name: f.name().to_owned(),
        version: STORED_VERSION,
    });
    each.collect()
}

/// A difference between an artefact and this tpc, model or machine.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The manifest field or program part that differs.
    pub field: &'static str,
    /// The artefact's value.
    pub found: String,
    /// The required value.
    pub wanted: String,
    /// The diagnostic code.
    pub code: &'static Code,
}

impl Mismatch {
    /// Returns the diagnostic. Its help has the command that compiles the artefact again, and for missing memory
    /// suggests a smaller context or batch.
    pub fn diagnostic(&self, name: String, command: String) -> Diagnostic {
        let message = format!(
            "{}: found {}, wanted {}",
            self.field, self.found, self.wanted
        );
        let d = Diagnostic::new(self.code, name, message);
        match self.field {
            "memory" => d.help(format!(
                "compile it with less context (-c) or smaller batches (-ub): {command}"
            )),
            _ => d.help(command),
        }
    }

    fn rebuild(field: &'static str, found: String, wanted: String) -> Mismatch {
        Mismatch {
            field,
            found,
            wanted,
            code: &codes::REBUILD,
        }
    }
}

/// Lists the differences from this tpc: executors, storage formats, host features, weight layouts.
pub fn mismatches(artefact: &Artefact) -> Vec<Mismatch> {
    let target = &artefact.manifest().target;
    let mut out = Vec::new();
    if ![CPU, CUDA].contains(&target.executor.as_str()) {
        let found = target.executor.clone();
        let wanted = format!("{CPU} or {CUDA}");
        out.push(Mismatch::rebuild("target.executor", found, wanted));
    }
    let here = stored_versions();
    let differs = |s: &&StoredVersion| !here.contains(s);
    for s in target.stored.iter().filter(differs) {
        let versions = |s: &StoredVersion| format!("{} {}", s.name, s.version);
        let known: Vec<String> = here.iter().map(versions).collect();
        let found = versions(s);
        out.push(Mismatch::rebuild("target.stored", found, known.join(", ")));
    }
    if !target.host.is_empty() {
        let found = target.host.join(", ");
        out.push(Mismatch::rebuild(
            "target.host",
            found,
            "no such feature".to_owned(),
        ));
    }
    out.extend(storage_mismatch(artefact));
    out
}

/// Returns a mismatch for the first weight that this tpc stores in another format or size.
fn storage_mismatch(artefact: &Artefact) -> Option<Mismatch> {
    let program = artefact.program();
    let graph = &program.graph;
    let target: &dyn Target = match artefact.manifest().target.executor.as_str() {
        CUDA => &CudaTarget,
        _ => &CpuTarget,
    };
    let layouts = Layouts::of(graph, target);
    let Some(layouts) = layouts else {
        let wanted = "sizes that do not overflow".to_owned();
        return Some(Mismatch::rebuild(
            "programs",
            "weights too large".to_owned(),
            wanted,
        ));
    };
    for (value, _) in graph.values() {
        let (Op::Weight(weight), Some(home)) = (graph.def_op(value), program.home(value)) else {
            continue;
        };
        let Some(wanted) = layouts.weight_storage.get(value.index()).copied().flatten() else {
            continue;
        };
        let buffer = program.buffer(home.buffer);
        let bytes = buffer.extent(0).bytes;
        if buffer.format != wanted.format || bytes < wanted.bytes {
            let shown = |format: StorageFormat, bytes: u64| {
                format!("{} in {} and {bytes} bytes", weight.tensor, format.name())
            };
            return Some(Mismatch::rebuild(
                "programs",
                shown(buffer.format, bytes),
                shown(wanted.format, wanted.bytes),
            ));
        }
    }
    None
}

/// The devices to run an artefact on.
#[derive(Clone, Debug, Default)]
pub struct TargetDevices {
    /// The value of `--devices`; empty for a topology file.
    pub text: String,
    /// The kind of each device.
    pub kinds: Vec<DeviceKind>,
    /// The usable memory of each device, if known.
    pub memory: Vec<Option<u64>>,
}

/// Returns a mismatch in the number or kind of devices. Without `target`, the artefact's own devices apply.
pub fn on_devices(artefact: &Artefact, target: Option<&TargetDevices>) -> Option<Mismatch> {
    let manifest = artefact.manifest();
    let (compiled, kinds) = (manifest.devices.len(), &target?.kinds);
    let differs = |found: String, wanted: String| {
        Some(Mismatch {
            field: "devices",
            found,
            wanted,
            code: &codes::DEVICES,
        })
    };
    if kinds.len() != compiled {
        return differs(compiled.to_string(), kinds.len().to_string());
    }
    let on_cards = manifest.target.executor == CUDA;
    let other = |k: &&DeviceKind| match k {
        DeviceKind::Cpu | DeviceKind::Numa(_) => on_cards,
        DeviceKind::Cuda(_) => !on_cards,
        DeviceKind::Generic => false,
    };
    kinds.iter().find(other)?;
    let name = |cards: bool| if cards { "cards" } else { "processors" };
    differs(name(on_cards).to_owned(), name(!on_cards).to_owned())
}

/// Returns a mismatch for an artefact of another model.
pub fn of_model(artefact: &Artefact, file: &GgufFile) -> Option<Mismatch> {
    let found = artefact.manifest().model.hash;
    let here = artefacts::of_model(file);
    (here != Some(found)).then(|| Mismatch {
        field: "model.hash",
        found: found.to_string(),
        wanted: here.map_or_else(|| "none".to_owned(), |d| d.to_string()),
        code: &codes::OTHER_MODEL,
    })
}

/// Returns the artefact's options. For other devices, replaces `--devices` and drops options that depend on devices.
fn options_for(manifest: &Manifest, target: Option<&TargetDevices>) -> Vec<String> {
    let words = &manifest.options.words;
    let Some(target) = target else {
        return words.clone();
    };
    let mut out = match target.text.as_str() {
        "" => Vec::new(),
        text => vec!["--devices".to_owned(), text.to_owned()],
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--devices" | "--tensor-split" | "-ts" => drop(words.next()),
            "--split-mode" | "-sm" if target.kinds.len() == 1 => drop(words.next()),
            _ => out.push(word.clone()),
        }
    }
    out
}

/// Returns the command that compiles an artefact again, for other devices or another topology if given. Options come
/// from a file, so they are quoted for the shell.
pub fn command(
    (path, manifest): (&Path, &Manifest),
    model: Option<&Path>,
    target: Option<&TargetDevices>,
    topology: Option<&Path>,
) -> String {
    let word = |p: &Path| quote(&p.display().to_string());
    let beside = manifest.model.files.first().map(|f| path.with_file_name(f));
    let model = model.map(Path::to_owned).or(beside).unwrap_or_default();
    let mut out = format!("tpc compile {} -o {}", word(&model), word(path));
    for option in options_for(manifest, target) {
        out.push(' ');
        out.push_str(&quote(&option));
    }
    let cards = match target {
        Some(target) => target
            .kinds
            .iter()
            .any(|k| matches!(k, DeviceKind::Cuda(_))),
        None => manifest.target.executor == CUDA,
    };
    if cards {
        out.push_str(" --target cuda");
    }
    match topology {
        Some(path) => {
            out.push_str(" --topology ");
            out.push_str(&word(path));
        }
        None if manifest.topology.is_some() => out.push_str(" --topology FILE.ron"),
        None => {}
    }
    out
}
