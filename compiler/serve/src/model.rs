use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tpc_diag::Diagnostic;
use tpc_grammar::Vocabulary;
use tpc_text::{ChatTemplate, Tokenizer};

/// A model as clients see it.
#[derive(Debug)]
pub struct Model {
    /// Name of the model.
    pub name: String,
    /// The tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// The chat template; `None` if it is unusable.
    pub template: Result<ChatTemplate, Diagnostic>,
    /// The source of the chat template.
    pub template_source: String,
    /// The function of the model.
    pub function: Function,
    /// Maximum tokens of a request.
    pub n_ctx: usize,
    /// Maximum tokens of a request in training.
    pub n_ctx_train: Option<u64>,
    /// Number of logits per token.
    pub n_vocab: usize,
    /// True if the model has recurrent states.
    pub recurrent: bool,
    /// Requests in parallel.
    pub slots: usize,
    /// The promise on the bits of answers.
    pub bits: BitsPromise,
    /// Devices of the plan.
    pub devices: String,
    /// Bytes of the model's weights.
    pub bytes: u64,
}

/// A promise on the bits of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BitsPromise {
    /// True if answers have the bits of answers on one device.
    pub same_on_one_device: bool,
    /// True if other requests, cached prompts and drafts do not change the bits of answers.
    pub same_under_load: bool,
}

/// The function of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Generates text.
    Text,
    /// Computes one embedding per text.
    Embeddings,
    /// Computes one embedding per token.
    TokenEmbeddings,
}

/// A loaded model with the state that requests share.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) model: Model,
    /// Seconds since 1970 at the time of loading.
    pub(crate) created: u64,
    vocabulary: OnceLock<Result<Vocabulary, Diagnostic>>,
}

impl Served {
    pub(crate) fn new(model: Model) -> Served {
        Served {
            model,
            created: now(),
            vocabulary: OnceLock::new(),
        }
    }

    /// Returns the vocabulary of grammars; the first call builds it.
    pub(crate) fn vocabulary(&self) -> Result<&Vocabulary, Diagnostic> {
        let build = || Vocabulary::new(&self.model.tokenizer);
        let found = self.vocabulary.get_or_init(build);
        found.as_ref().map_err(Clone::clone)
    }
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}
