//! What is planned: a model file, or a captured graph.

use std::path::PathBuf;

use clap::Args;

use super::output::Failure;
use crate::capture;
use crate::diag::Diagnostic;
use crate::gguf::GgufFile;
use crate::pipeline::{Compiled, compile, compile_capture};
use crate::placement::Placement;

/// A model or a capture.
#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// A GGUF file, or any shard of one; a header without data suffices.
    #[arg(required_unless_present = "graph", conflicts_with = "graph")]
    model: Option<PathBuf>,
    /// A captured ggml graph (JSON lines), instead of a model.
    #[arg(long, value_name = "CAPTURE.jsonl")]
    graph: Option<PathBuf>,
}

impl SourceArgs {
    fn file(&self) -> PathBuf {
        self.model
            .clone()
            .or_else(|| self.graph.clone())
            .unwrap_or_default()
    }

    /// The file's path, for reports.
    pub(super) fn path(&self) -> String {
        self.file().display().to_string()
    }

    /// The verified plan, and what is worth knowing of the capture.
    pub(super) fn compile(
        &self,
        placement: &Placement,
    ) -> Result<(Compiled, Vec<Diagnostic>), Failure> {
        let Some(path) = &self.graph else {
            let file = GgufFile::open(self.file()).map_err(|e| Failure::of(vec![e.into()]))?;
            return compile(&file, placement)
                .map(|c| (c, Vec::new()))
                .map_err(Failure::of);
        };
        let bytes = std::fs::read(path).map_err(|e| Failure::file(path, &e))?;
        let text = String::from_utf8_lossy(&bytes);
        let name = path
            .file_stem()
            .map(|s| s.to_string_lossy().into_owned())
            .unwrap_or_default();
        let captured = capture::read(&text, &name).map_err(|e| {
            let d = Diagnostic::from(e);
            Failure::usage(Diagnostic {
                entity: self.path(),
                ..d
            })
        })?;
        let compiled = compile_capture(&captured, placement).map_err(Failure::of)?;
        Ok((compiled, captured.notes))
    }
}
