//! A GGUF file's content as JSON. Keys may be added, never changed.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Selection, order};
use tpc_gguf::{GgufFile, MetaArray, MetaValue};

#[derive(Debug, Serialize)]
pub(super) struct Report<'f> {
    tpc: u32,
    version: u32,
    byte_order: &'static str,
    alignment: u64,
    data_offset: u64,
    has_data: bool,
    n_params: u64,
    bytes: u64,
    files: Vec<FileReport>,
    missing: Vec<MissingReport<'f>>,
    metadata: Map<String, Value>,
    tensors: Vec<TensorReport<'f>>,
}

#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    /// The file size; `None` if the server does not report it.
    bytes: Option<u64>,
    data_offset: u64,
}

#[derive(Debug, Serialize)]
struct MissingReport<'f> {
    path: String,
    tensors: usize,
    first: &'f str,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct TensorReport<'f> {
    name: &'f str,
    #[serde(rename = "type")]
    dtype: &'static str,
    ne: [u64; 4],
    n_dims: usize,
    /// The file's index in `files`.
    file: usize,
    /// The offset from the file's start, in bytes.
    offset: u64,
    bytes: u64,
}

impl<'f> Report<'f> {
    pub(super) fn new(file: &'f GgufFile, selection: &Selection<'f>) -> Report<'f> {
        let header = selection.header;
        let files = file.shards().iter().map(|s| FileReport {
            path: s.path().display().to_string(),
            bytes: Some(s.file_len()).filter(|&n| n < u64::MAX),
            data_offset: s.data_offset(),
        });
        let missing = file.missing().iter().map(|m| MissingReport {
            path: m.path.display().to_string(),
            tensors: m.tensors,
            first: &m.first,
            bytes: m.bytes,
        });
        let tensors = selection.tensors.iter().map(|t| TensorReport {
            name: &t.name,
            dtype: t.dtype.name(),
            ne: t.ne,
            n_dims: t.n_dims,
            file: t.shard,
            offset: t.offset,
            bytes: t.bytes,
        });
        let entries = selection.entries.iter();
        Report {
            tpc: 1,
            version: header.version,
            byte_order: order(file.endianness()),
            alignment: header.alignment,
            data_offset: header.data_offset,
            has_data: file.has_data(),
            n_params: selection.tensors.iter().map(|t| t.elements()).sum(),
            bytes: selection
                .tensors
                .iter()
                .fold(0, |sum, t| sum.saturating_add(t.bytes)),
            files: files.collect(),
            missing: missing.collect(),
            metadata: entries.map(|e| (e.key.clone(), value(&e.value))).collect(),
            tensors: tensors.collect(),
        }
    }
}

/// Returns a number, or text if JSON cannot represent the number.
fn float(x: f64) -> Value {
    serde_json::Number::from_f64(x).map_or_else(|| Value::String(x.to_string()), Value::Number)
}

fn value(v: &MetaValue) -> Value {
    match v {
        MetaValue::U8(x) => (*x).into(),
        MetaValue::I8(x) => (*x).into(),
        MetaValue::U16(x) => (*x).into(),
        MetaValue::I16(x) => (*x).into(),
        MetaValue::U32(x) => (*x).into(),
        MetaValue::I32(x) => (*x).into(),
        MetaValue::U64(x) => (*x).into(),
        MetaValue::I64(x) => (*x).into(),
        MetaValue::F32(x) => float((*x).into()),
        MetaValue::F64(x) => float(*x),
        MetaValue::Bool(x) => (*x).into(),
        MetaValue::Str(x) => x.as_str().into(),
        MetaValue::Array(a) => array(a),
    }
}

fn array(a: &MetaArray) -> Value {
    fn list<T: Copy>(all: &[T], one: impl Fn(T) -> Value) -> Value {
        Value::Array(all.iter().map(|&x| one(x)).collect())
    }
    match a {
        MetaArray::U8(v) => list(v, Value::from),
        MetaArray::I8(v) => list(v, Value::from),
        MetaArray::U16(v) => list(v, Value::from),
        MetaArray::I16(v) => list(v, Value::from),
        MetaArray::U32(v) => list(v, Value::from),
        MetaArray::I32(v) => list(v, Value::from),
        MetaArray::U64(v) => list(v, Value::from),
        MetaArray::I64(v) => list(v, Value::from),
        MetaArray::F32(v) => list(v, |x| float(x.into())),
        MetaArray::F64(v) => list(v, float),
        MetaArray::Bool(v) => list(v, Value::from),
        MetaArray::Str(v) => Value::Array(v.iter().map(Value::from).collect()),
        MetaArray::Array(v) => Value::Array(v.iter().map(array).collect()),
    }
}
