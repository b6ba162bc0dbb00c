//! Small models with random weights, and their plans, programs and reference logits.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tpc_core::placement::{Placement, parse_devices};
use tpc_cuda::CudaTarget;
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_ir::program::Program;
use tpc_ir::program::verify::verify;
use tpc_passes::assemble;
use tpc_runtime::quant::quantise;
use tpc_runtime::{Batch, ExecError, Executor, Session, SessionConfig};
use tpc_synth::{Model, Spec};

use super::report::{CheckError, Finding, REPORT_BUG};
use crate::batch_shapes;
use crate::prepared;
use crate::weights::FileWeights;

type Result<T = Finding> = std::result::Result<T, CheckError>;

/// A kind of small model.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The specification for `tpc_synth`.
    spec: &'static str,
}

pub(super) const DENSE: Kind = Kind {
    name: "dense",
    spec: "llama-tiny",
};

pub(super) const EXPERTS: Kind = Kind {
    name: "experts",
    spec: "qwen3moe-tiny",
};

/// Cells of the caches.
pub(super) const CELLS: usize = 64;
/// The largest batches: one token, a draft, a prompt.
pub(super) const BATCHES: [usize; 3] = [1, 8, 32];
/// A model, and the logits of the reference executor.
pub(super) struct SmallModel {
    pub(super) file: GgufFile,
    pub(super) reference: Vec<f64>,
}

/// A file that is removed when dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes a model to a temporary file and opens it. The file is then removed; its bytes stay mapped.
fn open(kind: Kind) -> Result<GgufFile> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("tpc-doctor-{}-{number}.gguf", std::process::id());
    let path = Temporary(std::env::temp_dir().join(name));
    let encode = |dtype: DType, values: &[f32], out: &mut Vec<u8>| {
        quantise(dtype, values, out).map_err(|e| e.to_string())
    };
    let spec = Spec::parse(kind.spec).map_err(|d| CheckError::from(&d))?;
    let model = Model::new(spec, &encode).map_err(|d| CheckError::from(&d))?;
    let no_file = |e: std::io::Error| {
        let text = format!("{}: {e}", path.0.display());
        CheckError::new(text, "set TMPDIR to a writable folder")
    };
    let out = std::fs::File::create_new(&path.0).map_err(no_file)?;
    model.write(out).map_err(|d| CheckError::from(&d))?;
    GgufFile::open(&path.0).map_err(|e| CheckError::new(e.to_string(), REPORT_BUG))
}

/// Returns the numbers of tokens: of the first batch, and of single tokens after it.
pub(super) fn lengths(quick: bool) -> (usize, usize) {
    match quick {
        true => (8, 2),
        false => (32, 4),
    }
}

pub(super) fn tokens(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| (i * 37 + 11) % 300).collect()
}

/// A plan of a small model for a list of cards.
pub(super) struct Planned {
    pub(super) compiled: tpc_core::pipeline::CompiledModel,
    pub(super) config: SessionConfig,
}

pub(super) fn plan(file: &GgufFile, cards: &[u32]) -> Result<Planned> {
    let names: Vec<String> = cards.iter().map(|c| format!("cuda:{c}")).collect();
    let devices = parse_devices(&names.join(",")).map_err(|d| CheckError::from(&d))?;
    let placement = Placement {
        storage: &CudaTarget,
        ctx_size: Some(CELLS as u64),
        ..Placement::on(devices)
    };
    let compiled = prepared::plan(file, &placement)?;
    let window = compiled.model.summary.window;
    let config = batch_shapes::config([CELLS, CELLS], window, 1);
    let config = config.in_units(compiled.programs.cell_unit);
    Ok(Planned { compiled, config })
}

pub(super) fn program(planned: &Planned) -> Result<Arc<Program>> {
    let shapes = BATCHES.map(|n| planned.config.batch_shape(n, n));
    let bug = |e: String| CheckError::new(e, REPORT_BUG);
    let program = assemble(&planned.compiled.programs, &shapes, &CudaTarget);
    let program = program.map_err(|e| bug(e.to_string()))?;
    verify(&program).map_err(|errors| {
        let first = errors.first().map(ToString::to_string);
        bug(first.unwrap_or_default())
    })?;
    Ok(Arc::new(program))
}

/// Decodes one batch from a position, and returns its logits.
pub(super) fn decode<E: Executor + ?Sized>(
    session: &mut Session<E>,
    tokens: &[u32],
    first: usize,
) -> std::result::Result<Vec<f64>, ExecError> {
    let out = session.step(&Batch::sequence(tokens, first as u32, 0))?;
    Ok(out.reals()?.to_vec())
}

/// Decodes a batch, and further tokens one by one.
pub(super) fn run<E: Executor + ?Sized>(
    session: &mut Session<E>,
    (batch, single): (usize, usize),
) -> std::result::Result<Vec<f64>, ExecError> {
    let tokens = tokens(batch + single);
    let mut out = decode(session, &tokens[..batch], 0)?;
    for at in batch..batch + single {
        out.extend(decode(session, &tokens[at..=at], at)?);
    }
    Ok(out)
}

impl SmallModel {
    pub(super) fn new(kind: Kind, quick: bool) -> Result<SmallModel> {
        let file = open(kind)?;
        let planned = plan(&file, &[0])?;
        let weights = FileWeights {
            file: &file,
            observer: &(),
        };
        let mut session = Session::new(&planned.compiled.programs, &weights, planned.config)?;
        let reference = run(&mut session, lengths(quick))?;
        drop(session);
        drop(weights);
        Ok(SmallModel { file, reference })
    }
}
