//! The tensor infos of a header, and checks of their layout.

use tpc_ir::DType;

use super::cursor::Cursor;
use super::error::{GgufError, GgufErrorKind, shorten};
use super::header::TensorInfo;
use super::names::NameIndex;
use super::strings;

/// The smallest tensor info, in bytes: name length, one character, dimension count, one dimension, type, offset.
pub(super) const MIN_INFO: u64 = 8 + 1 + 4 + 8 + 4 + 8;

/// Maximum element count, byte count or file offset: ggml's sizes are signed 64-bit integers.
const MAX_SIZE: u64 = i64::MAX as u64;

pub(super) struct TensorTable {
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) by_name: NameIndex,
    /// Bytes from the file's start to the data section.
    pub(super) data_offset: u64,
}

/// A tensor info, and the offsets of its parts for messages.
struct InfoRecord {
    info: TensorInfo,
    start: u64,
    offset_at: u64,
}

impl InfoRecord {
    fn error(&self, file: &str, at: u64, kind: GgufErrorKind) -> GgufError {
        GgufError::new(file, kind).at(at).in_tensor(&self.info.name)
    }
}

/// Reads and checks `count` tensor infos of a file of `file_len` bytes.
///
/// # Errors
///
/// Returns the first defect: in a single info, then a repeated name, then in the data's layout.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    count: usize,
    alignment: u64,
    file_len: u64,
) -> Result<TensorTable, GgufError> {
    let mut records = Vec::new();
    for _ in 0..count {
        records.push(read_info(cursor)?);
    }
    let file = cursor.file;
    let by_name = NameIndex::build(&records, |r| &r.info.name).map_err(|duplicate| {
        let first = format!("at byte {}", records[duplicate.first].start);
        let second = &records[duplicate.second];
        second.error(file, second.start, GgufErrorKind::DuplicateTensor { first })
    })?;
    let data_offset = cursor.offset().next_multiple_of(alignment);
    for r in &mut records {
        place(r, file, alignment, data_offset)?;
    }
    check_overlap(&records, file)?;
    if file_len > data_offset {
        check_present(&records, file, file_len)?;
    }
    Ok(TensorTable {
        tensors: records.into_iter().map(|r| r.info).collect(),
        by_name,
        data_offset,
    })
}

fn read_info(cursor: &mut Cursor<'_>) -> Result<InfoRecord, GgufError> {
    let start = cursor.offset();
    let name = strings::read_tensor_name(cursor)?;
    read_named_info(cursor, start, &name).map_err(|e| e.in_tensor(&name))
}

fn read_named_info(
    cursor: &mut Cursor<'_>,
    start: u64,
    name: &str,
) -> Result<InfoRecord, GgufError> {
    let dims_at = cursor.offset() + size_of::<u32>() as u64;
    let (ne, n_dims) = read_dims(cursor)?;
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
    let bytes = data_bytes(dtype, &ne).ok_or_else(|| {
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
    Ok(InfoRecord {
        info,
        start,
        offset_at,
    })
}

fn read_dims(cursor: &mut Cursor<'_>) -> Result<([u64; 4], usize), GgufError> {
    let at = cursor.offset();
    let found = cursor.u32("a tensor's dimension count")?;
    let n_dims = match usize::try_from(found) {
        Ok(n @ 1..=4) => n,
        _ => return Err(cursor.error_at(at, GgufErrorKind::BadDimCount { found })),
    };
    let mut ne = [1; 4];
    for (axis, n) in ne[..n_dims].iter_mut().enumerate() {
        let at = cursor.offset();
        *n = cursor.u64("a tensor's dimension")?;
        if *n == 0 {
            return Err(cursor.error_at(at, GgufErrorKind::ZeroDim { axis }));
        }
    }
    Ok((ne, n_dims))
}

/// Returns a tensor's bytes; `None` if elements or bytes reach 2^63.
fn data_bytes(dtype: DType, ne: &[u64; 4]) -> Option<u64> {
    let elements = ne.iter().try_fold(1u64, |product, &n| {
        product.checked_mul(n).filter(|&p| p <= MAX_SIZE)
    })?;
    dtype.bytes(elements)?;
    dtype.tensor_bytes(ne).filter(|&bytes| bytes <= MAX_SIZE)
}

fn place(
    r: &mut InfoRecord,
    file: &str,
    alignment: u64,
    data_offset: u64,
) -> Result<(), GgufError> {
    let found = r.info.offset;
    if !found.is_multiple_of(alignment) {
        return Err(r.error(
            file,
            r.offset_at,
            GgufErrorKind::MisalignedOffset { found, alignment },
        ));
    }
    let bytes = r.info.bytes;
    let absolute = data_offset
        .checked_add(found)
        .filter(|o| o.checked_add(bytes).is_some_and(|end| end <= MAX_SIZE));
    match absolute {
        Some(offset) => {
            r.info.offset = offset;
            Ok(())
        }
        None => Err(r.error(
            file,
            r.offset_at,
            GgufErrorKind::OffsetOverflow { found, bytes },
        )),
    }
}

/// Checks that tensors do not overlap. Tensors are not empty, so comparing neighbours suffices.
fn check_overlap(records: &[InfoRecord], file: &str) -> Result<(), GgufError> {
    let mut order: Vec<&InfoRecord> = records.iter().collect();
    order.sort_by_key(|r| r.info.offset);
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

fn check_present(records: &[InfoRecord], file: &str, file_len: u64) -> Result<(), GgufError> {
    match records.iter().find(|r| r.info.end() > file_len) {
        Some(r) => {
            let kind = GgufErrorKind::TruncatedData {
                end: r.info.end(),
                file_len,
            };
            Err(r.error(file, r.offset_at, kind))
        }
        None => Ok(()),
    }
}
