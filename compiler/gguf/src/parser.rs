//! Parses the header of one file from its bytes.

use super::cursor::{Cursor, Endianness};
use super::error::{GgufError, GgufErrorKind};
use super::header::Header;
use super::lookalike;
use super::metadata::{Entry, Metadata};
use super::strings;
use super::tensor_table;
use super::value::{self, MetaValue};

/// The alignment of a file without `general.alignment`, in bytes.
pub const DEFAULT_ALIGNMENT: u64 = 32;

/// Maximum header length, in bytes; bounds the memory that a hostile file can allocate.
pub const MAX_HEADER_BYTES: usize = 1 << 30;

/// The smallest pair, in bytes: the key's length, one character, a type and a value.
const MIN_PAIR: u64 = 8 + 1 + 4 + 1;

/// Reads and checks the header of one file.
///
/// `bytes` is the content, or a prefix with the header; `file_len` is the file's length in bytes; `name` is for
/// messages. A file that ends at or before its data offset is a bare header; a longer file must hold all its data.
///
/// Takes `O(n log n)` time and `O(n)` memory in the header's length, at most [`MAX_HEADER_BYTES`].
///
/// # Errors
///
/// Returns the first defect, with a code from TPC0101 to TPC0122.
pub fn parse(bytes: &[u8], file_len: u64, name: &str) -> Result<Header, GgufError> {
    parse_limited(bytes, file_len, name, MAX_HEADER_BYTES, DataCheck::Present)
}

/// Parses a file that may hold only some of its data.
///
/// # Errors
///
/// Returns the errors of [`parse`], except for missing data.
pub(super) fn parse_unfinished(
    bytes: &[u8],
    file_len: u64,
    name: &str,
) -> Result<Header, GgufError> {
    parse_limited(bytes, file_len, name, MAX_HEADER_BYTES, DataCheck::Skipped)
}

/// The check of the tensors' data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataCheck {
    /// The file must hold all data or only the header.
    Present,
    /// The file may hold any part of the data.
    Skipped,
}

pub(super) fn parse_limited(
    bytes: &[u8],
    file_len: u64,
    name: &str,
    limit: usize,
    data: DataCheck,
) -> Result<Header, GgufError> {
    let mut cursor = Cursor::new(bytes, file_len, limit, name);
    let version = read_preamble(&mut cursor, bytes)?;

    let offset = cursor.offset();
    let tensor_count = cursor.u64("the tensor count")?;
    let tensor_count =
        cursor.check_count(tensor_count, tensor_table::MIN_INFO, "tensor count", offset)?;
    let offset = cursor.offset();
    let pair_count = cursor.u64("the metadata count")?;
    let pair_count = cursor.check_count(pair_count, MIN_PAIR, "metadata count", offset)?;

    let metadata = read_pairs(&mut cursor, pair_count)?;
    let alignment = read_alignment(&metadata)?;
    let checked = match data {
        DataCheck::Present => file_len,
        DataCheck::Skipped => 0,
    };
    let table = tensor_table::read(&mut cursor, tensor_count, alignment, checked)?;
    Ok(Header {
        version,
        endianness: cursor.endianness,
        alignment,
        data_offset: table.data_offset,
        metadata,
        tensors: table.tensors,
        by_name: table.by_name,
    })
}

/// Reads magic and version. In the wrong byte order, the version's low half is zero.
fn read_preamble(cursor: &mut Cursor<'_>, bytes: &[u8]) -> Result<u32, GgufError> {
    const MAGIC: &[u8; 4] = b"GGUF";
    let found = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.starts_with(found) {
        let kind = GgufErrorKind::NotGguf {
            found: found.to_vec(),
            looks_like: lookalike::describe(bytes),
        };
        return Err(cursor.error_at(0, kind));
    }
    cursor.chunk::<4>("the magic \"GGUF\"")?;
    let offset = cursor.offset();
    let mut version = cursor.u32("the version")?;
    if version != 0 && version & 0xffff == 0 {
        cursor.endianness = Endianness::Big;
        version = version.swap_bytes();
    }
    if !matches!(version, 2 | 3) {
        return Err(cursor.error_at(offset, GgufErrorKind::UnsupportedVersion { found: version }));
    }
    Ok(version)
}

fn read_pairs(cursor: &mut Cursor<'_>, count: usize) -> Result<Metadata, GgufError> {
    let mut entries = Vec::new();
    for _ in 0..count {
        let offset = cursor.offset();
        let key = strings::read_key(cursor)?;
        let value = value::read_value(cursor).map_err(|e| e.in_key(&key))?;
        entries.push(Entry { key, value, offset });
    }
    Metadata::new(cursor.file, entries)
}

fn read_alignment(metadata: &Metadata) -> Result<u64, GgufError> {
    let Some(entry) = metadata.entry("general.alignment") else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    let found = match entry.value {
        MetaValue::U32(a) if a.is_power_of_two() && a >= 8 => return Ok(a.into()),
        MetaValue::U32(a) => a.to_string(),
        ref other => other.describe(),
    };
    Err(
        GgufError::new(&metadata.file, GgufErrorKind::BadAlignment { found })
            .at(entry.offset)
            .in_key(&entry.key),
    )
}
