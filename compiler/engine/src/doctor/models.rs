//! Small models on devices, compared with the reference executor.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tpc_core::golden::distance;
use tpc_core::placement::{Placement, parse_devices};
use tpc_cuda::{CudaExecutor, CudaOptions, CudaTarget, Driver, Edges};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_ir::program::Program;
use tpc_ir::program::verify::verify;
use tpc_passes::assemble;
use tpc_runtime::quant::quantise;
use tpc_runtime::{Batch, ExecError, Executor, Session, SessionConfig};
use tpc_synth::{Model, Spec};

use super::check::Bench;
use super::report::{CheckError, Finding, REPORT_BUG};
use crate::batch_shapes;
use crate::prepared;
use crate::weights::FileWeights;

type Result<T = Finding> = std::result::Result<T, CheckError>;

/// A kind of small model.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    /// The specification for `tpc_synth`.
    spec: &'static str,
}

const DENSE: Kind = Kind {
    name: "dense",
    spec: "llama-tiny",
};

const EXPERTS: Kind = Kind {
    name: "experts",
    spec: "qwen3moe-tiny",
};

/// Cells of the caches.
const CELLS: usize = 64;
/// The largest batches: one token, a draft, a prompt.
const BATCHES: [usize; 3] = [1, 8, 32];
/// The largest error (NMSE) of logits. Rounding of activations causes less.
const LARGEST: f64 = 5e-4;
/// The largest error (NMSE) between a batch and single tokens: other kernels of attention round otherwise.
const ALONE: f64 = 1e-5;

const CURE: &str = "run `tpc doctor` again; if the result is the same, report this bug in tpc with the output of \
                    `tpc doctor --format json` and the versions of the driver and NVRTC";

/// A model, and the logits of the reference executor.
pub(super) struct SmallModel {
    file: GgufFile,
    reference: Vec<f64>,
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
fn lengths(quick: bool) -> (usize, usize) {
    match quick {
        true => (8, 2),
        false => (32, 4),
    }
}

fn tokens(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| (i * 37 + 11) % 300).collect()
}

/// A plan of a small model for a list of cards.
struct Planned {
    compiled: tpc_core::pipeline::CompiledModel,
    config: SessionConfig,
}

fn plan(file: &GgufFile, cards: &[u32]) -> Result<Planned> {
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
    Ok(Planned { compiled, config })
}

fn program(planned: &Planned) -> Result<Arc<Program>> {
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
fn decode<E: Executor + ?Sized>(
    session: &mut Session<E>,
    tokens: &[u32],
    first: usize,
) -> std::result::Result<Vec<f64>, ExecError> {
    let out = session.step(&Batch::sequence(tokens, first as u32, 0))?;
    Ok(out.reals()?.to_vec())
}

/// Decodes a batch, and further tokens one by one.
fn run<E: Executor + ?Sized>(
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
    fn new(kind: Kind, quick: bool) -> Result<SmallModel> {
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

/// Runs `work` with a session of a model on these devices.
fn with_session<D: Driver + 'static, T>(
    bench: &mut Bench<D>,
    kind: Kind,
    (subject, edges): (&[usize], Edges),
    work: impl FnOnce(&mut Session<CudaExecutor<D>>) -> std::result::Result<T, ExecError>,
) -> Result<T> {
    // The executor opens the devices itself.
    bench.close();
    if !bench.models.contains_key(kind.name) {
        let model = SmallModel::new(kind, bench.quick)?;
        bench.models.insert(kind.name, model);
    }
    let cards: Vec<u32> = subject.iter().map(|i| bench.setup.cards[*i]).collect();
    let Some(model) = bench.models.get(kind.name) else {
        return Err(CheckError::new("the model is missing", REPORT_BUG));
    };
    let planned = plan(&model.file, &cards)?;
    let program = program(&planned)?;
    let driver = (bench.setup.open)(&cards)?;
    let weights = FileWeights {
        file: &model.file,
        observer: &(),
    };
    let options = CudaOptions {
        edges,
        ..CudaOptions::with_threads(1)
    };
    let executor = CudaExecutor::new(program, &weights, driver, options)?;
    let mut session = Session::with_executor(Box::new(executor), planned.config)?;
    Ok(work(&mut session)?)
}

fn kernels<D: Driver + 'static>(bench: &mut Bench<D>, kind: Kind, subject: &[usize]) -> Result {
    with_session(bench, kind, (subject, Edges::default()), |_| Ok(()))?;
    Ok(Finding::ok("all kernels compile and load"))
}

pub(super) fn dense_kernels<D: Driver + 'static>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    kernels(bench, DENSE, on)
}

