//! Memory as values.
//!
//! In a capture, views look into memory and ops write to it; the IR has values. A table has the current value of
//! every tensor that owns memory. A read takes the view from that value; a write makes a new value. A view from
//! before a write therefore sees the write if it is read afterwards.

use std::collections::BTreeMap;

use tpc_ir::op::{Concat, MemoryView, Opaque, Permute, Reshape, SetSlice, Slice, TypeError};
use tpc_ir::verify::reads;
use tpc_ir::{DType, Dim, Graph, Op, Place, RANK, TensorType, Value};

use super::codes;
use super::record::{Layout, Record};
use super::strides::{Digit, Selection, select};
use super::trace::{RecordResult, Trace};
use tpc_diag::{Code, Diagnostic, Line, Name, message};
use tpc_gguf::TensorName;

#[derive(Clone, Debug)]
enum Content {
    Empty,
    Whole(Value),
    /// The consecutive results of an op, flattened: (first element, value).
    Parts(Vec<(u64, Value)>),
}

pub(super) struct Memory<'t> {
    pub(super) tensors: &'t [Record],
    pub(super) graph: Graph,
    contents: Vec<Content>,
    /// The sizes of each owner's value: the tensor's own, or other sizes with a clearer structure.
    shapes: Vec<[u64; RANK]>,
    versions: Vec<u32>,
    views: BTreeMap<(usize, u32, DType, Layout), Value>,
    pub(super) traces: Vec<Trace>,
    /// The writes of the current record in addition to its result.
    pub(super) later: Vec<Trace>,
    pub(super) notes: Vec<Diagnostic>,
    pub(super) lines: Vec<usize>,
    line: usize,
}

pub(super) fn dims(ne: [u64; RANK]) -> [Dim; RANK] {
    ne.map(Dim::constant)
}

pub(super) fn type_of(t: &Record) -> TensorType {
    TensorType {
        dtype: t.dtype,
        dims: dims(t.ne()),
    }
}

/// Merges whole neighbouring digits into at most one digit per axis, if possible.
fn merge_digits(digits: &[Digit]) -> Vec<Digit> {
    if digits.len() <= RANK {
        return digits.to_vec();
    }
    let mut out: Vec<Digit> = Vec::new();
    for &d in digits {
        match out.last_mut() {
            Some(last) if last.is_whole() && d.is_whole() => *last = Digit::whole(last.n * d.n),
            _ => out.push(d),
        }
    }
    out
}

