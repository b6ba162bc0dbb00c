//! Simplifies one instruction, given the definitions of its operands.

use tpc_ir::op::{Concat, Slice};
use tpc_ir::{Dim, Graph, Op, Value};

pub(super) enum Simplification {
    Value(Value),
    Op(Op, Vec<Value>),
}

pub(super) fn simplify(graph: &Graph, op: &Op, operands: Vec<Value>) -> Simplification {
    let mut now = (op.clone(), operands);
    // Each step replaces an operand by an earlier value, so the loop ends.
    loop {
        match step(graph, &now.0, &now.1) {
            Some(Simplification::Op(op, operands)) => now = (op, operands),
            Some(value) => return value,
            None => return Simplification::Op(now.0, now.1),
        }
    }
}

pub(super) fn has_simpler_form(graph: &Graph, op: &Op, operands: &[Value]) -> bool {
    step(graph, op, operands).is_some()
}

fn step(graph: &Graph, op: &Op, operands: &[Value]) -> Option<Simplification> {
    let &x = operands.first()?;
    match op {
        Op::Slice(s) => slice(graph, s, x),
        Op::Concat(c) => concat(graph, c, operands),
        _ => None,
    }
}

fn definition(graph: &Graph, v: Value) -> (&Op, &[Value]) {
    let data = graph.inst(graph.value(v).def.0);
    (&data.op, &data.operands)
}

fn slice(graph: &Graph, s: &Slice, x: Value) -> Option<Simplification> {
    let axis = usize::try_from(s.axis).ok()?;
    let len_of = |v: Value| graph.value(v).ty.dims.get(axis);
    if s.start.is_zero() && Some(&s.len) == len_of(x) {
        return Some(Simplification::Value(x));
    }
    let within = |v: Value, start: Dim| {
        let s = Slice {
            axis: s.axis,
            start,
            len: s.len.clone(),
        };
        Simplification::Op(s.into(), vec![v])
    };
    match definition(graph, x) {
        // The prover does not support slices with a run-time start.
        (Op::Slice(inner), [below]) if inner.axis == s.axis && inner.start.as_const().is_some() => {
            Some(within(*below, inner.start.checked_add(&s.start)?))
        }
        (Op::Concat(c), parts) if c.axis == s.axis => {
            let mut first = Dim::constant(0);
            for &part in parts {
                let next = first.checked_add(len_of(part)?)?;
                if first.at_most(&s.start) && s.start.checked_add(&s.len)?.at_most(&next) {
                    let start = s.start.checked_sub(&first)?;
                    let whole = start.is_zero() && Some(&s.len) == len_of(part);
                    let fixed = start.as_const().is_some() && first.as_const().is_some();
                    return (whole || fixed).then(|| within(part, start));
                }
                first = next;
            }
            None
        }
        (Op::Pad(p), [below]) if p.axis == s.axis => {
            let first = Dim::constant(p.before);
            let end = first.checked_add(len_of(*below)?)?;
            let inside = first.at_most(&s.start) && s.start.checked_add(&s.len)?.at_most(&end);
            inside
                .then(|| s.start.checked_sub(&first))
                .flatten()
                .map(|start| within(*below, start))
        }
        _ => None,
    }
}

fn concat(graph: &Graph, c: &Concat, operands: &[Value]) -> Option<Simplification> {
    if let [only] = operands {
        return Some(Simplification::Value(*only));
    }
    // Merge adjacent slices of one value.
    let cut = |v: Value| match definition(graph, v) {
        (Op::Slice(s), [below]) if s.axis == c.axis => Some((s, *below)),
        _ => None,
    };
    let joined = |a: Value, b: Value| {
        let ((s, x), (t, y)) = (cut(a)?, cut(b)?);
        let end = s.start.checked_add(&s.len)?;
        (x == y && end == t.start).then_some(())
    };
    if !operands
        .windows(2)
        .all(|pair| joined(pair[0], pair[1]).is_some())
    {
        return None;
    }
    let (first, below) = cut(*operands.first()?)?;
    let lens: Option<Vec<&Dim>> = operands.iter().map(|&v| Some(&cut(v)?.0.len)).collect();
    let whole = Slice {
        axis: c.axis,
        start: first.start.clone(),
        len: Dim::sum(lens?)?,
    };
    Some(Simplification::Op(whole.into(), vec![below]))
}
