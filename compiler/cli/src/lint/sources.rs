//! The sources that made a captured graph (`--source`).

use std::path::{Path, PathBuf};

use super::Args;
use crate::input;
use crate::output::Failure;
use crate::source::read_records;
use tpc_diag::{Diagnostic, codes, message};
use tpc_ggml::llama_cpp::{SourceFile, Sources};
use tpc_gguf::GgufFile;
use tpc_lint::{Finding, Origin};

/// The longest source file that is read, in bytes.
const MAX_BYTES: u64 = 8 << 20;
/// The most source files that are read.
const MAX_FILES: usize = 4000;

/// The sources; empty without `--source`.
#[derive(Default)]
pub(super) struct SourceTree {
    sources: Option<Sources>,
    /// The architecture of the captures.
    architecture: Option<String>,
}

/// Reads the C++ files in `src` of the folder, or of the folder itself if it has no `src`.
pub(super) fn read(args: &Args) -> Result<SourceTree, Failure> {
    let Some(folder) = &args.source else {
        return Ok(SourceTree::default());
    };
    let src = folder.join("src");
    let top = if src.is_dir() { &src } else { folder };
    let mut paths = Vec::new();
    list(top, 4, &mut paths).map_err(|e| Failure::file(top, &e))?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths.iter().take(MAX_FILES) {
        let bytes = input::read_file(path, MAX_BYTES)?;
        let name = path.strip_prefix(folder).unwrap_or(path);
        let name = name.to_string_lossy().replace('\\', "/");
        files.push(SourceFile::parse(&name, &String::from_utf8_lossy(&bytes)));
    }
    if files.is_empty() {
        let message = message!("no C++ file in {}", top.display().to_string());
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--source", message);
        return Err(Failure::usage(d.help(
            "give the folder of llama.cpp's sources, which contains src/models",
        )));
    }
    let of_command = || args.rpc_command.as_deref().and_then(architecture);
    Ok(SourceTree {
        sources: Some(Sources::new(files)),
        architecture: args.architecture.clone().or_else(of_command),
    })
}

/// Returns the architecture of the model in a command, whose file of the sources makes the graph's ops.
fn architecture(command: &str) -> Option<String> {
    let mut words = command.split_whitespace();
    words.find(|w| ["-m", "--model"].contains(w))?;
    let path = words.next()?.trim_matches(['"', '\'']);
    let file = GgufFile::open(Path::new(path)).ok()?;
    let name = file.header().metadata().get_str("general.architecture");
    name.ok().flatten().map(str::to_owned)
}

/// Lists the C++ files of a folder, down to `depth` folders.
fn list(folder: &Path, depth: usize, out: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let ending = path.extension().and_then(|e| e.to_str());
        if kind.is_dir() && depth > 0 {
            list(&path, depth - 1, out)?;
        } else if kind.is_file() && matches!(ending, Some("cpp" | "cc" | "cxx")) {
            out.push(path);
        }
    }
    Ok(())
}

impl SourceTree {
    /// Sets the line of the sources that makes the op of each finding.
    pub(super) fn locate(&self, capture: &Path, findings: &mut [Finding]) {
        let Some(sources) = &self.sources else { return };
        // An unreadable capture is already a finding.
        let Ok(records) = read_records(capture) else {
            return;
        };
        let places = sources.locate(&records, self.architecture.as_deref());
        for f in findings {
            let line = f.diagnostic.line.map(|l| l.get() as usize);
            let name = f.diagnostic.entity.to_string();
            let by_line = |line: usize| records.iter().position(|t| t.line == line);
            let by_name = || {
                let mut named = (0..records.len()).filter(|&i| records[i].name == name);
                // A name of several tensors does not identify an op.
                named.next().filter(|_| named.next().is_none())
            };
            let found = line.map_or_else(by_name, by_line);
            let place = found.and_then(|i| places[i].clone());
            f.origin = place.map(|(file, line)| Origin { file, line });
        }
    }
}
