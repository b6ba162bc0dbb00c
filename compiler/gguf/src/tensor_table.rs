//! The tensor infos of a header and the checks on their layout.

use tpc_ir::DType;

use super::cursor::Cursor;
use super::error::{GgufError, GgufErrorKind, shorten};
use super::header::TensorInfo;
use super::names::NameIndex;
use super::parser;

/// Fewest bytes of a tensor info: a name's length and one character, dimension count, one dimension, type, offset.
pub(super) const MIN_INFO: u64 = 8 + 1 + 4 + 8 + 4 + 8;

/// Longest tensor name, in bytes (GGUF specification).
const MAX_NAME: u64 = 64;

/// The largest element count, byte count or file offset, as ggml's signed 64-bit sizes have it.
const MAX_SIZE: u64 = i64::MAX as u64;

/// The tensors of one file, checked.
pub(super) struct TensorTable {
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) by_name: NameIndex,
    /// Bytes from the file's start to the data section.
    pub(super) data_offset: u64,
}

/// A tensor info and where in the header its parts stand, for messages.
struct Located {
    info: TensorInfo,
    start: u64,
    offset_at: u64,
}

impl Located {
    fn error(&self, file: &str, at: u64, kind: GgufErrorKind) -> GgufError {
        GgufError::new(file, kind).at(at).in_tensor(&self.info.name)
    }
}

/// Reads `count` tensor infos and checks each, and all together, against a file of `file_len` bytes.
///
/// # Errors
///
/// The first defect found: in one info, then a repeated name, then in the layout of the data.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    count: usize,
    alignment: u64,
    file_len: u64,
) -> Result<TensorTable, GgufError> {
    let mut located = Vec::new();
    for _ in 0..count {
        located.push(read_info(cursor)?);
    }
    let file = cursor.file;
    let by_name = NameIndex::build(&located, |l| &l.info.name).map_err(|twice| {
        let first = format!("at byte {}", located[twice.first].start);
        let second = &located[twice.second];
        second.error(file, second.start, GgufErrorKind::DuplicateTensor { first })
    })?;
    let data_offset = cursor.offset().next_multiple_of(alignment);
    for l in &mut located {
        place(l, file, alignment, data_offset)?;
    }
    check_overlap(&located, file)?;
    if file_len > data_offset {
        check_present(&located, file, file_len)?;
    }
    Ok(TensorTable {
        tensors: located.into_iter().map(|l| l.info).collect(),
        by_name,
        data_offset,
    })
}

/// Reads one tensor info; its `offset` is still relative to the data section.
fn read_info(cursor: &mut Cursor<'_>) -> Result<Located, GgufError> {
    let start = cursor.offset();
    let name = parser::read_name(cursor, MAX_NAME, "a tensor name", |defect| {
        GgufErrorKind::BadTensorName { defect }
    })?;
    read_named_info(cursor, start, &name).map_err(|e| e.in_tensor(&name))
}

fn read_named_info(cursor: &mut Cursor<'_>, start: u64, name: &str) -> Result<Located, GgufError> {
    let at = cursor.offset();
    let found = cursor.u32("a tensor's dimension count")?;
    let n_dims = match usize::try_from(found) {
        Ok(n @ 1..=4) => n,
        _ => return Err(cursor.error_at(at, GgufErrorKind::BadDimCount { found })),
    };
    let dims_at = cursor.offset();
    let mut ne = [1; 4];
    for (axis, n) in ne[..n_dims].iter_mut().enumerate() {
        let at = cursor.offset();
        *n = cursor.u64("a tensor's dimension")?;
        if *n == 0 {
            return Err(cursor.error_at(at, GgufErrorKind::ZeroDim { axis }));
        }
    }
    let at = cursor.offset();
    let found = cursor.u32("a tensor's type")?;
    let dtype = DType::from_gguf_id(found)
        .ok_or_else(|| cursor.error_at(at, GgufErrorKind::UnknownTensorType { found }))?;
    let block = dtype.block_len();
    if !ne[0].is_multiple_of(block) {
        return Err(cursor.error_at(
            dims_at,
            GgufErrorKind::PartialBlock {
                dtype,
                block,
                found: ne[0],
            },
        ));
    }
    let bytes = ne
        .iter()
        .try_fold(1u64, |product, &n| {
            product.checked_mul(n).filter(|&p| p <= MAX_SIZE)
        })
        .and_then(|elements| dtype.bytes(elements))
        .filter(|&bytes| bytes <= MAX_SIZE)
        .ok_or_else(|| {
            cursor.error_at(
                dims_at,
                GgufErrorKind::DimOverflow {
                    ne: ne[..n_dims].to_vec(),
                },
            )
        })?;
    let offset_at = cursor.offset();
    let offset = cursor.u64("a tensor's data offset")?;
    let info = TensorInfo {
        name: name.to_owned(),
        dtype,
        ne,
        n_dims,
        shard: 0,
        offset,
        bytes,
    };
    Ok(Located {
        info,
        start,
        offset_at,
    })
}

/// Checks a tensor's offset and makes it absolute.
fn place(l: &mut Located, file: &str, alignment: u64, data_offset: u64) -> Result<(), GgufError> {
    let found = l.info.offset;
    if !found.is_multiple_of(alignment) {
        return Err(l.error(
            file,
            l.offset_at,
            GgufErrorKind::MisalignedOffset { found, alignment },
        ));
    }
    let bytes = l.info.bytes;
    let absolute = data_offset
        .checked_add(found)
        .filter(|o| o.checked_add(bytes).is_some_and(|end| end <= MAX_SIZE));
    match absolute {
        Some(offset) => {
            l.info.offset = offset;
            Ok(())
        }
        None => Err(l.error(
            file,
            l.offset_at,
            GgufErrorKind::OffsetOverflow { found, bytes },
        )),
    }
}

/// Checks that no two tensors share a byte. No tensor is empty, so it suffices to compare neighbours.
fn check_overlap(located: &[Located], file: &str) -> Result<(), GgufError> {
    let mut order: Vec<&Located> = located.iter().collect();
    order.sort_by_key(|l| l.info.offset);
    for pair in order.windows(2) {
        let (a, b) = (&pair[0].info, &pair[1].info);
        if b.offset < a.end() {
            let kind = GgufErrorKind::TensorOverlap {
                other: shorten(&a.name),
                start: b.offset,
                end: a.end(),
            };
            return Err(pair[1].error(file, pair[1].offset_at, kind));
        }
    }
    Ok(())
}

fn check_present(located: &[Located], file: &str, file_len: u64) -> Result<(), GgufError> {
    match located.iter().find(|l| l.info.end() > file_len) {
        Some(l) => {
            let kind = GgufErrorKind::TruncatedData {
                end: l.info.end(),
                file_len,
            };
            Err(l.error(file, l.offset_at, kind))
        }
        None => Ok(()),
    }
}
