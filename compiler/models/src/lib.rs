//! Architectures: from the header of a GGUF file to the graph of its model.
//!
//! An architecture is a *description*, not code: a constant [`Arch`] in one short file per family, which states its
//! choices (norms and where they stand, form of the projections, rotation, activation, experts, scales) and inherits
//! the rest from [`Arch::CLASSIC`]. Shared building blocks in `blocks/` read the description, the hyper-parameters
//! and the tensors, and append instructions; they know no architecture by name. Adding an ordinary architecture is one
//! file and one line of [`ARCHS`].
//!
//! [`lower`] goes in three steps, each trusting the one before:
//!
//! 1. *Hyper-parameters*: every metadata key that the description gives a meaning is read and checked (counts, finite
//!    numbers, divisibility). Keys without a meaning in the architecture are not read, whatever they hold.
//! 2. *Assembly*: blocks ask a tensor source for the tensors they need, by name and expected shape, and build on what
//!    they get. A file answers with its tensors, and each shape is compared with the keys that decide it. A recorder
//!    answers that it has everything and takes notes: [`expected_tensors`] is the same code, so the two cannot differ.
//! 3. What the file has beyond that is listed in [`Summary::unused`]: for a well-formed file nothing, or the tensors
//!    of parts that are not lowered.
//!
//! Invariants:
//!
//! - Only headers are read, never tensor data, and no input makes this panic, or allocate more than the graph of
//!   2048 layers needs.
//! - Every value is on the host, every weight is loaded once, and every KV cache is a state with an updated value
//!   among the outputs. Values are named as in llama.cpp's graphs where those name them.
//! - Semantics are llama.cpp's, whose files these are. The one exception is the window of Phi 3, which llama.cpp
//!   ignores (see `phi.rs`).

mod blocks;
mod codes;
pub mod description;
mod error;
mod expected;
mod families;
mod lowering;
mod source;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

use tpc_ir::{DType, Graph, Window};

pub use blocks::CACHE_TYPES;
pub use codes::CODES;
pub use description::Arch;
pub use error::ArchError;
pub use expected::{expected_tensors, expected_tensors_in};
pub use families::ARCHS;
pub use source::{ExpectedTensor, TensorRole, WeightForms};

use blocks::hparams::HParams;
use source::FileTensors;
use tpc_gguf::Header;

/// What the user decides about a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Element type of the cache of keys.
    pub cache_type_k: DType,
    /// Element type of the cache of values.
    pub cache_type_v: DType,
    /// The longest context of a sequence, in tokens.
    pub n_ctx: u64,
    /// What guesses tokens ahead.
    pub drafting: Drafting,
}

/// What guesses tokens ahead, for the model to check several at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drafting {
    /// Nothing.
    #[default]
    None,
    /// The blocks that the model's file has for it (multi-token prediction).
    Mtp,
}

/// A lowered model.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The model on one place.
    pub graph: Graph,
    /// What to tell of it.
    pub summary: Summary,
}

/// What to tell of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The architecture's name.
    pub arch: &'static str,
    /// `general.name`, or the architecture's name.
    pub name: String,
    /// Number of layers.
    pub n_layer: u64,
    /// Number of blocks after them in the graph, which guess further tokens ahead.
    pub n_draft: u64,
    /// Blocks that guess further tokens ahead and are not part of the graph.
    pub drafts_aside: Option<DraftsAside>,
    /// Width of the residual stream.
    pub n_embd: u64,
    /// Number of tokens in the vocabulary.
    pub n_vocab: u64,
    /// Longest context that the model was trained for, in tokens.
    pub n_ctx_train: u64,
    /// What layers with a window attend to; `None` if no layer has one.
    pub window: Option<Window>,
    /// Tensors of the file that nothing is known of, in file order.
    pub unused: Vec<String>,
    /// Tensors of the file that are known and not part of the graph, in file order: those of blocks that guess further
    /// tokens ahead, and older forms of others.
    pub aside: Vec<String>,
}

/// Blocks of a file that guess further tokens ahead, and are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftsAside {
    /// How many.
    pub blocks: u64,
    /// Bytes of their tensors.
    pub bytes: u64,
}

impl Summary {
    /// Number of layers and of blocks after them in the graph.
    pub const fn n_block(&self) -> u64 {
        self.n_layer.saturating_add(self.n_draft)
    }
}

/// The architecture of that name.
///
/// # Errors
///
/// [`ArchError::Unsupported`], with the nearest name that is supported.
pub fn find(name: &str) -> Result<&'static Arch, ArchError> {
    ARCHS
        .iter()
        .copied()
        .find(|a| a.name == name)
        .ok_or_else(|| ArchError::Unsupported {
            found: tpc_diag::suggest::shorten(name),
            nearest: tpc_diag::suggest::nearest(name, ARCHS.iter().map(|a| a.name)),
        })
}

/// The graph of the model that a header describes.
///
/// # Errors
///
/// The architecture is unknown, or the metadata and tensors do not make a model of it.
pub fn lower(header: &Header, options: &LowerOptions) -> Result<Lowered, ArchError> {
    let metadata = header.metadata();
    let arch = find(metadata.require_str("general.architecture")?)?;
    let hparams = HParams::read(arch, metadata, Some(header), options.drafting)?;
    let mut tensors = FileTensors::new(header, arch.name);
    let n_block = hparams.layers.len() + hparams.drafts.len();
    if let Some(draft) = hparams.drafts.iter().find(|d| !tensors.has_block(d.index)) {
        let (arch, index) = (arch.name, draft.index);
        let reason = format!("the metadata count block {index}, of which the file has no tensor");
        return Err(ArchError::NoDrafts { arch, reason });
    }
    let drafts_aside = tensors.leave_blocks_aside(n_block..hparams.n_layer_all);
    let graph = lowering::build(arch, &hparams, options, &mut tensors)?;
    let summary = Summary {
        arch: arch.name,
        name: graph.name.clone(),
        n_layer: hparams.layers.len() as u64,
        n_draft: hparams.drafts.len() as u64,
        drafts_aside,
        n_embd: hparams.n_embd,
        n_vocab: hparams.n_vocab,
        n_ctx_train: hparams.n_ctx_train,
        window: hparams.window,
        unused: tensors.unused(),
        aside: tensors.aside(),
    };
    Ok(Lowered { graph, summary })
}
