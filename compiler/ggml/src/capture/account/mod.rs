//! Checks that a translated graph keeps all information of every record.
//!
//! The proof of a plan begins with the model's graph, so it cannot find errors in the translation to that graph. This
//! check compares the translation's claims (`trace`) with the records:
//!
//! - *elements*: at sampled indices, a source's value has the memory element that ggml's strides and offset address.
//!   After a write, the view has the written elements, and the rest of the memory the old elements (`address`);
//! - *types*: element types and sizes equal the record's;
//! - *sources*: every source is a direct or indirect operand of the record's ops;
//! - *parameters*: every `op_params` word is an attribute of the record's ops, is in the text of an opaque op, or has
//!   no effect ([`WordUse`](crate::op::WordUse)).
//!
//! [`without_effect`] lists the other fields.

mod address;
mod effect;
mod words;

pub use effect::{Field, Use, without_effect};

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::op::Opaque;
use tpc_ir::{Graph, Op, RANK, Value};

use super::error::CaptureError;
use super::memory::opaque;
use super::record::Record;
use super::trace::{RecordResult, Trace};
use crate::op::OpKind;
use address::{element, flat, origin, samples};

/// Checks the claims about a graph's records. `lines` has the line of every instruction.
pub(super) fn check(
    records: &[Record],
    graph: &Graph,
    lines: &[usize],
    traces: &[Trace],
) -> Result<(), CaptureError> {
    let mut account = Account {
        records,
        graph,
        lines,
        contents: BTreeMap::new(),
    };
    for trace in traces {
        let t = &records[trace.record];
        account.record(trace).map_err(|what| CaptureError::Lost {
            line: t.line,
            name: t.name.clone(),
            what,
        })?;
    }
    Ok(())
}

type LostPart = String;

struct Account<'a> {
    records: &'a [Record],
    graph: &'a Graph,
    lines: &'a [usize],
    /// The consecutive values in each owner's memory: (first element, value).
    contents: BTreeMap<usize, Vec<(u64, Value)>>,
}