impl<'t> Memory<'t> {
    pub(super) fn new(tensors: &'t [Record], name: &str) -> Memory<'t> {
        Memory {
            tensors,
            graph: Graph::new(name),
            contents: vec![Content::Empty; tensors.len()],
            shapes: tensors.iter().map(Record::ne).collect(),
            versions: vec![0; tensors.len()],
            views: BTreeMap::new(),
            traces: Vec::new(),
            later: Vec::new(),
            notes: Vec::new(),
            lines: Vec::new(),
            line: 0,
        }
    }

    pub(super) fn set_line(&mut self, line: usize) {
        self.line = line;
    }

    pub(super) fn note(&mut self, code: &'static Code, t: &Record, message: &str, help: &str) {
        let name = Name::from(TensorName::parse(&t.name));
        let message = message!(
            "line {}: {} of \"{}\": {}",
            Line(t.line),
            t.op.to_string(),
            name,
            message
        );
        self.notes
            .push(Diagnostic::new(code, name, message).help(help).line(t.line));
    }

    fn name(&mut self, v: Value, name: &str) {
        name.clone_into(&mut self.graph.value_mut(v).name);
    }

    pub(super) fn push(
        &mut self,
        op: impl Into<Op>,
        operands: Vec<Value>,
        name: &str,
    ) -> Result<Value, TypeError> {
        let op = op.into();
        self.readable(&op, &operands)?;
        let v = self
            .graph
            .push_with_inference(op, operands, Place::Host, None)?;
        self.lines.push(self.line);
        self.name(v, name);
        Ok(v)
    }

    /// Checks that the op accepts its operands, which may be quantised.
    pub(super) fn readable(&self, op: &Op, operands: &[Value]) -> Result<(), TypeError> {
        let types = operands.iter().map(|&v| self.graph.value(v).ty.dtype);
        let unread = types.enumerate().find(|&(i, t)| !reads(op, i, t));
        unread.map_or(Ok(()), |(_, found)| {
            Err(TypeError::Elements {
                what: "an operand",
                expected: "of elements that are not quantised",
                found,
            })
        })
    }

    pub(super) fn declare(
        &mut self,
        op: impl Into<Op>,
        operands: Vec<Value>,
        types: Vec<TensorType>,
        name: &str,
    ) -> Vec<Value> {
        let inst = self.graph.push(op, operands, types, Place::Host, None);
        self.lines.push(self.line);
        let made = self.graph.inst(inst).results.clone();
        for &v in &made {
            self.name(v, name);
        }
        made
    }

    pub(super) fn opaque(&mut self, name: &str, reads: &[(usize, Value)], t: &Record) -> Value {
        let op = Opaque {
            name: name.to_lowercase(),
            ..opaque(t, self.tensors, reads)
        };
        let operands = reads.iter().map(|(_, v)| *v).collect();
        self.declare(op, operands, vec![type_of(t)], &t.name)[0]
    }

    fn sizes(&self, v: Value) -> [u64; RANK] {
        let dims = &self.graph.value(v).ty.dims;
        std::array::from_fn(|i| dims[i].as_const().unwrap_or(0))
    }

    pub(super) fn reshape(
        &mut self,
        v: Value,
        ne: [u64; RANK],
        name: &str,
    ) -> Result<Value, TypeError> {
        if self.sizes(v) == ne {
            return Ok(v);
        }
        self.push(Reshape { dims: dims(ne) }, vec![v], name)
    }

    pub(super) fn define(&mut self, tensor: usize, v: Value) {
        self.contents[tensor] = Content::Whole(v);
        self.versions[tensor] += 1;
    }

    pub(super) fn define_parts(&mut self, tensor: usize, parts: Vec<Value>) {
        let mut at = 0;
        let mut out = Vec::with_capacity(parts.len());
        for v in parts {
            out.push((at, v));
            at += self.sizes(v).iter().product::<u64>();
        }
        self.contents[tensor] = Content::Parts(out);
        self.versions[tensor] += 1;
    }

    pub(super) fn set_shape(&mut self, owner: usize, ne: [u64; RANK]) {
        self.shapes[owner] = ne;
    }

    pub(super) fn shape(&self, owner: usize) -> [u64; RANK] {
        self.shapes[owner]
    }

    pub(super) fn is_defined(&self, tensor: usize) -> bool {
        !matches!(self.contents[tensor], Content::Empty)
    }

    pub(super) fn results(&mut self, tensor: usize) -> Result<Vec<Value>, TypeError> {
        match &self.contents[tensor] {
            Content::Parts(parts) => Ok(parts.iter().map(|(_, v)| *v).collect()),
            Content::Empty | Content::Whole(_) => Ok(vec![self.read(tensor)?]),
        }
    }

    /// Returns the content of an owner's memory as one value.
    pub(super) fn whole(&mut self, owner: usize) -> Result<Value, TypeError> {
        let t = &self.tensors[owner];
        match self.contents[owner].clone() {
            Content::Whole(v) => Ok(v),
            Content::Empty => {
                // The content is unknown, because no op has written it.
                let v = self.opaque("uninitialised", &[], t);
                self.contents[owner] = Content::Whole(v);
                self.traces.push(Trace {
                    record: owner,
                    reads: Vec::new(),
                    made: RecordResult::Value(v),
                });
                Ok(v)
            }
            Content::Parts(parts) => {
                let mut flat = Vec::with_capacity(parts.len());
                for (_, v) in parts {
                    let n = self.sizes(v).iter().product();
                    flat.push(self.reshape(v, [n, 1, 1, 1], &t.name)?);
                }
                let all = self.push(Concat { axis: 0 }, flat, &t.name)?;
                self.reshape(all, t.ne(), &t.name)
            }
        }
    }

    pub(super) fn read(&mut self, tensor: usize) -> Result<Value, TypeError> {
        let t = &self.tensors[tensor];
        let owner = &self.tensors[t.root];
        if tensor == t.root {
            let v = self.whole(tensor)?;
            return self.reshape(v, t.ne(), &t.name);
        }
        let key = (t.root, self.versions[t.root], t.dtype, t.layout);
        if let Some(&v) = self.views.get(&key) {
            return Ok(v);
        }
        let v = self.view(t, owner)?;
        self.views.insert(key, v);
        Ok(v)
    }

    fn view(&mut self, t: &Record, owner: &Record) -> Result<Value, TypeError> {
        let bytes = t.dtype.block_bytes();
        if t.dtype == owner.dtype {
            // A view of one of several results reads only that result.
            if let Content::Parts(parts) = &self.contents[t.root] {
                let first = t.layout.offset / bytes;
                let within = parts.iter().rev().find(|(at, _)| *at <= first).copied();
                if let Some((at, v)) = within {
                    let offset = t.layout.offset - at * bytes;
                    let layout = Layout { offset, ..t.layout };
                    if let Some(s) = self.selection(v, t, &layout) {
                        return self.apply(v, &s, &t.name);
                    }
                }
            }
            let v = self.whole(t.root)?;
            if let Some(s) = self.selection(v, t, &t.layout) {
                return self.apply(v, &s, &t.name);
            }
        }
        let v = self.whole(t.root)?;
        self.note(
            &codes::NO_BOX,
            t,
            "the view's elements are not one range per factor of the tensor",
            "the tensor stays whole on every device",
        );
        Ok(self.opaque("view", &[(0, v)], t))
    }

    /// Returns the digits of a value that a layout selects.
    fn selection(&self, v: Value, t: &Record, layout: &Layout) -> Option<Selection> {
        let ne = self.sizes(v);
        let (len, bytes) = (t.dtype.block_len(), t.dtype.block_bytes());
        if ne.contains(&0) {
            return None;
        }
        select(ne, len, bytes, layout).filter(|s| merge_digits(&s.digits).len() <= RANK)
    }

    fn apply(&mut self, v: Value, s: &Selection, name: &str) -> Result<Value, TypeError> {
        let mut v = v;
        if !s.is_everything() {
            let (shaped, digits) = self.by_digits(v, &s.digits, name)?;
            v = shaped;
            for (axis, d) in digits.iter().enumerate() {
                if !d.is_whole() {
                    v = self.slice(v, axis, d.start, d.len, name)?;
                }
            }
        }
        v = self.reshape(v, s.dims, name)?;
        if s.is_permuted() {
            v = self.push(Permute { axes: s.axes }, vec![v], name)?;
        }
        Ok(v)
    }

    fn slice(
        &mut self,
        v: Value,
        axis: usize,
        start: u64,
        len: u64,
        name: &str,
    ) -> Result<Value, TypeError> {
        let slice = Slice {
            axis: axis as u64,
            start: Dim::constant(start),
            len: Dim::constant(len),
        };
        self.push(slice, vec![v], name)
    }

    /// Returns the value reshaped to one axis per digit, and the digit of each axis.
    fn by_digits(
        &mut self,
        v: Value,
        digits: &[Digit],
        name: &str,
    ) -> Result<(Value, Vec<Digit>), TypeError> {
        let axes = merge_digits(digits);
        // Axes of size 1 keep their position, so that a slice needs no reshape.
        let own = self.sizes(v);
        let sized: Vec<usize> = (0..RANK).filter(|&i| own[i] > 1).collect();
        if sized.len() == axes.len() && sized.iter().zip(&axes).all(|(&i, d)| own[i] == d.n) {
            let mut out = vec![Digit::whole(1); RANK];
            for (&i, &d) in sized.iter().zip(&axes) {
                out[i] = d;
            }
            return Ok((v, out));
        }
        let mut ne = [1; RANK];
        for (n, d) in ne.iter_mut().zip(&axes) {
            *n = d.n;
        }
        Ok((self.reshape(v, ne, name)?, axes))
    }

    pub(super) fn write(&mut self, tensor: usize, new: Value) -> Result<RecordResult, TypeError> {
        let t = &self.tensors[tensor];
        let owner = &self.tensors[t.root];
        let old = self.whole(t.root)?;
        let updated = match t.dtype == owner.dtype {
            true => self.update(old, t, &t.layout, new)?,
            false => None,
        };
        let after = updated.ok_or(TypeError::Axis(RANK as u64))?;
        self.define(t.root, after);
        let new = Some(new);
        Ok(RecordResult::Written { old, new, after })
    }

    /// Returns the view of a value through a layout, with the sizes and element type of `t`; `None` if the view is
    /// not a box.
    pub(super) fn look(
        &mut self,
        v: Value,
        t: &Record,
        layout: &Layout,
    ) -> Result<Option<Value>, TypeError> {
        match self.selection(v, t, layout) {
            Some(s) => self.apply(v, &s, &t.name).map(Some),
            None => Ok(None),
        }
    }

    /// Returns `old` with the view through a layout replaced by `new`; `None` if the view is not a box.
    pub(super) fn update(
        &mut self,
        old: Value,
        t: &Record,
        layout: &Layout,
        new: Value,
    ) -> Result<Option<Value>, TypeError> {
        let Some(s) = self.selection(old, t, layout) else {
            return Ok(None);
        };
        let ne = self.sizes(old);
        let mut new = new;
        if s.is_permuted() {
            let mut axes = [0; RANK];
            for (from, &to) in s.axes.iter().enumerate() {
                axes[to as usize % RANK] = from as u64;
            }
            new = self.push(Permute { axes }, vec![new], &t.name)?;
        }
        let updated = if s.is_everything() {
            let new = self.reshape(new, ne, &t.name)?;
            if self.graph.value(new).ty.dtype == self.graph.value(old).ty.dtype {
                new
            } else {
                // The last axis is rarely split.
                self.set_slice(old, new, RANK - 1, 0, &t.name)?
            }
        } else {
            let (shaped, digits) = self.by_digits(old, &s.digits, &t.name)?;
            let mut box_sizes = [1; RANK];
            for (n, d) in box_sizes.iter_mut().zip(&digits) {
                *n = d.len;
            }
            let new = self.reshape(new, box_sizes, &t.name)?;
            self.replace(shaped, &digits, 0, new, &t.name)?
        };
        self.reshape(updated, ne, &t.name).map(Some)
    }

    /// Returns `old` with a box replaced by `new`. The digits from `axis` on select the box.
    fn replace(
        &mut self,
        old: Value,
        digits: &[Digit],
        axis: usize,
        new: Value,
        name: &str,
    ) -> Result<Value, TypeError> {
        let Some(&d) = digits.get(axis) else {
            return Ok(new);
        };
        if d.is_whole() {
            return self.replace(old, digits, axis + 1, new, name);
        }
        let mut new = new;
        if digits[axis + 1..].iter().any(|d| !d.is_whole()) {
            let within = self.slice(old, axis, d.start, d.len, name)?;
            new = self.replace(within, digits, axis + 1, new, name)?;
        }
        self.set_slice(old, new, axis, d.start, name)
    }

    fn set_slice(
        &mut self,
        old: Value,
        new: Value,
        axis: usize,
        start: u64,
        name: &str,
    ) -> Result<Value, TypeError> {
        let set = SetSlice {
            axis: axis as u64,
            start: Dim::constant(start),
        };
        self.push(set, vec![old, new], name)
    }

    /// Appends an opaque op for a write. It reads the memory's old content and `reads`, and returns the new content.
    pub(super) fn clobber(
        &mut self,
        tensor: usize,
        reads: &[(usize, Value)],
    ) -> Result<RecordResult, TypeError> {
        let t = &self.tensors[tensor];
        let owner = &self.tensors[t.root];
        let old = self.whole(t.root)?;
        let mut all = vec![old];
        all.extend(reads.iter().map(|(_, v)| *v));
        let op = opaque(t, self.tensors, reads);
        let after = self.declare(op, all, vec![type_of(owner)], &owner.name)[0];
        self.define(t.root, after);
        let new = None;
        Ok(RecordResult::Written { old, new, after })
    }
}

/// Returns an opaque op with all of a record's content except operands and type, so that different ops stay
/// different. A view also needs its sizes: a write has the type of the whole memory.
pub(super) fn opaque(t: &Record, tensors: &[Record], reads: &[(usize, Value)]) -> Opaque {
    let in_order = reads.iter().enumerate().all(|(i, (at, _))| i == *at);
    let sources = reads.iter().filter(|_| !in_order);
    let layout = &t.layout;
    Opaque {
        name: t.op.name().to_lowercase(),
        params: t.words.clone(),
        sources: sources.map(|(at, _)| *at as u64).collect(),
        view: t.is_view.then(|| MemoryView {
            memory: tensors[t.root].dtype,
            dtype: t.dtype,
            ne: layout.ne,
            nb: layout.nb,
            offset: layout.offset,
        }),
    }
}