pub(super) fn expert_kernels<D: Driver + 'static>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    kernels(bench, EXPERTS, on)
}

fn logits<D: Driver + 'static>(bench: &mut Bench<D>, kind: Kind, subject: &[usize]) -> Result {
    let lengths = lengths(bench.quick);
    let found = with_session(bench, kind, (subject, Edges::default()), |s| {
        run(s, lengths)
    })?;
    let reference = bench.models.get(kind.name).map(|m| m.reference.clone());
    let reference = reference.unwrap_or_default();
    let nmse = match reference.len() == found.len() {
        true => distance(reference, found).nmse,
        false => f64::INFINITY,
    };
    let figures = format!("NMSE {nmse:.1e} from the reference, at most {LARGEST:.0e} allowed");
    Ok(match nmse <= LARGEST {
        true => Finding::ok(figures).with("nmse", nmse),
        // JSON has no infinity.
        false if nmse.is_finite() => Finding::failed(figures, CURE).with("nmse", nmse),
        false => Finding::failed("some logits are not numbers", CURE),
    })
}

pub(super) fn dense_logits<D: Driver + 'static>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    logits(bench, DENSE, on)
}

pub(super) fn expert_logits<D: Driver + 'static>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    logits(bench, EXPERTS, on)
}

fn same_bits(a: &[f64], b: &[f64]) -> bool {
    let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    bits(a) == bits(b)
}

/// Compares runs with and without programmatic edges.
pub(super) fn early_launches<D: Driver + 'static>(
    bench: &mut Bench<D>,
    subject: &[usize],
) -> Result {
    let info = bench.driver()?.devices().get(subject[0]).cloned();
    if info.is_none_or(|i| i.capability < (9, 0)) {
        return Ok(Finding::skipped(
            "early launches need compute capability 9.0",
        ));
    }
    let lengths = lengths(bench.quick);
    let mut out = Vec::new();
    for edges in [Edges::Programmatic, Edges::Full] {
        out.push(with_session(bench, DENSE, (subject, edges), |s| {
            run(s, lengths)
        })?);
    }
    Ok(match same_bits(&out[0], &out[1]) {
        true => Finding::ok("logits have the same bits with `--pdl on` and `--pdl off`"),
        false => {
            let nmse = distance(out[1].iter().copied(), out[0].iter().copied()).nmse;
            let text = format!("logits differ with `--pdl on` and `--pdl off`: NMSE {nmse:.1e}");
            let cure = "run with `--pdl off`, and report this bug in tpc with the name of the card";
            Finding::failed(text, cure)
        }
    })
}

/// Compares batches of up to eight tokens with single tokens.
pub(super) fn batches<D: Driver + 'static>(bench: &mut Bench<D>, subject: &[usize]) -> Result {
    const MOST: usize = 8;
    let sizes: &[usize] = match bench.quick {
        true => &[2, 8],
        false => &[2, 3, 4, 5, 6, 7, 8],
    };
    let tokens = tokens(MOST);
    let (alone, together) = with_session(bench, DENSE, (subject, Edges::default()), |s| {
        let mut alone = Vec::new();
        for at in 0..MOST {
            alone.extend(decode(s, &tokens[at..=at], at)?);
        }
        let mut together = Vec::new();
        for n in sizes {
            s.clear()?;
            together.push(decode(s, &tokens[..*n], 0)?);
        }
        Ok((alone, together))
    })?;
    let (mut worst, mut same) = (0.0_f64, true);
    for batch in &together {
        let alone = &alone[..batch.len().min(alone.len())];
        same &= same_bits(alone, batch);
        worst = worst.max(distance(alone.iter().copied(), batch.iter().copied()).nmse);
    }
    let text = match same {
        true => format!("batches of up to {MOST} tokens have the bits of single tokens"),
        false => format!("batches of up to {MOST} tokens: NMSE {worst:.1e} from single tokens"),
    };
    Ok(match worst <= ALONE {
        true => Finding::ok(text).with("nmse", worst),
        false => Finding::failed(format!("{text}, at most {ALONE:.0e} allowed"), CURE),
    })
}
