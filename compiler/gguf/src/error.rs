//! Defects of GGUF files and their cures.

use std::fmt;
use std::io;

use tpc_ir::Code;

use super::codes;
use super::lookalike;

/// One defect of a GGUF file.
///
/// Displays as `file: subject: defect (at byte N)`; omits unknown parts.
#[derive(Debug)]
pub struct GgufError {
    file: String,
    offset: Option<u64>,
    subject: Option<Subject>,
    kind: Box<GgufErrorKind>,
}

/// The part of a header with a defect. Names are shortened and escaped for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A metadata key.
    Key(String),
    /// A tensor, by name.
    Tensor(String),
}

/// A defect of a key or tensor name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StringDefect {
    /// The name is empty.
    #[error("it is empty")]
    Empty,
    /// The name is too long for the format.
    #[error("it is {length} bytes long; at most {max} are allowed")]
    TooLong {
        /// Bytes declared.
        length: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// The name is not UTF-8.
    #[error("it is not valid UTF-8 from byte {at} of the name")]
    NotUtf8 {
        /// The offset in the string of the first invalid byte.
        at: u64,
    },
}

/// The kinds of defect; [`super::CODES`] explains their codes.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant explains its fields"
)]
pub enum GgufErrorKind {
    #[error("cannot {action}: {source}")]
    Io {
        action: &'static str,
        source: io::Error,
    },
    #[error("not a GGUF file: expected it to begin with \"GGUF\", found bytes {found:02x?}{}", guess(.looks_like))]
    NotGguf {
        found: Vec<u8>,
        looks_like: Option<&'static str>,
    },
    #[error("GGUF version {found} is not supported: expected 2 or 3")]
    UnsupportedVersion { found: u32 },
    #[error("the header ends early: expected {needed} more bytes for {reading}, found {left}")]
    TruncatedHeader {
        reading: &'static str,
        needed: u64,
        left: u64,
    },
    #[error("the header does not end within {limit} bytes (while reading {reading})")]
    HeaderTooLarge { reading: &'static str, limit: u64 },
    #[error("{what} is {count}: expected at most {at_most}, which fit the rest of the file")]
    ImplausibleCount {
        what: &'static str,
        count: u64,
        at_most: u64,
    },
    #[error("bad metadata key: {defect}")]
    BadKey { defect: StringDefect },
    #[error("metadata key given twice, first at byte {first}")]
    DuplicateKey { first: u64 },
    #[error("unknown value type {found}: expected 0 to 12")]
    UnknownValueType { found: u32 },
    #[error("bad boolean: expected a byte 0 or 1, found {found}")]
    BadBool { found: u8 },
    #[error("array nested too deep: expected at most {max} levels")]
    NestedTooDeep { max: u32 },
    #[error("bad alignment: expected a u32 power of two of at least 8, found {found}")]
    BadAlignment { found: String },
    #[error("bad tensor name: {defect}")]
    BadTensorName { defect: StringDefect },
    #[error("tensor given twice, first {first}")]
    DuplicateTensor { first: String },
    #[error("expected 1 to 4 dimensions, found {found}")]
    BadDimCount { found: u32 },
    #[error("dimension {axis} is 0: expected at least 1")]
    ZeroDim { axis: usize },
    #[error("dimensions {ne:?} are too large: expected fewer than 2^63 elements and bytes")]
    DimOverflow { ne: Vec<u64> },
    #[error("dimension 0 is {found}: expected a multiple of {block}, the block length of {dtype}")]
    PartialBlock {
        dtype: tpc_ir::DType,
        block: u64,
        found: u64,
    },
    #[error("unknown tensor type {found}{}", retired_type(*.found))]
    UnknownTensorType { found: u32 },
    #[error("data offset {found}: expected a multiple of the alignment, {alignment}")]
    MisalignedOffset { found: u64, alignment: u64 },
    #[error("data offset {found} plus {bytes} bytes: expected less than 2^63")]
    OffsetOverflow { found: u64, bytes: u64 },
    #[error(
        "its data begin at byte {start}, inside the data of {other:?}: expected byte {end} or later"
    )]
    TensorOverlap { other: String, start: u64, end: u64 },
    #[error(
        "the file is cut short: expected data up to byte {end}, found a file of {file_len} bytes"
    )]
    TruncatedData { end: u64, file_len: u64 },
    #[error("{} of {count} {} missing: expected {expected}{}", shards(.numbers), are(.numbers), more(.numbers))]
    MissingShard {
        expected: String,
        numbers: Vec<u32>,
        count: u32,
    },
    #[error(
        "the file name contradicts the header of shard {number} of {count}: expected {expected}"
    )]
    SplitName {
        number: u32,
        count: u32,
        expected: String,
    },
    #[error("shards disagree: expected {what} {expected}, found {found}")]
    SplitMismatch {
        what: &'static str,
        expected: String,
        found: String,
    },
    #[error(
        "the shards hold {found} tensors: expected {expected}, the value of split.tensors.count"
    )]
    SplitTensorCount { expected: u64, found: u64 },
    #[error(
        "this shard has no tensor data, but {with} has: expected data in all shards or only bare headers"
    )]
    MixedShardData { with: String },
    #[error("required metadata key is missing: expected {expected}")]
    MissingKey { expected: &'static str },
    #[error("metadata value of the wrong type: expected {expected}, found {found}")]
    WrongType {
        expected: &'static str,
        found: String,
    },
    #[error("metadata value out of range: expected {expected}, found {found}")]
    OutOfRange {
        expected: &'static str,
        found: String,
    },
    #[error(
        "metadata array of the wrong length: expected {expected} elements, one per layer, found {found}"
    )]
    WrongLength { expected: usize, found: usize },
    #[error("expected {expected} bytes of data to write, got {found}")]
    DataLength { expected: u64, found: u64 },
}

