//! Keys and tensor names: bounded UTF-8 strings.

use super::cursor::Cursor;
use super::error::{GgufError, GgufErrorKind, StringDefect};

/// Longest key, in bytes (GGUF specification: 2^16-1).
const MAX_KEY: u64 = 65_535;

/// Longest tensor name, in bytes (GGUF specification).
const MAX_TENSOR_NAME: u64 = 64;

pub(super) fn read_key(cursor: &mut Cursor<'_>) -> Result<String, GgufError> {
    read(cursor, MAX_KEY, "a metadata key", |defect| {
        GgufErrorKind::BadKey { defect }
    })
}

pub(super) fn read_tensor_name(cursor: &mut Cursor<'_>) -> Result<String, GgufError> {
    read(cursor, MAX_TENSOR_NAME, "a tensor name", |defect| {
        GgufErrorKind::BadTensorName { defect }
    })
}

fn read(
    cursor: &mut Cursor<'_>,
    max: u64,
    reading: &'static str,
    bad: impl Fn(StringDefect) -> GgufErrorKind,
) -> Result<String, GgufError> {
    let offset = cursor.offset();
    let length = cursor.u64(reading)?;
    if length == 0 {
        return Err(cursor.error_at(offset, bad(StringDefect::Empty)));
    }
    if length > max {
        return Err(cursor.error_at(offset, bad(StringDefect::TooLong { length, max })));
    }
    let start = cursor.offset();
    let bytes = cursor.take(length, reading)?;
    match std::str::from_utf8(bytes) {
        Ok(name) => Ok(name.to_owned()),
        Err(e) => {
            let at = e.valid_up_to() as u64;
            Err(cursor.error_at(start + at, bad(StringDefect::NotUtf8 { at })))
        }
    }
}
