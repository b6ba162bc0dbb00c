//! Matches Q/K norm, RoPE, a scale and the KV-cache write.

use tpc_ir::op::{BinaryKind, Rope};
use tpc_ir::{Inst, InstData, Op, Value};

use super::FusedLaunch;
use super::matcher::{DefWalker, Matcher, is_binary};
use crate::kernels::{FusedOp, Head, Heads};

const MAX_PARTS: usize = 6;

struct Part<'a> {
    head: Head,
    operands: Vec<Value>,
    result: Value,
    rope: Option<&'a InstData>,
}

fn part<'a>(matcher: &Matcher<'a>, end: &'a InstData) -> Option<Part<'a>> {
    let result = end.results[0];
    let mut head = Head {
        norm: None,
        rope: false,
        scale: None,
        set_rows: None,
    };
    let mut places = None;
    let mut next = Some(end);
    let mut x = result;
    if let Op::SetRows(op) = &end.op {
        let sizes = matcher.dims(end.operands[1])[..2] == matcher.dims(result)[..2];
        if op.axis != 2 || !sizes {
            return None;
        }
        head.set_rows = Some(op.clone());
        x = end.operands[1];
        places = Some(end.operands[2]);
        next = matcher.def(x);
    }
    if let Some(data) = next
        && let Op::Scale(op) = &data.op
    {
        head.scale = Some(op.clone());
        x = data.operands[0];
        next = matcher.def(x);
    }
    let mut rope = None;
    if let Some(data) = next
        && let Op::Rope(_) = &data.op
    {
        (rope, head.rope) = (Some(data), true);
        x = data.operands[0];
        next = matcher.def(x);
    }
    let mut operands = Vec::new();
    if let Some(data) = next
        && is_binary(data, BinaryKind::Mul)
    {
        let (norm, by) = matcher.inner(data)?;
        let Op::Norm(op) = &norm.op else { return None };
        head.norm = Some(op.clone());
        x = norm.operands[0];
        next = matcher.def(x);
        operands = vec![x, by];
    }
    let sizes = match head.set_rows {
        Some(_) => end.operands[1],
        None => result,
    };
    if next.is_some() || !fits(matcher, x, &operands, (sizes, result)) {
        return None;
    }
    if operands.is_empty() {
        operands.push(x);
    }
    operands.extend(places);
    Some(Part {
        head,
        operands,
        result,
        rope,
    })
}

fn fits(matcher: &Matcher<'_>, x: Value, with: &[Value], (sizes, result): (Value, Value)) -> bool {
    let [width, _, _, batches] = matcher.dims(x);
    let plain = sizes != result || matcher.are_f32(&[result]);
    let known =
        width.as_const().is_some() && batches.is_one() && matcher.dims(x) == matcher.dims(sizes);
    plain && known && matcher.is_float(x) && with.iter().all(|v| matcher.is_float(*v))
}

/// Returns the rotary embedding of all rotated parts, with its operands after the tensor; `None` if parts differ.
fn shared_rope<'a>(parts: &[Part<'a>]) -> Option<Option<(&'a Rope, &'a [Value])>> {
    let mut all = parts
        .iter()
        .filter_map(|p| p.rope)
        .map(|data| match &data.op {
            Op::Rope(op) => Some((op, &data.operands[1..])),
            _ => None,
        });
    match all.next() {
        None => Some(None),
        Some(first) => all.all(|other| other == first).then_some(first),
    }
}

pub(super) fn read(matcher: &Matcher<'_>) -> Option<FusedLaunch> {
    let graph = matcher.graph;
    let ends = matcher
        .insts
        .iter()
        .filter(|i| matcher.is_read_outside(graph.inst(**i).results[0]));
    let parts: Option<Vec<Part<'_>>> = ends.map(|i| part(matcher, matcher.visit(*i))).collect();
    let parts = parts?;
    let shared = shared_rope(&parts)?;
    if parts.is_empty() || parts.len() > MAX_PARTS {
        return None;
    }
    let mut operands: Vec<Value> = shared.map_or_else(Vec::new, |(_, v)| v.to_vec());
    operands.extend(parts.iter().flat_map(|p| &p.operands));
    let rope = shared.map(|(op, v)| (op.clone(), v.len() > 1));
    let results = parts.iter().map(|p| p.result).collect();
    let parts = parts.into_iter().map(|p| p.head).collect();
    Some(FusedLaunch {
        op: FusedOp::Heads(Heads { rope, parts }),
        operands,
        terms: None,
        results,
    })
}

/// Returns a candidate part before attention, with up to `links` ops.
fn chain(defs: &DefWalker<'_>, v: Value, links: usize) -> Vec<Inst> {
    let (inst, data, _) = defs.def(v);
    let mut out = vec![inst];
    let (mut at, mut found) = match &data.op {
        Op::SetRows(_) => (data.operands[1], true),
        _ => (data.results[0], false),
    };
    if !found {
        out.clear();
    }
    let kinds: [fn(&InstData) -> bool; 3] = [
        |d| matches!(d.op, Op::Scale(_)),
        |d| matches!(d.op, Op::Rope(_)),
        |d| is_binary(d, BinaryKind::Mul),
    ];
    for is in kinds.into_iter().take(links) {
        let (inst, data, views) = defs.def(at);
        if !is(data) {
            continue;
        }
        let mut own = vec![inst];
        let mut below = data.operands[0];
        if is_binary(data, BinaryKind::Mul) {
            let norm = data.operands.iter().map(|v| defs.graph().value(*v).def.0);
            let mut norms = norm.filter(|i| matches!(defs.graph().inst(*i).op, Op::Norm(_)));
            let Some(norm) = norms.next() else { continue };
            own.push(norm);
            below = defs.graph().inst(norm).operands[0];
        }
        // The chain includes views between two ops, but not views after the last op.
        if found {
            own.extend(views);
        }
        out.extend(own);
        at = below;
        found = true;
    }
    out
}

/// Returns the value that a device adds to an all-gather, if the gather computes `v`: devices that share the cells of a
/// KV head gather their queries.
fn before_gather(defs: &DefWalker<'_>, v: Value) -> Value {
    let (_, data, _) = defs.def(v);
    if !matches!(data.op, Op::AllGather(_)) {
        return v;
    }
    let graph = defs.graph();
    let place = graph.value(v).place;
    let mut own = data
        .operands
        .iter()
        .filter(|o| graph.value(**o).place == place);
    own.next().copied().unwrap_or(v)
}

pub(super) fn propose(defs: &DefWalker<'_>) -> Vec<Vec<Inst>> {
    let (mut all, mut each) = (Vec::new(), Vec::new());
    for (_, data) in defs.graph().insts() {
        let Op::FlashAttn(_) = &data.op else { continue };
        for links in [3, 2] {
            let of = |i: usize| chain(defs, before_gather(defs, data.operands[i]), links);
            let [q, k, v] = [0, 1, 2].map(of);
            all.push([q.clone(), k.clone(), v.clone()].concat());
            each.push([k.clone(), v.clone()].concat());
            each.extend([q, k, v]);
        }
    }
    all.extend(each);
    all.retain(|set| set.len() > 1);
    all
}
