//! `tpc eval`.

use std::path::PathBuf;

use clap::ValueEnum;
use tpc_ir::DType;
use tpc_runtime::{Batch, ExecError, Session, SessionConfig, WeightData, WeightSource};

use super::args::{Defaults, PlacementArgs};
use super::output::{self, Failure};
use tpc_core::golden::{Golden, distance};
use tpc_core::pipeline::{Compiled, compile};
use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Executor {
    /// Slow, in f64: the meaning of the ops.
    Reference,
    /// Not there yet.
    Cpu,
    /// Not there yet.
    Cuda,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file with its data, or any shard of one.
    model: PathBuf,
    /// Compare with these logits.
    #[arg(long, value_name = "FILE", required_unless_present = "tokens")]
    golden: Option<PathBuf>,
    /// Token ids to run, instead of those of a golden file.
    #[arg(
        long,
        value_name = "1,2,3",
        value_delimiter = ',',
        conflicts_with = "golden",
        requires = "logits"
    )]
    tokens: Option<Vec<u32>>,
    /// Write the logits here.
    #[arg(long, value_name = "OUT")]
    logits: Option<PathBuf>,
    /// The largest error (NMSE) that passes.
    #[arg(long, default_value_t = 1e-3)]
    tolerance: f64,
    /// What runs the programs.
    #[arg(long, value_enum, default_value = "reference")]
    executor: Executor,
    #[command(flatten)]
    placement: PlacementArgs,
}

struct FileWeights<'a>(&'a GgufFile);

impl WeightSource for FileWeights<'_> {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let missing = || ExecError::MissingWeight {
            tensor: tensor.to_owned(),
        };
        let info = self.0.header().tensor(tensor).ok_or_else(missing)?;
        let bytes = self.0.tensor_data(info).ok_or_else(missing)?;
        Ok(WeightData {
            dtype: info.dtype,
            ne: info.ne,
            bytes,
        })
    }
}

/// An error of the executor, as a diagnostic.
pub(super) fn execution_error(e: &ExecError) -> Diagnostic {
    Diagnostic::new(e.code(), "execution", e.to_string()).help(e.help())
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.executor != Executor::Reference {
        let d = Diagnostic::new(
            &codes::UNSUPPORTED_OPTION,
            "--executor",
            "only `reference` executes programs yet",
        );
        return Err(Failure::usage(d.help("--executor reference")));
    }
    if args.tolerance.is_nan() || args.tolerance < 0.0 {
        let message = format!("{} is no error to allow", args.tolerance);
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--tolerance", message);
        return Err(Failure::usage(d.help("a number from 0 on, such as 1e-3")));
    }
    // The reference is exact, so its caches are too unless asked otherwise.
    let placement = args.placement.placement(Defaults {
        cache: DType::F32,
        split_mode: SplitMode::Auto,
    })?;
    let golden = match &args.golden {
        None => None,
        Some(path) => {
            let name = path.display().to_string();
            let bytes = std::fs::read(path).map_err(|e| Failure::file(path, &e))?;
            Some(Golden::parse(&name, &bytes).map_err(Failure::usage)?)
        }
    };
    let tokens = match (&golden, &args.tokens) {
        (Some(g), _) => g.tokens.clone(),
        (None, Some(t)) => t.clone(),
        (None, None) => Vec::new(),
    };
    if tokens.is_empty() {
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--tokens", "no tokens");
        return Err(Failure::usage(
            d.help("token ids, such as `--tokens 1,2,3`"),
        ));
    }
    let file = GgufFile::open(&args.model).map_err(|e| Failure::of(vec![e.into()]))?;
    if !file.has_data() {
        let name = args.model.display().to_string();
        let d = Diagnostic::new(
            &codes::NO_TENSOR_DATA,
            name,
            "a header without data cannot be executed",
        );
        return Err(Failure::usage(
            d.help("give the whole model; `tpc synth` makes a small one"),
        ));
    }
    let compiled = compile(&file, &placement).map_err(Failure::of)?;
    if let Some(d) = compiled.unproved() {
        return Err(Failure::of(vec![d]));
    }
    let n_vocab = compiled.model.summary.n_vocab;
    if let Some(g) = &golden
        && g.n_vocab as u64 != n_vocab
    {
        let message = format!("has {} logits per token, the model {n_vocab}", g.n_vocab);
        let d = Diagnostic::new(&codes::LOGITS_DIFFER, "golden", message);
        return Err(Failure::found(vec![
            d.help("give the golden file of this model"),
        ]));
    }
    let run = execute(&file, &compiled, &tokens, placement.ubatch_size)
        .map_err(|e| Failure::found(vec![execution_error(&e)]))?;
    for (ahead, draft) in (1..).zip(&run.drafts) {
        let (alike, all) = run.agreement(ahead, draft);
        output::result(&format!(
            "draft {ahead}: the model's choice in {alike} of {all} places\n"
        ))?;
    }
    let Run {
        n_vocab, logits, ..
    } = run;
    if let Some(path) = &args.logits {
        let logits = logits.iter().map(|&x| x as f32).collect();
        let out = Golden {
            tokens: tokens.clone(),
            n_vocab,
            seed: 0,
            logits,
        };
        std::fs::write(path, out.to_bytes()).map_err(|e| Failure::file(path, &e))?;
    }
    let Some(golden) = golden else { return Ok(()) };
    let d = distance(golden.logits.iter().map(|&x| f64::from(x)), logits);
    output::result(&format!(
        "nmse={:e} max_abs={:e} tokens={}\n",
        d.nmse,
        d.max_abs,
        tokens.len()
    ))?;
    if d.nmse <= args.tolerance {
        return Ok(());
    }
    let message = format!(
        "NMSE {:e} is above the tolerance {:e}",
        d.nmse, args.tolerance
    );
    let d = Diagnostic::new(&codes::LOGITS_DIFFER, "logits", message);
    Err(Failure::found(vec![d.help(
        "give the golden file of this model and its tokens, or allow more with --tolerance",
    )]))
}

