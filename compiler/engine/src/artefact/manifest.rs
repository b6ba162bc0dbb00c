use tpc_artefact::{
    CacheOptions, Digest, FORMAT, MAIN, Manifest, ModelRecord, OptionRecord, TargetRecord,
    WindowRecord, of_model,
};
use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::Placement;
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_ir::{Program, Symbol};
use tpc_models::Drafting;

use super::bits::promise;
use super::fit::stored_versions;
use crate::error::Error;

/// The content of an artefact.
#[derive(Clone, Copy)]
pub struct Content<'a> {
    /// [`CPU`](super::CPU) or [`CUDA`](super::CUDA).
    pub executor: &'static str,
    /// The program for this executor.
    pub program: &'a Program,
    /// True if the artefact has compiled kernels.
    pub kernels: bool,
}

/// Makes the manifest, which does not depend on time or machine. `topology` is the text of the topology file.
///
/// # Errors
/// Returns TPC0405 if the model's header is not on this machine.
pub fn manifest(
    file: &GgufFile,
    compiled: &CompiledModel,
    placement: &Placement,
    content: Content<'_>,
    topology: Option<&[u8]>,
) -> Result<Manifest, Error> {
    let program = content.program;
    let summary = &compiled.model.summary;
    let missing = || {
        let d = Diagnostic::new(
            &codes::NO_TENSOR_DATA,
            "model",
            "the model's header is not on this machine",
        );
        Error::usage(d.help("download the file and give its path"))
    };
    let names = file.shards().iter().filter_map(|s| s.path().file_name());
    let mut words = placement.machine_words();
    words.extend(placement.option_words(compiled.mode, compiled.main_device()));
    if placement.ctx_size.is_none() {
        words.extend(["-c".to_owned(), compiled.caches.n_ctx.to_string()]);
    }
    Ok(Manifest {
        format: FORMAT,
        producer: concat!("tpc ", env!("CARGO_PKG_VERSION")).to_owned(),
        sections: Manifest::section_versions(content.kernels),
        target: TargetRecord {
            executor: content.executor.to_owned(),
            stored: stored_versions(),
            host: Vec::new(),
        },
        devices: program
            .graph
            .devices
            .iter()
            .map(|d| d.name.clone())
            .collect(),
        model: ModelRecord {
            name: summary.name.clone(),
            architecture: summary.arch.to_owned(),
            params: compiled.size.params,
            bytes: compiled.size.bytes,
            hash: of_model(file).ok_or_else(missing)?,
            files: names.map(|n| n.to_string_lossy().into_owned()).collect(),
            window: summary.window.map(WindowRecord::from),
        },
        options: OptionRecord {
            split_mode: compiled.mode.name().to_owned(),
            caches: CacheOptions {
                // Caches divided by cells have whole units.
                context: (program.shapes.last())
                    .map_or(compiled.caches.n_ctx, |s| s.most.get(Symbol::NCtx)),
                type_k: placement.cache_type_k.name().to_owned(),
                type_v: placement.cache_type_v.name().to_owned(),
            },
            // Batches are limited to the context, so the option may be larger.
            ubatch: (program.shapes.last())
                .map_or(placement.ubatch_size, |s| s.most.get(Symbol::NTokens)),
            parallel: placement.parallel,
            drafting: match placement.drafting {
                Drafting::None => "none",
                Drafting::Mtp => "draft-mtp",
            }
            .to_owned(),
            words,
        },
        topology: topology.map(Digest::of),
        programs: vec![MAIN.to_owned()],
        bits: Some(promise(content.executor, &program.graph)),
    })
}