fn guess(looks_like: &Option<&'static str>) -> String {
    looks_like
        .map(|what| format!("; it looks like {what}"))
        .unwrap_or_default()
}

/// Lists shards: `shard 2`, or `shards 2, 3 and 5`; more than a dozen are counted.
fn shards(numbers: &[u32]) -> String {
    let listed: Vec<String> = numbers.iter().map(u32::to_string).collect();
    match listed.as_slice() {
        [one] => format!("shard {one}"),
        [first @ .., last] if listed.len() <= 12 => {
            format!("shards {} and {last}", first.join(", "))
        }
        all => format!("{} shards", all.len()),
    }
}

fn are(numbers: &[u32]) -> &'static str {
    match numbers.len() {
        1 => "is",
        _ => "are",
    }
}

fn more(numbers: &[u32]) -> &'static str {
    match numbers.len() {
        0 | 1 => "",
        _ => " and so on",
    }
}

fn retired_type(id: u32) -> &'static str {
    match id {
        4 | 5 => " (q4_2 and q4_3, withdrawn in 2023)",
        36 => " (iq4_nl_4_4, withdrawn, or i2_s of Microsoft's BitNet)",
        31..=33 | 37..=38 => {
            " (a layout repacked for one CPU, withdrawn: runtimes now repack on loading)"
        }
        98 | 99 | 136 | 147..=150 => " (of ik_llama.cpp, for intermediate results only)",
        142 | 143 => " (iq2_tn and iq1_tn of ik_llama.cpp, withdrawn)",
        _ => "",
    }
}

