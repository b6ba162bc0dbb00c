//! `tpc eval`: runs tokens through the devices' programs; compares or writes the logits.

mod execute;

use std::path::{Path, PathBuf};

use tpc_ir::DType;

use crate::args::{Defaults, PlacementArgs};
use crate::execution::{self, ExecutionArgs, FaultArgs, RankOptions, SubjectArgs};
use crate::input;
use crate::output::{self, Failure};
use crate::values::tolerance;
use execute::{Evaluation, execute};
use tpc_core::golden::{Golden, distance};
use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::{Diagnostic, codes};
use tpc_engine::{ExecutorKind, Loader, check_tokens};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// File of golden logits to compare with.
    #[arg(long, value_name = "FILE")]
    golden: Option<PathBuf>,
    /// Token ids to run, instead of a golden file's.
    #[arg(
        long,
        value_name = "1,2,3",
        value_delimiter = ',',
        conflicts_with = "golden"
    )]
    tokens: Option<Vec<u32>>,
    /// File for the logits.
    #[arg(long, value_name = "OUT")]
    logits: Option<PathBuf>,
    /// Largest error that passes (NMSE).
    #[arg(long, default_value_t = 1e-3, value_parser = tolerance, allow_hyphen_values = true)]
    tolerance: f64,
    #[command(flatten)]
    engine: ExecutionArgs,
    #[command(flatten)]
    faults: FaultArgs,
    #[command(flatten)]
    placement: PlacementArgs,
}

fn placement(args: &Args, executor: ExecutorKind) -> Result<Placement, Failure> {
    // The reference executor is exact, so the default cache type is f32.
    let defaults = Defaults {
        cache: DType::F32,
        split_mode: SplitMode::Auto,
    };
    let asked = args.placement.placement(defaults)?;
    Ok(match executor {
        ExecutorKind::Reference => asked,
        ExecutorKind::Cpu
        | ExecutorKind::Cuda
        | ExecutorKind::EmulatedCuda
        | ExecutorKind::CheckedCuda => Placement {
            storage: executor.target(),
            ..asked
        },
    })
}

impl Args {
    /// Replaces names of models by their files or addresses.
    pub(super) fn resolve(&mut self) -> Result<(), Failure> {
        self.subject.resolve()
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let golden = args.golden.as_deref().map(read_golden).transpose()?;
    let tokens = tokens(args, golden.as_ref())?;
    let executor = (args.engine).executor(&args.placement, ExecutorKind::Reference);
    let placement = || placement(args, executor);
    let opened = args.subject.open(&args.placement, placement)?;
    let ready = opened.plan()?;
    if let Some(golden) = &golden {
        same_vocabulary(golden, ready.result_width)?;
    }
    let whose = match &args.golden {
        Some(path) if args.tokens.is_none() => path.display().to_string(),
        _ => "--tokens".to_owned(),
    };
    check_tokens(tokens.iter().copied(), ready.n_vocab, &whose)?;
    // A program computes the logits of `ready.outputs` tokens. The reference executor has no such limit.
    let most = match executor {
        ExecutorKind::Reference => usize::MAX,
        ExecutorKind::Cpu
        | ExecutorKind::Cuda
        | ExecutorKind::EmulatedCuda
        | ExecutorKind::CheckedCuda => ready.outputs.unwrap_or(usize::MAX),
    };
    let batch = ready.ubatch.min(most).clamp(1, tokens.len());
    if ready.bidirectional && batch < tokens.len() {
        let n = tokens.len();
        let message =
            format!("{n} tokens attend to one another, but a batch holds at most {batch}");
        let d = Diagnostic::new(&crate::codes::BOTH_WAYS, "model", message);
        return Err(Failure::usage(d.help(format!("--ubatch-size {n}"))));
    }
    let loader = Loader {
        name: args.subject.path(),
        file: &opened.file,
        model: &ready,
        // The options' context determines the graph, but cells are allocated only for these tokens.
        ctx_size: tokens.len(),
        batch,
        outputs: batch,
        sequences: 1,
        executor: (args.faults)
            .apply((args.engine).executor_options(executor, ready.n_devices())?)?,
    };
    let mut model = execution::load(loader, &args.engine)?;
    let evaluation = execute(&mut model, &tokens, (batch, ready.n_draft))?;
    for (ahead, draft) in (1..).zip(&evaluation.drafts) {
        let (alike, all) = evaluation.agreement(ahead, draft);
        output::result(&format!(
            "draft {ahead}: agrees with the model at {alike} of {all} positions\n"
        ))?;
    }
    if let Some(path) = &args.logits {
        let logits = evaluation.logits.iter().map(|&x| x as f32).collect();
        let out = Golden {
            tokens: tokens.clone(),
            n_vocab: evaluation.n_vocab,
            seed: 0,
            logits,
        };
        std::fs::write(path, out.to_bytes()).map_err(|e| Failure::file(path, &e))?;
    }
    match golden {
        Some(golden) => compare(&golden, evaluation, args.tolerance),
        None => Ok(()),
    }
}

const MAX_GOLDEN: u64 = 4 << 30;

fn read_golden(path: &Path) -> Result<Golden, Failure> {
    let name = path.display().to_string();
    let bytes = input::read_file(path, MAX_GOLDEN)?;
    Golden::parse(&name, &bytes).map_err(Failure::usage)
}

fn tokens(args: &Args, golden: Option<&Golden>) -> Result<Vec<u32>, Failure> {
    let tokens = golden.map(|g| g.tokens.clone()).or(args.tokens.clone());
    let tokens = tokens.unwrap_or_default();
    if tokens.is_empty() {
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--tokens", "missing tokens to run");
        return Err(Failure::usage(d.help(
            "`--golden FILE` runs a file's tokens and compares the logits; `--tokens 1,2,3 --logits OUT` runs any tokens and \
             writes the logits; `tpc run` generates text",
        )));
    }
    if golden.is_none() && args.logits.is_none() {
        let what = "--tokens needs --logits";
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--logits", what);
        return Err(Failure::usage(d.help(
            "add --logits OUT, or generate tokens with `tpc run --tokens 1,2,3`",
        )));
    }
    Ok(tokens)
}

fn same_vocabulary(golden: &Golden, n_vocab: usize) -> Result<(), Failure> {
    if golden.n_vocab == n_vocab {
        return Ok(());
    }
    let message = format!(
        "the golden file has {} logits per token, the model {n_vocab}",
        golden.n_vocab
    );
    let d = Diagnostic::new(&codes::LOGITS_DIFFER, "golden", message);
    Err(Failure::findings(vec![
        d.help("give the golden file of this model"),
    ]))
}

fn compare(golden: &Golden, evaluation: Evaluation, tolerance: f64) -> Result<(), Failure> {
    let want = golden.logits.iter().map(|&x| f64::from(x));
    let d = distance(want, evaluation.logits);
    output::result(&format!(
        "nmse={:e} max_abs={:e} tokens={}\n",
        d.nmse,
        d.max_abs,
        golden.tokens.len()
    ))?;
    if d.nmse <= tolerance {
        return Ok(());
    }
    let message = format!("NMSE {:e} is above the tolerance {tolerance:e}", d.nmse);
    let d = Diagnostic::new(&codes::LOGITS_DIFFER, "logits", message);
    Err(Failure::findings(vec![d.help(
        "give the golden file of this model and its tokens, or raise --tolerance",
    )]))
}

impl Args {
    /// Returns the options that several processes need to run the model together.
    pub(crate) const fn of_ranks(&self) -> RankOptions<'_> {
        (&self.subject, &self.placement, &self.engine)
    }
}
