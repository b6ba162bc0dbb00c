//! What the tests do with models that run.

use std::path::Path;

use tpc_core::golden::Golden;
use tpc_core::pipeline::{Compiled, compile};
use tpc_core::placement::{Placement, parse_devices};
use tpc_gguf::GgufFile;
use tpc_ir::program::BatchShape;
use tpc_ir::{Bindings, DType, Symbol};
use tpc_runtime::{Batch, ExecError, Executor, Session, SessionConfig, WeightData, WeightSource};

/// The weights of a model file.
pub(crate) struct FileWeights<'a>(pub(crate) &'a GgufFile);

impl WeightSource for FileWeights<'_> {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let info = self.0.header().tensor(tensor);
        let info = info.expect("the graph names tensors of the file");
        let bytes = self.0.tensor_data(info).expect("the file has data");
        Ok(WeightData {
            dtype: info.dtype,
            ne: info.ne,
            bytes,
        })
    }
}

/// A placement on `devices` devices, with caches of a type.
pub(crate) fn placement(devices: usize, cache: DType) -> Placement {
    Placement {
        cache_type_k: cache,
        cache_type_v: cache,
        ..Placement::on(parse_devices(&devices.to_string()).expect("a count"))
    }
}

/// A model file with its plan.
pub(crate) fn plan(path: &Path, placement: &Placement) -> (GgufFile, Compiled) {
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let compiled = compile(&file, placement)
        .unwrap_or_else(|d| panic!("{}: {} {}", path.display(), d[0].code, d[0]));
    (file, compiled)
}

/// A session of one sequence that holds `n` tokens.
pub(crate) fn config(compiled: &Compiled, n: usize) -> SessionConfig {
    let config = SessionConfig::new(n);
    match compiled.model.summary.window {
        Some(window) => config.with_window(window, n),
        None => config,
    }
}

/// The shape of batches of up to `tokens` tokens in such a session.
pub(crate) fn shape(config: &SessionConfig, tokens: usize) -> BatchShape {
    let n = |n: usize| n as u64;
    BatchShape {
        most: Bindings::default()
            .with(Symbol::NTokens, n(tokens))
            .with(Symbol::NKv, n(config.n_ctx))
            .with(Symbol::NKvSwa, n(config.n_ctx_swa))
            .with(Symbol::NCtx, n(config.n_ctx))
            .with(Symbol::NCtxSwa, n(config.n_ctx_swa))
            .with(Symbol::NSeqs, n(config.n_seq_max.min(tokens)))
            .with(Symbol::NSeqTokens, n(tokens))
            .with(Symbol::NSeqMax, n(config.n_seq_max))
            .with(Symbol::NOutputs, n(tokens)),
    }
}

/// The logits of `tokens`, fed as one batch from position 0.
pub(crate) fn whole<E: Executor>(session: &mut Session<E>, tokens: &[u32]) -> Vec<f64> {
    let out = session.decode(&Batch::sequence(tokens, 0, 0));
    let out = out.unwrap_or_else(|e| panic!("{e}"));
    out.reals().expect("logits are real").to_vec()
}

/// The logits of `tokens`, one batch each.
pub(crate) fn one_by_one<E: Executor>(session: &mut Session<E>, tokens: &[u32]) -> Vec<f64> {
    let each = tokens.iter().enumerate().flat_map(|(i, t)| {
        let out = session.decode(&Batch::sequence(&[*t], i as u32, 0));
        let out = out.unwrap_or_else(|e| panic!("{e}"));
        out.reals().expect("logits are real").to_vec()
    });
    each.collect()
}

/// The golden logits that belong to a model.
pub(crate) fn golden(path: &Path) -> Golden {
    let path = path.with_extension("f32.logits");
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Golden::parse(&path.display().to_string(), &bytes).unwrap_or_else(|e| panic!("{e}"))
}

/// The name of a model file.
pub(crate) fn name(path: &Path) -> String {
    let stem = path.file_stem().expect("a file name");
    stem.to_string_lossy().into_owned()
}
