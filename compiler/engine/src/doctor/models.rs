//! Checks of small models on devices, compared with the reference executor.

use tpc_core::golden::distance;
use tpc_cuda::{CudaExecutor, CudaOptions, Driver, Edges};
use tpc_runtime::{ExecError, Session};

use super::check::Bench;
use super::report::{CheckError, Finding, REPORT_BUG};
use super::small_model::{
    DENSE, EXPERTS, Kind, SmallModel, decode, lengths, plan, program, run, tokens,
};
use crate::weights::FileWeights;

type Result<T = Finding> = std::result::Result<T, CheckError>;

/// The largest error (NMSE) of logits. Rounding of activations causes less.
const LARGEST: f64 = 5e-4;
/// The largest error (NMSE) between a batch and single tokens: other kernels of attention round otherwise.
const ALONE: f64 = 1e-5;

const CURE: &str = "run `tpc doctor` again; if the result is the same, report this bug in tpc with the output of \
                    `tpc doctor --format json` and the versions of the driver and NVRTC";

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
