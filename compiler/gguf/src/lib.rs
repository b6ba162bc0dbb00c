//! GGUF files: reading, checking and writing.
//!
//! Reads versions 2 and 3 (ggml's `docs/gguf.md`), in either byte order, as one file or shards, with data or as a
//! bare header.
//!
//! Each layer relies on the checks of the layer before:
//!
//! - [`parse`] is a pure function from a file's bytes to its [`Header`]. It checks every count, length, string,
//!   dimension and offset.
//! - [`GgufFile`] maps a model's files, joins the headers of split files, and checks that the declared data are
//!   present. For a remote model, it reads only headers ([`RangeSource`]).
//! - [`Metadata`] has typed getters for key/value pairs.
//!
//! [`GgufWriter`] writes files.
//!
//! Invariants:
//!
//! - No input makes the reader panic or recurse beyond [`MAX_ARRAY_DEPTH`]. Time is quasi-linear, and memory a small
//!   multiple of the header's bytes. The reader never touches tensor data.
//! - Every defect is a [`GgufError`] with a code in [`CODES`], a byte offset if known, and a cure.
//! - This crate is independent of architectures: it interprets only `general.alignment` and `split.*`.

mod codes;
mod cursor;
mod error;
mod file;
mod getters;
mod header;
mod lookalike;
mod metadata;
mod names;
mod parser;
mod range;
mod split;
mod strings;
mod tensor_name;
mod tensor_table;
mod value;
mod writer;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use codes::CODES;
pub use cursor::Endianness;
pub use error::{GgufError, GgufErrorKind, StringDefect, Subject};
pub use file::{GgufFile, MissingData, Shard};
pub use header::{Header, TensorInfo};
pub use metadata::{Entry, Metadata};
pub use parser::{DEFAULT_ALIGNMENT, MAX_HEADER_BYTES, parse};
pub use range::{MAX_ELSEWHERE_BYTES, RangeSource};
pub use split::SplitName;
pub use tensor_name::TensorName;
pub use value::{MAX_ARRAY_DEPTH, MetaArray, MetaValue, StrList, ValueType};
pub use writer::{GgufWriter, Version};
