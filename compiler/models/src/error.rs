use tpc_ir::op::TypeError;
use tpc_ir::{Code, DType, TensorType};

use super::codes;
use tpc_gguf::GgufError;

/// The reason why a model cannot be lowered.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant explains its fields"
)]
pub enum ArchError {
    /// A metadata key is missing or of the wrong kind.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    #[error("architecture {found:?} is not supported{}", why(.reason, .nearest))]
    Unsupported {
        found: String,
        nearest: Option<&'static str>,
        /// The architecture's property that tpc lacks.
        reason: Option<&'static str>,
    },
    #[error(
        "a context of {found} tokens is too long for {arch}: above {limit} tokens every KV head selects its own blocks, \
         and tpc does not support a mask per head"
    )]
    HeadsSelect {
        arch: &'static str,
        found: u64,
        limit: u64,
    },
    #[error("{key} is {found}: expected {expected}")]
    OutOfRange {
        key: String,
        found: String,
        expected: String,
    },
    #[error("{key} is {found}, which contradicts {with}: expected {expected}")]
    Contradiction {
        key: String,
        found: String,
        with: String,
        expected: String,
    },
    #[error("{key} is 0 in layer {layer}: expected at least 1")]
    EmptyLayer { layer: u32, key: String },
    #[error("{key} is {found:?}: expected none, linear, yarn or longrope")]
    RopeScaling { key: String, found: String },
    #[error("{what} is too large: {of}, expected at most 2^40")]
    Overflow { what: &'static str, of: String },
    #[error("tensor {name} is missing: expected one of shape {}", shape(.expected))]
    MissingTensor {
        name: String,
        expected: [u64; 4],
        split_experts: bool,
    },
    #[error(
        "tensor {name} has shape {}: expected {}; axis {axis} is {meaning}",
        shape(.found),
        shape(.expected)
    )]
    WrongShape {
        name: String,
        found: [u64; 4],
        expected: [u64; 4],
        /// The first axis with a different size.
        axis: usize,
        /// The metadata keys that give this axis's size.
        meaning: String,
    },
    #[error("tensor {name} holds {found}: expected {expected}")]
    WrongElements {
        name: String,
        found: DType,
        expected: &'static str,
    },
    #[error("tensor {missing} is missing, though the file has {present}")]
    MissingPartner { present: String, missing: String },
    #[error(
        "a cache of {dtype} cannot hold the {what} of layer {layer}, {size} elements each: {reason}"
    )]
    CacheType {
        option: &'static str,
        dtype: DType,
        what: &'static str,
        size: u64,
        layer: u32,
        reason: &'static str,
    },
    #[error(
        "a context of {found} tokens is too long: the model has {limit} learned positions ({key})"
    )]
    ContextTooLong { found: u64, limit: u64, key: String },
    #[error("the draft blocks of {arch} cannot be used: {reason}")]
    NoDrafts { arch: &'static str, reason: String },
    #[error("the description of {model:?} is inconsistent at {op}{}: {source}", of_types(.operands))]
    Inconsistent {
        model: String,
        op: &'static str,
        operands: Vec<TensorType>,
        source: Box<TypeError>,
    },
}

fn why(reason: &Option<&'static str>, nearest: &Option<&'static str>) -> String {
    match (reason, nearest) {
        (Some(reason), _) => format!(": {reason}"),
        (None, Some(name)) => format!("; did you mean {name:?}?"),
        (None, None) => String::new(),
    }
}

/// Formats sizes as `[256, 512]`, without trailing 1s.
fn shape(ne: &[u64; 4]) -> String {
    let rank = ne.iter().rposition(|&n| n != 1).map_or(1, |i| i + 1);
    format!("{:?}", &ne[..rank])
}

fn of_types(types: &[TensorType]) -> String {
    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
    format!(" of {}", types.join(" and "))
}

impl ArchError {
    /// Returns the stable code: `TPC0150` to `TPC0179`, or the code of a [`GgufError`].
    pub fn code(&self) -> &'static Code {
        match self {
            ArchError::Metadata(e) => e.code(),
            ArchError::Unsupported { .. } => &codes::UNSUPPORTED,
            ArchError::HeadsSelect { .. } => &codes::HEADS_SELECT,
            ArchError::OutOfRange { .. } => &codes::OUT_OF_RANGE,
            ArchError::Contradiction { .. } => &codes::CONTRADICTION,
            ArchError::EmptyLayer { .. } => &codes::EMPTY_LAYER,
            ArchError::RopeScaling { .. } => &codes::ROPE_SCALING,
            ArchError::Overflow { .. } => &codes::OVERFLOW,
            ArchError::MissingTensor { .. } => &codes::MISSING_TENSOR,
            ArchError::WrongShape { .. } => &codes::WRONG_SHAPE,
            ArchError::WrongElements { .. } => &codes::WRONG_ELEMENTS,
            ArchError::MissingPartner { .. } => &codes::MISSING_PARTNER,
            ArchError::CacheType { .. } => &codes::CACHE_TYPE,
            ArchError::ContextTooLong { .. } => &codes::CONTEXT_TOO_LONG,
            ArchError::Inconsistent { .. } => &codes::INCONSISTENT,
            ArchError::NoDrafts { .. } => &codes::NO_DRAFTS,
        }
    }
}
