//! Memory as values: what each tensor that owns memory holds now.
//!
//! A capture speaks of memory: views look into it, some ops write into it. The IR speaks of values. Between the two
//! stands a table: per owner of memory the value that it holds at this point of the program. A read takes the view out
//! of the newest value; a write makes a new one. So a view that was made before a write and is read after it sees what
//! was written, as it does in memory.

use std::collections::BTreeMap;

use tpc_ir::op::{Concat, Opaque, Permute, Reshape, SetSlice, Slice, TypeError};
use tpc_ir::verify::reads;
use tpc_ir::{Dim, Graph, Op, Place, RANK, TensorType, Value};

use super::codes;
use super::record::{Layout, Record};
use super::strides::{Digit, Selection, select};
use tpc_diag::{Code, Diagnostic, Line, Name, message};
use tpc_gguf::TensorName;

/// What an owner of memory holds.
#[derive(Clone, Debug)]
enum Content {
    /// Nothing was computed yet.
    Nothing,
    /// One value of its sizes.
    Whole(Value),
    /// The results of an op one after another, flat: (first element, value).
    Parts(Vec<(u64, Value)>),
}

/// The graph so far, and what memory holds.
pub(super) struct Memory<'t> {
    pub(super) tensors: &'t [Record],
    pub(super) graph: Graph,
    contents: Vec<Content>,
    /// The sizes in which each owner's elements are held: its own, or others that say better what it is.
    held: Vec<[u64; RANK]>,
    /// How often each owner was written.
    versions: Vec<u32>,
    views: BTreeMap<(usize, u32, Layout), Value>,
    pub(super) notes: Vec<Diagnostic>,
    /// Per instruction, the line that it comes from.
    pub(super) lines: Vec<usize>,
    /// The line that is read.
    line: usize,
}

/// The sizes as constants.
pub(super) fn dims(ne: [u64; RANK]) -> [Dim; RANK] {
    ne.map(Dim::constant)
}

/// The type of a tensor of the capture.
pub(super) fn type_of(t: &Record) -> TensorType {
    TensorType {
        dtype: t.dtype,
        dims: dims(t.ne()),
    }
}

