//! A model's content as JSON. Keys may be added, never changed.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Selection, order};
use tpc_diag::FormatVersion;
use tpc_gguf::{GgufFile, MetaArray, MetaValue};

/// The output of `tpc inspect` as JSON.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Output<'a> {
    /// A model file.
    Model(Report<'a>),
    /// An artefact.
    #[expect(
        dead_code,
        reason = "only the schema needs it; the report of an artefact is printed alone"
    )]
    Artefact(super::artefact::Report<'a>),
}

/// The content of a model file.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ModelContent")]
pub(crate) struct Report<'f> {
    /// Format version.
    tpc: FormatVersion,
    /// The version of GGUF.
    version: u32,
    /// The byte order.
    #[schemars(extend("enum" = ["little-endian", "big-endian"]))]
    byte_order: &'static str,
    /// The alignment of tensor data, in bytes.
    alignment: u64,
    /// The offset of the first file's tensor data, in bytes.
    data_offset: u64,
    /// False if the file ends after the header.
    has_data: bool,
    /// The elements of the listed tensors.
    n_params: u64,
    /// The bytes of the listed tensors.
    bytes: u64,
    /// The files of the model.
    files: Vec<FileReport>,
    /// Missing files of the model.
    missing: Vec<MissingReport<'f>>,
    /// The metadata by key. Numbers that JSON cannot represent are text.
    metadata: Map<String, Value>,
    /// The tensors.
    tensors: Vec<TensorReport<'f>>,
}

/// A file of a model.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ModelFile")]
struct FileReport {
    /// The path.
    path: String,
    /// The file size; `None` if the server does not report it.
    bytes: Option<u64>,
    /// The offset of tensor data, in bytes.
    data_offset: u64,
}

/// A missing file.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MissingFile")]
struct MissingReport<'f> {
    /// The expected path.
    path: String,
    /// The number of tensors.
    tensors: usize,
    /// The first tensor.
    first: &'f str,
    /// The bytes of the tensors.
    bytes: u64,
}

/// A tensor of a model file.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FileTensor")]
struct TensorReport<'f> {
    /// The name.
    name: &'f str,
    /// The element type.
    #[serde(rename = "type")]
    dtype: &'static str,
    /// Sizes, axis 0 first.
    ne: [u64; 4],
    /// The number of axes in the file.
    n_dims: usize,
    /// The file's index in `files`.
    file: usize,
    /// The offset from the file's start, in bytes.
    offset: u64,
    /// The size, in bytes.
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
            tpc: FormatVersion,
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
