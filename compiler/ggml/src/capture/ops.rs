//! The ops of a capture as ops of the IR, one record after another.

use tpc_ir::op::TypeError;
use tpc_ir::{RANK, Value};

use super::append::{OpaqueReason, form, push, push_packed};
use super::codes;
use super::lowering::{OpLowering, Operands, lowering};
use super::memory::Memory;
use super::record::Record;
use crate::op::OpKind;

const NONE_NEEDED: &str = "the plan is sound without it: operands and result stay whole";

/// Appends the ops of a record that is not a leaf.
pub(super) fn lower(m: &mut Memory<'_>, index: usize) -> Result<(), TypeError> {
    let t = &m.tensors[index];
    if t.is_pure_view() || t.is_empty() {
        // A view is appended when it is read; an op without elements computes nothing.
        return Ok(());
    }
    let operands: Vec<usize> = t
        .src
        .iter()
        .flatten()
        .copied()
        .filter(|&s| !m.tensors[s].is_empty())
        .collect();
    if (t.is(OpKind::SetRows) || t.is(OpKind::Cpy)) && operands.len() < t.src.len() {
        return Ok(());
    }
    let mut values = Vec::with_capacity(operands.len());
    // The destination of a copy is not read.
    let reads = if t.is(OpKind::Cpy) && t.writes() {
        &operands[..1.min(operands.len())]
    } else {
        &operands[..]
    };
    for &s in reads {
        values.push(m.read(s)?);
    }
    // The role of an operand follows from its position, except for the parts of a concatenation.
    let last = t.src.iter().rposition(Option::is_some);
    let holes = !t.is(OpKind::Concat) && last.is_some_and(|last| operands.len() <= last);
    let made = if holes {
        Err(form("an operand is left out or has no elements"))
    } else {
        let operands = Operands {
            records: &operands,
            values: &values,
        };
        computed(m, t, operands)
    };
    let made = match made {
        Ok(made) => made,
        Err(reason) => {
            note(m, t, &reason);
            if t.writes() {
                return m.clobber(index, values);
            }
            vec![m.opaque(t.op.name(), values, t)]
        }
    };
    if t.writes() {
        let written = match made.as_slice() {
            [one] => m.write(index, *one),
            _ => Err(TypeError::Axis(RANK as u64)),
        };
        if written.is_err() {
            let why = "it writes to elements that are not a box of the tensor";
            m.note(&codes::NO_BOX, t, why, NONE_NEEDED);
            return m.clobber(index, made);
        }
        return Ok(());
    }
    match made.as_slice() {
        [one] => m.define(index, *one),
        _ => m.define_parts(index, made),
    }
    Ok(())
}

/// Appends what the record computes. The values are its result, or the results that it packs.
fn computed(
    m: &mut Memory<'_>,
    t: &Record,
    operands: Operands<'_>,
) -> Result<Vec<Value>, OpaqueReason> {
    match lowering(t)? {
        OpLowering::Direct(op) => push(m, t, op, operands.values.to_vec()),
        OpLowering::Packed(op) => push_packed(m, t, op, operands.values.to_vec()),
        OpLowering::Custom(build) => build(m, t, operands),
        OpLowering::Opaque(why) => Err(OpaqueReason::NoRule(why)),
        // Leaves and pure views are not lowered.
        OpLowering::Memory => Err(form("a record that does not say what is computed")),
    }
}

/// Adds the note that a record becomes an opaque op.
fn note(m: &mut Memory<'_>, t: &Record, reason: &OpaqueReason) {
    match reason {
        OpaqueReason::Unknown => m.note(
            &codes::UNKNOWN_OP,
            t,
            "ggml has no op of this name",
            NONE_NEEDED,
        ),
        OpaqueReason::NoRule(why) => m.note(&codes::WHOLE_OP, t, why, NONE_NEEDED),
        OpaqueReason::Form(why) => m.note(&codes::UNKNOWN_FORM, t, why, NONE_NEEDED),
    }
}