/// Digits for as many axes as there are: where there are more, neighbours that are taken whole are one.
fn merged(digits: &[Digit]) -> Vec<Digit> {
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
            contents: vec![Content::Nothing; tensors.len()],
            held: tensors.iter().map(Record::ne).collect(),
            versions: vec![0; tensors.len()],
            views: BTreeMap::new(),
            notes: Vec::new(),
            lines: Vec::new(),
            line: 0,
        }
    }

    /// What follows comes from this line.
    pub(super) fn at(&mut self, line: usize) {
        self.line = line;
    }

    /// Says something of a tensor.
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

    /// Appends an op with one inferred result.
    pub(super) fn push(
        &mut self,
        op: impl Into<Op>,
        operands: Vec<Value>,
        name: &str,
    ) -> Result<Value, TypeError> {
        let op = op.into();
        self.readable(&op, &operands)?;
        let v = self.graph.push_inferred(op, operands, Place::Host, None)?;
        self.lines.push(self.line);
        self.name(v, name);
        Ok(v)
    }

    /// Fails when an op cannot read quantised elements that it is given.
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

    /// Appends an op whose results are declared.
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

    /// An op of which nothing is known but what it reads and makes.
    pub(super) fn opaque(&mut self, name: &str, operands: Vec<Value>, t: &Record) -> Value {
        let op = Opaque {
            name: name.to_lowercase(),
        };
        self.declare(op, operands, vec![type_of(t)], &t.name)[0]
    }

    /// The sizes of a value, all of them constants.
    fn sizes(&self, v: Value) -> [u64; RANK] {
        let dims = &self.graph.value(v).ty.dims;
        std::array::from_fn(|i| dims[i].as_const().unwrap_or(0))
    }

    /// The same elements under other sizes.
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

    /// Sets what a tensor that owns memory holds.
    pub(super) fn define(&mut self, tensor: usize, v: Value) {
        self.contents[tensor] = Content::Whole(v);
        self.versions[tensor] += 1;
    }

    /// Sets what a tensor holds that ggml packs from several results.
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

    /// Holds the elements of an owner in these sizes.
    pub(super) fn hold(&mut self, owner: usize, ne: [u64; RANK]) {
        self.held[owner] = ne;
    }

    /// The sizes in which an owner's elements are held.
    pub(super) fn held(&self, owner: usize) -> [u64; RANK] {
        self.held[owner]
    }

    /// Whether an owner of memory holds anything yet.
    pub(super) fn is_defined(&self, tensor: usize) -> bool {
        !matches!(self.contents[tensor], Content::Nothing)
    }

    /// What a tensor holds: one value, or the results that ggml packs into it.
    pub(super) fn results(&mut self, tensor: usize) -> Result<Vec<Value>, TypeError> {
        match &self.contents[tensor] {
            Content::Parts(parts) => Ok(parts.iter().map(|(_, v)| *v).collect()),
            Content::Nothing | Content::Whole(_) => Ok(vec![self.read(tensor)?]),
        }
    }

    /// What the owner holds, as one value of its sizes.
    pub(super) fn whole(&mut self, owner: usize) -> Result<Value, TypeError> {
        let t = &self.tensors[owner];
        match self.contents[owner].clone() {
            Content::Whole(v) => Ok(v),
            Content::Nothing => {
                // Memory that nothing filled: what is in it is not known.
                let v = self.opaque("uninitialised", Vec::new(), t);
                self.contents[owner] = Content::Whole(v);
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

    /// What a tensor is now. It has elements.
    pub(super) fn read(&mut self, tensor: usize) -> Result<Value, TypeError> {
        let t = &self.tensors[tensor];
        let owner = &self.tensors[t.root];
        if tensor == t.root {
            let v = self.whole(tensor)?;
            return self.reshape(v, t.ne(), &t.name);
        }
        let key = (t.root, self.versions[t.root], t.layout);
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
            // A view of one of several results looks into that one.
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
            "its elements are no box of the tensor that it looks into",
            "the tensor stays whole on every device",
        );
        Ok(self.opaque("view", vec![v], t))
    }

    /// The digits that a layout takes of a value.
    fn selection(&self, v: Value, t: &Record, layout: &Layout) -> Option<Selection> {
        let ne = self.sizes(v);
        let (len, bytes) = (t.dtype.block_len(), t.dtype.block_bytes());
        if ne.contains(&0) {
            return None;
        }
        select(ne, len, bytes, layout).filter(|s| merged(&s.digits).len() <= RANK)
    }

    /// Takes a selection out of a value.
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

    /// The value with an axis per digit that is not taken whole, and these digits by axis.
    fn by_digits(
        &mut self,
        v: Value,
        digits: &[Digit],
        name: &str,
    ) -> Result<(Value, Vec<Digit>), TypeError> {
        let axes = merged(digits);
        // Sizes of 1 stay where they are, so that a slice of an axis needs no reshape.
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

    /// Writes a value of a view's sizes through that view.
    pub(super) fn write(&mut self, tensor: usize, new: Value) -> Result<(), TypeError> {
        let t = &self.tensors[tensor];
        let owner = &self.tensors[t.root];
        let old = self.whole(t.root)?;
        let updated = match t.dtype == owner.dtype {
            true => self.update(old, t, &t.layout, new)?,
            false => None,
        };
        let updated = updated.ok_or(TypeError::Axis(RANK as u64))?;
        self.define(t.root, updated);
        Ok(())
    }

    /// What a tensor of the sizes and the element type of `t` sees of a value through a layout; `None` where that is no
    /// box.
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

    /// `old` with what a layout sees of it replaced by `new`; `None` where that is no box.
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
        // Back into the order of memory.
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
                // The last axis is rarely one that anything splits.
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

    /// `old` with the box of the digits from `axis` on replaced.
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

    /// Fills the owner of a view's memory with an unknown value, which depends on the old one and on these operands.
    pub(super) fn clobber(&mut self, tensor: usize, operands: Vec<Value>) -> Result<(), TypeError> {
        let t = &self.tensors[tensor];
        let owner = &self.tensors[t.root];
        let mut all = vec![self.whole(t.root)?];
        all.extend(operands);
        let v = self.opaque(t.op.name(), all, owner);
        self.define(t.root, v);
        Ok(())
    }
}
