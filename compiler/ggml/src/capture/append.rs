use tpc_ir::op::{Attr, Cast, InferredTypes, TypeError};
use tpc_ir::{DType, Op, TensorType, Value};

use super::memory::{Memory, dims};
use super::record::Record;

/// The reason why a record becomes an opaque op.
pub(super) enum OpaqueReason {
    Unknown,
    /// An op without a rule, for this reason.
    NoRule(&'static str),
    /// A form of the op that the IR lacks.
    Form(String),
}

impl From<TypeError> for OpaqueReason {
    fn from(e: TypeError) -> OpaqueReason {
        OpaqueReason::Form(e.to_string())
    }
}

pub(super) fn form(what: &str) -> OpaqueReason {
    OpaqueReason::Form(what.to_owned())
}

pub(super) fn to_array<const N: usize>(values: &[Value]) -> Result<[Value; N], OpaqueReason> {
    let other = || OpaqueReason::Form(format!("{} operands, not {N}", values.len()));
    values.try_into().map_err(|_| other())
}

/// Appends an op with one result of the captured sizes.
pub(super) fn push(
    m: &mut Memory<'_>,
    t: &Record,
    op: Op,
    operands: Vec<Value>,
) -> Result<Vec<Value>, OpaqueReason> {
    let unknown = |(_, a): (_, Attr)| matches!(a, Attr::Float(x) if x.is_nan());
    if op.attrs().into_iter().any(unknown) {
        return Err(form("a parameter that is not a number"));
    }
    let v = m.push(op, operands, &t.name)?;
    fits(m, t, v)
}

/// Appends an op with several results, which ggml packs into one tensor.
pub(super) fn push_packed(
    m: &mut Memory<'_>,
    t: &Record,
    op: Op,
    operands: Vec<Value>,
) -> Result<Vec<Value>, OpaqueReason> {
    m.readable(&op, &operands)?;
    let types: Vec<_> = operands.iter().map(|&v| &m.graph.value(v).ty).collect();
    let InferredTypes::Types(types) = op.infer(&types)? else {
        return Err(OpaqueReason::Unknown);
    };
    let elements = |ty: &TensorType| ty.elements().and_then(|d| d.as_const());
    let total: Option<u64> = types.iter().map(elements).sum();
    if types.iter().any(|ty| ty.dtype != t.dtype) {
        return Err(form("results of another element type"));
    }
    if total != Some(t.elements()) {
        return Err(form("the results are not packed"));
    }
    Ok(m.declare(op, operands, types, &t.name))
}

/// Returns the value if it has the captured sizes. Rounds it if ggml's result has fewer bits.
pub(super) fn fits(m: &mut Memory<'_>, t: &Record, v: Value) -> Result<Vec<Value>, OpaqueReason> {
    let found = &m.graph.value(v).ty;
    let same = found.dims == dims(t.ne());
    if same && (found.dtype == t.dtype || t.writes()) {
        return Ok(vec![v]);
    }
    if same && found.dtype == DType::F32 && Cast::TYPES.contains(&t.dtype) {
        return Ok(vec![m.push(Cast { to: t.dtype }, vec![v], &t.name)?]);
    }
    let said = match same {
        true => t.dtype.to_string(),
        false => format!("{:?}", t.ne()),
    };
    let message = format!("the operands make {found}, but the capture has {said}");
    Err(OpaqueReason::Form(message))
}
