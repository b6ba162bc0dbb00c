//! The fit of an artefact to what is here: this tpc, the model, the devices.

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

/// The executor of programs for the processor.
pub const CPU: &str = "cpu";
/// The executor of programs for cards.
pub const CUDA: &str = "cuda";
/// The version of the forms in which the executor stores weights.
const STORED_VERSION: u32 = 1;

/// The storage formats of the executors, beside that of the file.
pub const STORAGE_FORMATS: &[StorageFormat] = &[tpc_cpu::ROWS16, tpc_cuda::planes::Planes::FORMAT];

/// The forms in which this tpc stores weights.
pub fn stored_versions() -> Vec<StoredVersion> {
    let all = [&[StorageFormat::FILE], STORAGE_FORMATS].concat();
    let each = all.into_iter().map(|f| StoredVersion {
        name: f.name().to_owned(),
        version: STORED_VERSION,
    });
    each.collect()
}

/// Something that an artefact was compiled for and that is not here.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The field of the manifest, or the part of the program.
    pub field: &'static str,
    /// What the artefact says.
    pub found: String,
    /// What is here.
    pub wanted: String,
    /// The code of the finding.
    pub code: &'static Code,
}

impl Mismatch {
    /// The finding, with the command that mends it. No other command has more memory than there is.
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

/// What of this tpc an artefact does not fit.
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
    out.extend(stored_otherwise(artefact));
    out
}

/// The first weight that this tpc stores otherwise than the program does.
fn stored_otherwise(artefact: &Artefact) -> Option<Mismatch> {
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

/// The devices that an artefact is to be bound to.
#[derive(Clone, Debug, Default)]
pub struct TargetDevices {
    /// The list as `--devices` gives it.
    pub text: String,
    /// The kind of each device.
    pub kinds: Vec<DeviceKind>,
    /// The memory of each that a plan may use, where it is known.
    pub memory: Vec<Option<u64>>,
}

/// Whether devices are as many as the artefact has, and of its kind; those that `--devices` names, if it is given.
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
        DeviceKind::Cpu => on_cards,
        DeviceKind::Cuda(_) => !on_cards,
        DeviceKind::Generic => false,
    };
    kinds.iter().find(other)?;
    let name = |cards: bool| if cards { "cards" } else { "processors" };
    differs(name(on_cards).to_owned(), name(!on_cards).to_owned())
}

/// Whether a model is not the one of which an artefact is.
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

/// The options of an artefact on other devices: without what is for those that it has.
fn words_on(manifest: &Manifest, target: Option<&TargetDevices>) -> Vec<String> {
    let words = &manifest.options.words;
    let Some(target) = target else {
        return words.clone();
    };
    // Those of a topology file need not be named.
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

/// The command that compiles an artefact again, for other devices and another topology where these are said. The options are
/// quote: they come from a file.
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
    for option in words_on(manifest, target) {
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
