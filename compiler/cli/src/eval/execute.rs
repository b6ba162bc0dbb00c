//! The programs of a plan, run by the reference executor on a file's weights.

use tpc_runtime::{Batch, ExecError, Session, SessionConfig, WeightData, WeightSource};

use crate::progress::Progress;
use tpc_core::pipeline::Compiled;
use tpc_gguf::GgufFile;

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

/// The answers to a sequence of tokens.
pub(super) struct Evaluation {
    /// Entries of the vocabulary.
    pub(super) n_vocab: usize,
    /// The model's logits, `[n_vocab]` per token.
    pub(super) logits: Vec<f64>,
    /// The logits of each block that drafts a further token.
    pub(super) drafts: Vec<Vec<f64>>,
}

impl Evaluation {
    /// How often the draft of the token `ahead` places further is the model's own choice there, and in how many places
    /// both are known.
    pub(super) fn agreement(&self, ahead: usize, draft: &[f64]) -> (usize, usize) {
        let choices = |logits: &[f64]| -> Vec<Option<usize>> {
            let best = |row: &[f64]| {
                let row = row.iter().enumerate();
                row.max_by(|a, b| a.1.total_cmp(b.1)).map(|(id, _)| id)
            };
            logits.chunks(self.n_vocab.max(1)).map(best).collect()
        };
        let (drafted, own) = (choices(draft), choices(&self.logits));
        let pairs = || drafted.iter().zip(own.iter().skip(ahead));
        (pairs().filter(|(a, b)| a == b).count(), pairs().count())
    }
}

/// Feeds the tokens as one sequence, in batches of at most `ubatch`, and drafts after each.
pub(super) fn execute(
    file: &GgufFile,
    compiled: &Compiled,
    tokens: &[u32],
    ubatch: u64,
) -> Result<Evaluation, ExecError> {
    let progress = Progress::with_steps("running tokens", tokens.len());
    let cells = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    // The context that was asked for decides the graph; cells are made for the tokens that come.
    let used = |n: u64| cells(n).min(tokens.len());
    let mut config = SessionConfig::new(used(compiled.caches.n_ctx));
    if let Some(window) = compiled.model.summary.window {
        config = config.with_window(window, used(compiled.caches.n_ctx_swa));
    }
    let mut session = Session::new(&compiled.programs, &FileWeights(file), config)?;
    let mut out = Evaluation {
        n_vocab: 0,
        logits: Vec::new(),
        drafts: vec![Vec::new(); cells(compiled.model.summary.n_draft)],
    };
    let mut first = 0;
    for part in tokens.chunks(cells(ubatch).max(1)) {
        let logits = session.decode(&Batch::sequence(part, first, 0))?;
        out.n_vocab = logits.dims()[0];
        out.logits.extend_from_slice(&logits.reals()?);
        for (ahead, draft) in (1..).zip(&mut out.drafts) {
            // The tokens after the last are unknown: zeros stand for them, and their drafts are not looked at.
            let later = tokens.iter().copied().skip(first as usize + ahead);
            let next: Vec<u32> = later.chain(std::iter::repeat(0)).take(part.len()).collect();
            draft.extend_from_slice(&session.draft(&next)?.reals()?);
        }
        first += part.len() as u32;
        progress.advance(part.len());
    }
    Ok(out)
}
