use tpc_ir::op::TypeError;
use tpc_ir::{RANK, Value};

use super::append::{OpaqueReason, form, push, push_packed};
use super::codes;
use super::lowering::{OpLowering, lowering};
use super::memory::Memory;
use super::operands::Operands;
use super::record::Record;
use super::trace::{RecordResult, Trace};
use crate::op::OpKind;

const NONE_NEEDED: &str = "no action needed: operands and result stay whole";

pub(super) fn lower(m: &mut Memory<'_>, index: usize) -> Result<(), TypeError> {
    let t = &m.tensors[index];
    if t.is_pure_view() || t.is_empty() {
        // A read appends a view. An op without elements computes nothing.
        return Ok(());
    }
    let is_there = |s: &usize| !m.tensors[*s].is_empty();
    let rows_or_copy = t.is(OpKind::SetRows) || t.is(OpKind::Cpy);
    if t.writes() && rows_or_copy && !t.src.iter().flatten().all(is_there) {
        return Ok(());
    }
    // A copy does not read its destination.
    let elsewhere = wrong_destination(m, t);
    let is_copy = t.is(OpKind::Cpy) && t.writes() && elsewhere.is_none();
    let is_read = |position: usize| position == 0 || !is_copy;
    let mut operands = Vec::with_capacity(t.src.len());
    let mut reads = Vec::with_capacity(t.src.len());
    for (position, &source) in t.src.iter().enumerate() {
        if let Some(s) = source.filter(|s| !m.tensors[*s].is_empty()) {
            operands.push(s);
            if is_read(position) {
                reads.push((position, m.read(s)?));
            }
        }
    }
    let values: Vec<Value> = reads.iter().map(|(_, v)| *v).collect();
    // The operand's position determines its role, except in a concatenation; masks may be absent.
    let last = t.src.iter().rposition(Option::is_some);
    let roles = [OpKind::Concat, OpKind::SoftMax, OpKind::FlashAttnExt];
    let holes = !roles.iter().any(|&k| t.is(k)) && last.is_some_and(|last| operands.len() <= last);
    let made = if holes {
        Err(form("an operand is absent or empty"))
    } else if let Some(elsewhere) = elsewhere {
        Err(form(elsewhere))
    } else {
        let operands = Operands {
            records: &operands,
            values: &values,
        };
        compute(m, t, operands)
    };
    let made = remember(m, index, made, &reads)?;
    m.traces.push(Trace {
        record: index,
        reads,
        made,
    });
    m.traces.append(&mut m.later);
    Ok(())
}

/// Returns the reason if a copy does not write to its destination.
fn wrong_destination(m: &Memory<'_>, t: &Record) -> Option<&'static str> {
    let to = &m.tensors[(*t.src.get(1)?)?];
    let same = to.layout == t.layout && to.root == t.root && to.dtype == t.dtype;
    (t.is(OpKind::Cpy) && !same).then_some("a result other than its destination")
}

/// Stores the lowered values, or an opaque op's result, in the record's memory.
fn remember(
    m: &mut Memory<'_>,
    index: usize,
    made: Result<Vec<Value>, OpaqueReason>,
    reads: &[(usize, Value)],
) -> Result<RecordResult, TypeError> {
    let t = &m.tensors[index];
    let made = match made {
        Ok(made) => made,
        Err(reason) => {
            note(m, t, &reason);
            if t.writes() {
                return m.clobber(index, reads);
            }
            vec![m.opaque(t.op.name(), reads, t)]
        }
    };
    if t.writes() {
        let written = match made.as_slice() {
            [one] => m.write(index, *one),
            _ => Err(TypeError::Axis(RANK as u64)),
        };
        return written.or_else(|_| {
            let why = "the op writes to elements that are not one range per factor of the tensor";
            m.note(&codes::NO_BOX, t, why, NONE_NEEDED);
            m.clobber(index, reads)
        });
    }
    Ok(match made.as_slice() {
        [one] => {
            m.define(index, *one);
            RecordResult::Value(*one)
        }
        _ => {
            m.define_parts(index, made.clone());
            RecordResult::Parts(made)
        }
    })
}

fn compute(
    m: &mut Memory<'_>,
    t: &Record,
    operands: Operands<'_>,
) -> Result<Vec<Value>, OpaqueReason> {
    match lowering(t)? {
        OpLowering::Direct(op) => push(m, t, op, operands.values.to_vec()),
        OpLowering::Packed(op) => push_packed(m, t, op, operands.values.to_vec()),
        OpLowering::Custom(build) => build(m, t, operands),
    }
}

fn note(m: &mut Memory<'_>, t: &Record, reason: &OpaqueReason) {
    match reason {
        OpaqueReason::Unknown => m.note(&codes::UNKNOWN_OP, t, "unknown op", NONE_NEEDED),
        OpaqueReason::NoRule(why) => m.note(&codes::WHOLE_OP, t, why, NONE_NEEDED),
        OpaqueReason::Form(why) => m.note(&codes::UNKNOWN_FORM, t, why, NONE_NEEDED),
    }
}
