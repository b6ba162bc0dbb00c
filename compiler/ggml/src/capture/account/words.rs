//! Checks that the graph represents every word of a record.

use std::collections::BTreeSet;

use tpc_ir::op::Attr;
use tpc_ir::{Graph, Inst, Op, Value};

use super::LostPart;
use crate::capture::memory::opaque;
use crate::capture::record::Record;
use crate::op::{Family, OpKind, WordUse};

pub(super) fn check(
    t: &Record,
    records: &[Record],
    graph: &Graph,
    insts: &BTreeSet<Inst>,
    reads: &[(usize, Value)],
) -> Result<(), LostPart> {
    if t.words.iter().all(|&w| w == 0) {
        return Ok(());
    }
    let ops = || insts.iter().map(|&i| &graph.inst(i).op);
    let kept = ops().any(|op| match op {
        Op::Opaque(op) => *op == opaque(t, records, reads),
        _ => false,
    });
    if kept {
        return Ok(());
    }
    let mut numbers = Vec::new();
    for op in ops() {
        for (_, attr) in op.attrs() {
            collect(&attr, &mut numbers);
        }
    }
    for (i, &word) in t.words.iter().enumerate() {
        let read = t.op.word_use(i) == WordUse::Read;
        if word != 0 && read && !elsewhere(t, records, i, word) && !numbers.contains(&word) {
            return Err(format!("op_params[{i}], {word}"));
        }
    }
    Ok(())
}

/// Collects the words that an attribute may represent.
fn collect(attr: &Attr, out: &mut Vec<i32>) {
    match attr {
        Attr::Dim(d) => out.extend(d.as_const().and_then(|n| i32::try_from(n).ok())),
        Attr::Negative(n) => out.extend(i32::try_from(*n)),
        Attr::Float(x) => out.extend([x.to_bits().cast_signed(), (-x).to_bits().cast_signed()]),
        Attr::List(all) => all.iter().for_each(|a| collect(a, out)),
        Attr::Interval(_) | Attr::Word(_) | Attr::Str(_) => {}
    }
}

/// True if the graph represents the word as a kind, an operand order, a memory location, or a length that is also in
/// a size.
fn elsewhere(t: &Record, records: &[Record], index: usize, word: i32) -> bool {
    let Some(kind) = t.op.kind() else {
        return false;
    };
    match (kind, index) {
        _ if kind.family() == Family::Gated && index == 1 => true,
        (OpKind::Rope | OpKind::RopeBack, 2)
        | (OpKind::Argsort | OpKind::Tri | OpKind::Pool2d, 0) => true,
        (OpKind::SsmScan | OpKind::GatedDeltaNet, 0) => word == 1,
        (OpKind::Acc | OpKind::Set | OpKind::Roll, _) => true,
        // The length of the range determines the bound.
        (OpKind::Arange, 1) => true,
        // A factor of 1 has no effect, and gates are a separate sigmoid.
        (OpKind::Dsv4HcPre, 0) => word == 1.0_f32.to_bits().cast_signed(),
        (OpKind::Dsv4HcPre, 1) => true,
        // A single group has no effect, and empty parts are not concatenated.
        (OpKind::GroupNorm, 0) => word == 1,
        (OpKind::Concat, 0) => {
            let parts = t.src.iter().flatten().map(|&s| &records[s]);
            parts.filter(|s| !s.is_empty()).count() <= 1
        }
        _ => false,
    }
}