impl GgufErrorKind {
    /// Returns the stable code, `TPC0100` to `TPC0149`.
    pub fn code(&self) -> &'static Code {
        use GgufErrorKind as K;
        match self {
            K::Io { .. } => &codes::IO,
            K::NotGguf { .. } => &codes::NOT_GGUF,
            K::UnsupportedVersion { .. } => &codes::UNSUPPORTED_VERSION,
            K::TruncatedHeader { .. } => &codes::TRUNCATED_HEADER,
            K::HeaderTooLarge { .. } => &codes::HEADER_TOO_LARGE,
            K::ImplausibleCount { .. } => &codes::IMPLAUSIBLE_COUNT,
            K::BadKey { .. } => &codes::BAD_KEY,
            K::DuplicateKey { .. } => &codes::DUPLICATE_KEY,
            K::UnknownValueType { .. } => &codes::UNKNOWN_VALUE_TYPE,
            K::BadBool { .. } => &codes::BAD_BOOL,
            K::NestedTooDeep { .. } => &codes::NESTED_TOO_DEEP,
            K::BadAlignment { .. } => &codes::BAD_ALIGNMENT,
            K::BadTensorName { .. } => &codes::BAD_TENSOR_NAME,
            K::DuplicateTensor { .. } => &codes::DUPLICATE_TENSOR,
            K::BadDimCount { .. } => &codes::BAD_DIM_COUNT,
            K::ZeroDim { .. } => &codes::ZERO_DIM,
            K::DimOverflow { .. } => &codes::DIM_OVERFLOW,
            K::PartialBlock { .. } => &codes::PARTIAL_BLOCK,
            K::UnknownTensorType { .. } => &codes::UNKNOWN_TENSOR_TYPE,
            K::MisalignedOffset { .. } => &codes::MISALIGNED_OFFSET,
            K::OffsetOverflow { .. } => &codes::OFFSET_OVERFLOW,
            K::TensorOverlap { .. } => &codes::TENSOR_OVERLAP,
            K::TruncatedData { .. } => &codes::TRUNCATED_DATA,
            K::MissingShard { .. } => &codes::MISSING_SHARD,
            K::SplitName { .. } => &codes::SPLIT_NAME,
            K::SplitMismatch { .. } => &codes::SPLIT_MISMATCH,
            K::SplitTensorCount { .. } => &codes::SPLIT_TENSOR_COUNT,
            K::MixedShardData { .. } => &codes::MIXED_SHARD_DATA,
            K::MissingKey { .. } => &codes::MISSING_KEY,
            K::WrongType { .. } => &codes::WRONG_TYPE,
            K::OutOfRange { .. } => &codes::OUT_OF_RANGE,
            K::WrongLength { .. } => &codes::WRONG_LENGTH,
            K::DataLength { .. } => &codes::DATA_LENGTH,
        }
    }

    /// Returns the cure.
    pub fn help(&self) -> String {
        use GgufErrorKind as K;
        match self {
            K::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => "make it readable for this user (chmod, chown), or copy it",
                io::ErrorKind::InvalidInput => "tpc reads models at random positions: save the model as a file, and give its path",
                _ => "check that the path names a readable file",
            }
            .into(),
            K::NotGguf { looks_like, .. } => lookalike::cure(*looks_like).into(),
            K::UnsupportedVersion { found: 1 } => {
                "version 1 files date from August 2023: convert the model again with a current llama.cpp".into()
            }
            K::UnsupportedVersion { .. } => {
                "compare the checksum: the file is newer than this program, or its first bytes are damaged".into()
            }
            K::TruncatedHeader { .. } | K::TruncatedData { .. } => {
                "compare the file's size and checksum, and fetch it again: the download or copy was probably interrupted"
                    .into()
            }
            K::HeaderTooLarge { .. } => {
                "fetch the file again from a source you trust: no published model has a header this long".into()
            }
            K::ImplausibleCount { .. } => {
                "compare the file's size and checksum, and fetch it again: the file is cut short or damaged".into()
            }
            K::DuplicateKey { .. } | K::DuplicateTensor { .. } => {
                "remove one of the two, or convert the model again".into()
            }
            K::BadAlignment { .. } => "correct general.alignment (without the key it is 32)".into(),
            K::UnknownTensorType { .. } => {
                let known: Vec<String> =
                    tpc_ir::DType::ALL.iter().map(|t| format!("{} {}", t.gguf_id(), t.name())).collect();
                format!(
                    "check the file's source (a newer program or a fork may have written it), or requantise the model; \
                     known types: {}, and the types of ik_llama.cpp",
                    known.join(", ")
                )
            }
            K::PartialBlock { .. } => {
                "keep this tensor in f16 or in a type with shorter blocks: quantised rows are stored in whole blocks".into()
            }
            K::BadKey { .. }
            | K::UnknownValueType { .. }
            | K::BadBool { .. }
            | K::NestedTooDeep { .. }
            | K::BadTensorName { .. }
            | K::BadDimCount { .. }
            | K::ZeroDim { .. }
            | K::DimOverflow { .. }
            | K::MisalignedOffset { .. }
            | K::OffsetOverflow { .. }
            | K::TensorOverlap { .. } => {
                "compare the file's checksum, or convert the model again: the file or its converter is faulty"
                    .into()
            }
            K::MissingShard { .. } => "put all shards of the model into one directory, with their original names".into(),
            K::SplitName { .. } => "give all shards their original names, which number them".into(),
            K::SplitMismatch { .. } | K::SplitTensorCount { .. } => {
                "fetch all shards again: these shards are from different models or quantisations".into()
            }
            K::MixedShardData { .. } => "fetch the missing data, or use bare headers of all shards".into(),
            K::MissingKey { .. } | K::WrongType { .. } | K::OutOfRange { .. } | K::WrongLength { .. } => {
                "correct the key (llama.cpp's gguf_set_metadata.py), or convert the model again with a current llama.cpp"
                    .into()
            }
            K::DataLength { .. } => "write exactly the bytes of the tensor's type and shape".into(),
        }
    }
}

