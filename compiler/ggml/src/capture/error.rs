use tpc_ir::Code;

use super::codes;

/// A reason why a capture cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant says what its fields hold"
)]
pub enum CaptureError {
    #[error("line {line}: invalid record: {message}")]
    Record { line: usize, message: String },
    #[error("line {line}: {name}: unknown element type {found:?}")]
    ElementType {
        line: usize,
        name: String,
        found: String,
    },
    #[error("line {line}: {name}: sizes {ne:?} of {what}")]
    Sizes {
        line: usize,
        name: String,
        ne: [i64; 4],
        what: &'static str,
    },
    #[error("line {line}: {name}: {role} {id}: {what}")]
    Reference {
        line: usize,
        name: String,
        role: String,
        id: i64,
        what: String,
    },
    #[error("line {line}: {name}: {op} has {found} of {wanted} required sources")]
    Sources {
        line: usize,
        name: String,
        op: String,
        wanted: usize,
        found: usize,
    },
    #[error("line {line}: {name}: view_offs is {offset}, but the tensor is not a view")]
    Offset {
        line: usize,
        name: String,
        offset: u64,
    },
    #[error("line {line}: {name}: the translated graph loses {what}")]
    Lost {
        line: usize,
        name: String,
        what: String,
    },
    #[error(
        "line {line}: {name}: the view reaches byte {end} of a tensor of {bytes} bytes (line {root})"
    )]
    OutsideView {
        line: usize,
        name: String,
        end: u64,
        bytes: u64,
        root: usize,
    },
    #[error(
        "line {line}: {name}: strides {found:?} of a tensor that is not a view: expected {expected:?}, the packed \
         strides"
    )]
    Strides {
        line: usize,
        name: String,
        found: [u64; 4],
        expected: [u64; 4],
    },
    #[error("the capture lacks a computation: all {records} records are leaves")]
    Empty { records: usize },
    #[error("the capture's graph is inconsistent: {0}")]
    Inconsistent(String),
}

impl CaptureError {
    pub(super) fn inconsistent(e: &dyn std::fmt::Display) -> CaptureError {
        CaptureError::Inconsistent(e.to_string())
    }

    /// Returns the code: `TPC0180` to `TPC0189`.
    pub const fn code(&self) -> &'static Code {
        match self {
            CaptureError::Record { .. } => &codes::RECORD,
            CaptureError::ElementType { .. } => &codes::ELEMENT_TYPE,
            CaptureError::Sizes { .. } => &codes::SIZES,
            CaptureError::Reference { .. } => &codes::REFERENCE,
            CaptureError::OutsideView { .. } | CaptureError::Offset { .. } => &codes::OUTSIDE_VIEW,
            CaptureError::Sources { .. } => &codes::SOURCES,
            CaptureError::Lost { .. } => &codes::LOST,
            CaptureError::Strides { .. } => &codes::STRIDES,
            CaptureError::Empty { .. } => &codes::EMPTY,
            CaptureError::Inconsistent(_) => &codes::INCONSISTENT,
        }
    }

    /// Returns the line number, from 1.
    pub const fn line(&self) -> Option<usize> {
        match self {
            CaptureError::Record { line, .. }
            | CaptureError::ElementType { line, .. }
            | CaptureError::Sizes { line, .. }
            | CaptureError::Reference { line, .. }
            | CaptureError::OutsideView { line, .. }
            | CaptureError::Offset { line, .. }
            | CaptureError::Sources { line, .. }
            | CaptureError::Lost { line, .. }
            | CaptureError::Strides { line, .. } => Some(*line),
            CaptureError::Empty { .. } | CaptureError::Inconsistent(_) => None,
        }
    }

    /// Returns the cure.
    pub fn help(&self) -> String {
        match self {
            CaptureError::Record { .. } => {
                "write one JSON object per line with the keys id, name, op, type, ne, nb, params, src, view, \
                 view_offs and flags; capture the graph again if the file was cut"
            }
            CaptureError::ElementType { .. } => "use ggml's type names, such as f32, f16, i32 or q4_K",
            CaptureError::Sizes { .. } => {
                "write four sizes of 0 or more in ggml's order, rows of whole quantisation blocks, and fewer than 2^48 \
                 elements"
            }
            CaptureError::Reference { .. } => {
                "write tensors in topological order, each before its first use, with unique ids of 0 or more; \
                 -1 is an absent tensor, -2 the record itself"
            }
            CaptureError::Sources { .. } => {
                "write all sources in ggml's order (tensor->src); -1 only for absent optional sources"
            }
            CaptureError::Offset { .. } => {
                "write the owner of the memory in `view`, or 0 in `view_offs`"
            }
            CaptureError::Lost { .. } => {
                "this is a bug in tpc: please report it with the capture"
            }
            CaptureError::OutsideView { .. } => {
                "write the owner of the memory in `view`, and an offset within it in `view_offs`"
            }
            CaptureError::Strides { .. } => {
                "write the owner of the memory in `view`: only views may have gaps or another order"
            }
            CaptureError::Empty { .. } => "capture the computed graph, not only its weights",
            CaptureError::Inconsistent(_) => "this is a bug in tpc: please report it with the capture",
        }
        .to_owned()
    }
}

impl From<CaptureError> for tpc_diag::Diagnostic {
    fn from(e: CaptureError) -> tpc_diag::Diagnostic {
        tpc_diag::Diagnostic::new(e.code(), "capture", e.to_string()).help(e.help())
    }
}