/// What came of the tokens.
struct Run {
    n_vocab: usize,
    /// The logits of all.
    logits: Vec<f64>,
    /// Those of each block that guesses a further token.
    drafts: Vec<Vec<f64>>,
}

impl Run {
    /// How often the guess of the token after those so many `ahead` is what the model itself chooses, and of how many.
    fn agreement(&self, ahead: usize, draft: &[f64]) -> (usize, usize) {
        let choices = |logits: &[f64]| -> Vec<Option<usize>> {
            let best = |row: &[f64]| {
                let row = row.iter().enumerate();
                row.max_by(|a, b| a.1.total_cmp(b.1)).map(|(id, _)| id)
            };
            logits.chunks(self.n_vocab.max(1)).map(best).collect()
        };
        let (guessed, own) = (choices(draft), choices(&self.logits));
        let pairs = || guessed.iter().zip(own.iter().skip(ahead));
        (pairs().filter(|(a, b)| a == b).count(), pairs().count())
    }
}

/// Feeds the tokens as one sequence, in batches of at most `ubatch`, and drafts after each.
fn execute(
    file: &GgufFile,
    compiled: &Compiled,
    tokens: &[u32],
    ubatch: u64,
) -> Result<Run, ExecError> {
    let cells = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    // The context that was asked for decides the graph; cells are made for the tokens that come.
    let used = |n: u64| cells(n).min(tokens.len());
    let mut config = SessionConfig::new(used(compiled.caches.n_ctx));
    if let Some(window) = compiled.model.summary.window {
        config = config.with_window(window, used(compiled.caches.n_ctx_swa));
    }
    let mut session = Session::new(&compiled.programs, &FileWeights(file), config)?;
    let guesses = cells(compiled.model.summary.n_draft);
    let mut run = Run {
        n_vocab: 0,
        logits: Vec::new(),
        drafts: vec![Vec::new(); guesses],
    };
    let mut first = 0;
    for part in tokens.chunks(cells(ubatch).max(1)) {
        let out = session.decode(&Batch::sequence(part, first, 0))?;
        run.n_vocab = out.dims()[0];
        run.logits.extend_from_slice(&out.reals()?);
        for (ahead, draft) in (1..).zip(&mut run.drafts) {
            // What follows the last token is not known, and what is guessed of it not looked at.
            let later = tokens.iter().copied().skip(first as usize + ahead);
            let next: Vec<u32> = later.chain(std::iter::repeat(0)).take(part.len()).collect();
            draft.extend_from_slice(&session.draft(&next)?.reals()?);
        }
        first += part.len() as u32;
    }
    Ok(run)
}