impl GgufError {
    pub(super) fn new(file: &str, kind: GgufErrorKind) -> GgufError {
        GgufError {
            file: file.to_owned(),
            offset: None,
            subject: None,
            kind: Box::new(kind),
        }
    }

    pub(super) fn at(mut self, offset: u64) -> GgufError {
        self.offset = Some(offset);
        self
    }

    pub(super) fn in_key(mut self, key: &str) -> GgufError {
        self.subject = Some(Subject::Key(shorten(key)));
        self
    }

    pub(super) fn in_tensor(mut self, name: &str) -> GgufError {
        self.subject = Some(Subject::Tensor(shorten(name)));
        self
    }

    /// Returns the file's name, as given by the caller.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the defect's offset in bytes from the file's start, if known.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Returns the key or tensor with the defect.
    pub fn subject(&self) -> Option<&Subject> {
        self.subject.as_ref()
    }

    /// Returns the kind of defect.
    pub fn kind(&self) -> &GgufErrorKind {
        &self.kind
    }

    /// Returns the stable code, `TPC0100` to `TPC0149`.
    pub fn code(&self) -> &'static Code {
        self.kind.code()
    }

    /// Returns the cure.
    pub fn help(&self) -> String {
        self.kind.help()
    }
}

impl fmt::Display for GgufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        match &self.subject {
            Some(Subject::Key(key)) => write!(f, "metadata key {key:?}: ")?,
            Some(Subject::Tensor(name)) => write!(f, "tensor {name:?}: ")?,
            None => {}
        }
        write!(f, "{}", self.kind)?;
        match self.offset {
            Some(offset) => write!(f, " (at byte {offset})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for GgufError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The message includes the kind's message, so the source is the kind's source.
        self.kind.source()
    }
}

/// Shortens a name to 100 characters and an ellipsis.
pub(super) fn shorten(name: &str) -> String {
    const MAX: usize = 100;
    if name.chars().count() <= MAX {
        return name.to_owned();
    }
    let mut short: String = name.chars().take(MAX).collect();
    short.push('…');
    short
}

impl From<GgufError> for tpc_diag::Diagnostic {
    fn from(e: GgufError) -> tpc_diag::Diagnostic {
        tpc_diag::Diagnostic::new(e.code(), e.file(), e.to_string()).help(e.help())
    }
}
