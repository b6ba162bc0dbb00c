//! The ops of ggml as ops of the IR.

use tpc_ir::op::{Attr, Binary, Glu, Norm, TypeError, Unary};
use tpc_ir::{Op, RANK, Value};

use super::codes;
use super::forms::gated;
use super::known_ops::{How, find};
use super::memory::{Memory, dims};
use super::record::Tensor;

/// Why an op becomes an opaque one.
pub(super) enum Misfit {
    /// No op of ggml is called so.
    Unknown,
    /// It needs its operands whole, for this reason.
    Whole(&'static str),
    /// The IR has it in other forms.
    Form(String),
}

impl From<TypeError> for Misfit {
    fn from(e: TypeError) -> Misfit {
        Misfit::Form(e.to_string())
    }
}

pub(super) fn form(what: &str) -> Misfit {
    Misfit::Form(what.to_owned())
}

const NONE_NEEDED: &str = "the plan is sound without it: what it reads and makes stays whole";

/// Appends what a tensor that is no leaf computes.
pub(super) fn lower(m: &mut Memory<'_>, index: usize) -> Result<(), TypeError> {
    let t = &m.tensors[index];
    if t.is_pure_view() || t.is_empty() {
        // Views are taken when they are read; without elements nothing happens.
        return Ok(());
    }
    let operands: Vec<usize> = t
        .src
        .iter()
        .flatten()
        .copied()
        .filter(|&s| !m.tensors[s].is_empty())
        .collect();
    let op = t.op.as_str();
    if matches!(op, "SET_ROWS" | "CPY") && operands.len() < t.src.len() {
        return Ok(());
    }
    let mut values = Vec::with_capacity(operands.len());
    // What a write goes to is not read.
    let reads = if op == "CPY" && t.writes() {
        &operands[..1.min(operands.len())]
    } else {
        &operands[..]
    };
    for &s in reads {
        values.push(m.read(s)?);
    }
    // What an operand is follows from its position, but among the parts of a concatenation.
    let last = t.src.iter().rposition(Option::is_some);
    let holes = t.op != "CONCAT" && last.is_some_and(|last| operands.len() <= last);
    let made = if holes {
        Err(form("an operand left out, or without elements"))
    } else {
        known(m, t, &operands, &values)
    };
    let made = match made {
        Ok(made) => made,
        Err(misfit) => {
            match misfit {
                Misfit::Unknown => m.warn(
                    codes::UNKNOWN_OP,
                    t,
                    "no op of ggml is known by this name",
                    NONE_NEEDED,
                ),
                Misfit::Whole(why) => m.note(codes::WHOLE_OP, t, why, NONE_NEEDED),
                Misfit::Form(why) => m.note(codes::UNKNOWN_FORM, t, &why, NONE_NEEDED),
            }
            if t.writes() {
                return m.spoil(index, values);
            }
            vec![m.opaque(op, values, t)]
        }
    };
    if t.writes() {
        let written = match made.as_slice() {
            [one] => m.write(index, *one),
            _ => Err(TypeError::Axis(RANK as u64)),
        };
        if written.is_err() {
            let why = "what it writes is no box of the tensor that it writes to";
            m.note(codes::NO_BOX, t, why, NONE_NEEDED);
            return m.spoil(index, made);
        }
        return Ok(());
    }
    match made.as_slice() {
        [one] => m.define(index, *one),
        _ => m.define_parts(index, made),
    }
    Ok(())
}

/// The op with the values it reads, one or more values that it makes; of the sizes that the capture says.
fn known(
    m: &mut Memory<'_>,
    t: &Tensor,
    operands: &[usize],
    values: &[Value],
) -> Result<Vec<Value>, Misfit> {
    let all = values.to_vec();
    let one: Op = match *find(&t.op).ok_or(Misfit::Unknown)? {
        How::Unary(kind) => Unary { kind }.into(),
        How::Binary(kind) => Binary { kind }.into(),
        How::Norm(kind) => Norm {
            kind,
            eps: t.float(0),
        }
        .into(),
        How::Glu(kind) => {
            let mut op = Glu::new(kind);
            if kind.takes_alpha() {
                op.alpha = t.float(2);
            }
            if kind.takes_limit() {
                op.limit = t.float(3);
            }
            return gated(m, t, op, all);
        }
        How::Op(op) => op(t)?,
        How::Several(op) => return several(m, t, op(t)?, all),
        How::Built(build) => return build(m, t, operands, values),
        How::Whole(why) => return Err(Misfit::Whole(why)),
        // Leaves and views come to no op; a family is named by its members.
        How::Memory | How::Family => {
            return Err(form("a record that does not say what is computed"));
        }
    };
    push(m, t, one, all)
}

/// Appends an op with one result of the sizes that the capture says.
pub(super) fn push(
    m: &mut Memory<'_>,
    t: &Tensor,
    op: Op,
    operands: Vec<Value>,
) -> Result<Vec<Value>, Misfit> {
    let unknown = |(_, a): (_, Attr)| matches!(a, Attr::Float(x) if x.is_nan());
    if op.attrs().into_iter().any(unknown) {
        return Err(form("a parameter that is no number"));
    }
    let v = m.push(op, operands, &t.name)?;
    fits(m, t, v)
}

/// The value, when it has the sizes that the capture says.
pub(super) fn fits(m: &Memory<'_>, t: &Tensor, v: Value) -> Result<Vec<Value>, Misfit> {
    let found = &m.graph.value(v).ty;
    if found.dims == dims(t.ne()) {
        Ok(vec![v])
    } else {
        Err(Misfit::Form(format!(
            "the op makes {found} of its operands, the capture says {:?}",
            t.ne()
        )))
    }
}

/// An op with several results, which ggml packs into one tensor one after another.
fn several(
    m: &mut Memory<'_>,
    t: &Tensor,
    op: Op,
    operands: Vec<Value>,
) -> Result<Vec<Value>, Misfit> {
    // The first parameter is the number of states that are kept, 0 for one.
    if !matches!(t.int(0), 0 | 1) {
        return Err(form("states after several tokens"));
    }
    m.readable(&op, &operands)?;
    let types: Vec<_> = operands.iter().map(|&v| &m.graph.value(v).ty).collect();
    let tpc_ir::op::Inferred::Types(types) = op.infer(&types)? else {
        return Err(Misfit::Unknown);
    };
    let elements = |ty: &tpc_ir::TensorType| ty.elements().and_then(|d| d.as_const());
    let total: Option<u64> = types.iter().map(elements).sum();
    if total != Some(t.elements()) {
        return Err(form("the results are not packed one after another"));
    }
    Ok(m.declare(op, operands, types, &t.name))
}