impl Account<'_> {
    fn record(&mut self, trace: &Trace) -> Result<(), LostPart> {
        let t = &self.records[trace.record];
        for &(position, v) in &trace.reads {
            let source = t.src.get(position).copied().flatten();
            let source = source.ok_or_else(|| format!("the absence of source {position}"))?;
            self.source(source, v)
                .map_err(|what| format!("{what} of source {position}"))?;
        }
        match &trace.made {
            RecordResult::Value(v) => {
                self.check_type(*v, t)?;
                self.contents.insert(t.root, vec![(0, *v)]);
            }
            RecordResult::Parts(parts) => {
                let mut at = 0;
                let mut content = Vec::with_capacity(parts.len());
                for &v in parts {
                    if self.graph.value(v).ty.dtype != t.dtype {
                        return Err("the element type".to_owned());
                    }
                    content.push((at, v));
                    at += self.elements(v);
                }
                if at != t.elements() {
                    return Err("the number of elements".to_owned());
                }
                self.contents.insert(t.root, content);
            }
            RecordResult::Written { old, new, after } => {
                self.check_write(t, &trace.reads, (*old, *new), *after)?;
                self.contents.insert(t.root, vec![(0, *after)]);
            }
        }
        if t.is_leaf() || self.is_uninitialised(&trace.made) {
            return Ok(());
        }
        let reached = self.reachable(t, trace);
        self.sources(t, trace, &reached)?;
        words::check(t, self.records, self.graph, &reached.insts, &trace.reads)
    }

    fn is_uninitialised(&self, made: &RecordResult) -> bool {
        let named = |v: Value| match self.graph.def_op(v) {
            Op::Opaque(op) => op.name == "uninitialised",
            _ => false,
        };
        matches!(made, RecordResult::Value(v) if named(*v))
    }

    fn sizes(&self, v: Value) -> [u64; RANK] {
        let dims = &self.graph.value(v).ty.dims;
        std::array::from_fn(|i| dims[i].as_const().unwrap_or(0))
    }

    fn elements(&self, v: Value) -> u64 {
        self.sizes(v).iter().product()
    }

    fn check_type(&self, v: Value, t: &Record) -> Result<(), LostPart> {
        if self.graph.value(v).ty.dtype != t.dtype {
            return Err(format!("the element type, {}", t.dtype));
        }
        // A transposed cache has the same elements in the same order, with other sizes.
        let same = match t.is_leaf() {
            true => self.elements(v) == t.elements(),
            false => self.sizes(v) == t.ne(),
        };
        match same {
            true => Ok(()),
            false => Err(format!("the sizes, {:?}", t.ne())),
        }
    }

    /// Returns the value that holds an element of an owner's memory, and the element's index in the value.
    fn content(&self, root: usize, element: u64) -> Option<(Value, u64)> {
        let content = self.contents.get(&root)?;
        let (at, v) = content.iter().rev().find(|(at, _)| *at <= element)?;
        Some((*v, element - at))
    }

    /// Checks that a source's value has the addressed elements.
    fn source(&self, source: usize, v: Value) -> Result<(), LostPart> {
        let s = &self.records[source];
        if self.graph.value(v).ty.dtype != s.dtype {
            return Err("the element type".to_owned());
        }
        if self.sizes(v) != s.ne() {
            return Err("the sizes".to_owned());
        }
        let stops: Vec<Value> = self
            .contents
            .get(&s.root)
            .map(|c| c.iter().map(|(_, v)| *v).collect())
            .unwrap_or_default();
        if let Op::Opaque(op) = self.graph.def_op(v)
            && !stops.contains(&v)
        {
            let inst = self.graph.inst(self.graph.value(v).def.0);
            let whole = match inst.operands.as_slice() {
                [whole] => self.is_content(*whole, s.root, &stops),
                _ => false,
            };
            let wanted = Opaque {
                name: "view".to_owned(),
                ..opaque(s, self.records, &[])
            };
            return match whole && *op == wanted {
                true => Ok(()),
                false => Err("the strides or the offset".to_owned()),
            };
        }
        let owner = &self.records[s.root];
        if owner.dtype != s.dtype {
            return Err("the conversion of element types".to_owned());
        }
        for idx in samples(s.ne()) {
            let wanted = element(&s.layout, s.dtype, idx).and_then(|e| self.content(s.root, e));
            let found = origin(self.graph, v, flat(s.ne(), idx), &stops);
            if wanted.is_none() || wanted != found {
                return Err(format!("the place in memory of element {idx:?}"));
            }
        }
        Ok(())
    }

    /// True if a value is all of an owner's memory.
    fn is_content(&self, v: Value, root: usize, stops: &[Value]) -> bool {
        let ne = self.sizes(v);
        let same = |idx| {
            let at = flat(ne, idx);
            let found = origin(self.graph, v, at, stops);
            found.is_some() && found == self.content(root, at)
        };
        ne.iter().product::<u64>() == self.records[root].elements() && samples(ne).all(same)
    }

    /// Checks that a write changes the view's elements only.
    fn check_write(
        &self,
        t: &Record,
        reads: &[(usize, Value)],
        (old, new): (Value, Option<Value>),
        after: Value,
    ) -> Result<(), LostPart> {
        let owner = &self.records[t.root];
        self.typed_as_owner(after, owner)?;
        let stops: Vec<Value> = self
            .contents
            .get(&t.root)
            .map(|c| c.iter().map(|(_, v)| *v).collect())
            .unwrap_or_default();
        if !self.is_content(old, t.root, &stops) {
            return Err("the memory before the write".to_owned());
        }
        let Some(new) = new else {
            // An opaque op names the written elements, and reads the old value.
            let inst = self.graph.inst(self.graph.value(after).def.0);
            let says = match &inst.op {
                Op::Opaque(op) => *op == opaque(t, self.records, reads),
                _ => false,
            };
            return match says && inst.operands.contains(&old) {
                true => Ok(()),
                false => Err("the place of the write".to_owned()),
            };
        };
        let stops = [old, new];
        for idx in samples(t.ne()) {
            let at = element(&t.layout, t.dtype, idx);
            let found = at.and_then(|e| origin(self.graph, after, e, &stops));
            if found != Some((new, flat(t.ne(), idx))) {
                return Err(format!(
                    "the place in memory of the written element {idx:?}"
                ));
            }
        }
        for idx in samples(owner.ne()) {
            let e = flat(owner.ne(), idx);
            let found = origin(self.graph, after, e, &stops);
            let wanted = match address::index_of(&t.layout, t.dtype, e) {
                Some(idx) => (new, flat(t.ne(), idx)),
                None => (old, e),
            };
            if found != Some(wanted) {
                return Err(format!("element {e} of the written memory"));
            }
        }
        Ok(())
    }

    fn typed_as_owner(&self, v: Value, owner: &Record) -> Result<(), LostPart> {
        let same = self.graph.value(v).ty.dtype == owner.dtype;
        match same && self.elements(v) == owner.elements() {
            true => Ok(()),
            false => Err("the type of the written memory".to_owned()),
        }
    }

    /// Returns the instructions between a record's sources and its results.
    fn reachable(&self, t: &Record, trace: &Trace) -> ReachableParts {
        let sources: BTreeSet<Value> = trace.reads.iter().map(|(_, v)| *v).collect();
        let mut stack = match &trace.made {
            RecordResult::Value(v) => vec![*v],
            RecordResult::Parts(parts) => parts.clone(),
            RecordResult::Written { new, after, .. } => vec![new.unwrap_or(*after)],
        };
        let mut out = ReachableParts::default();
        let mut seen = BTreeSet::new();
        while let Some(v) = stack.pop() {
            if !seen.insert(v) {
                continue;
            }
            if sources.contains(&v) {
                out.sources.insert(v);
                continue;
            }
            let inst = self.graph.value(v).def.0;
            if self.lines.get(inst.index()) == Some(&t.line) {
                out.insts.insert(inst);
                stack.extend(&self.graph.inst(inst).operands);
            }
        }
        out
    }

    fn sources(&self, t: &Record, trace: &Trace, reached: &ReachableParts) -> Result<(), LostPart> {
        for (position, source) in t.src.iter().enumerate() {
            let Some(source) = source else { continue };
            let s = &self.records[*source];
            // The destination of a write is the memory of the result.
            let is_destination = t.writes() && s.root == t.root && s.layout == t.layout;
            let read = trace.reads.iter().find(|(p, _)| *p == position);
            let used = read.is_some_and(|(_, v)| reached.sources.contains(v));
            let empty = s.is_empty() && !t.is_empty();
            let destination = is_destination
                && (t.is(OpKind::Cpy) || t.is(OpKind::SetRows))
                && s.dtype == t.dtype;
            if !used && !empty && !destination {
                return Err(format!("source {position} ({})", s.name));
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct ReachableParts {
    insts: BTreeSet<tpc_ir::Inst>,
    sources: BTreeSet<Value>,
}
