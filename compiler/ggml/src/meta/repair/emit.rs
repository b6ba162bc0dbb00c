use std::collections::{BTreeMap, BTreeSet};

use super::extract::{Choices, ClassForm};
use egg::Id;
use tpc_ir::DType;

use super::analysis::{Terms, permute_axes};
use super::language::{Node, Op, Sizes4};
use super::window::{Window, is_kept};
use crate::capture::{Layout, Record, packed};
use crate::meta::rules::{self, Call, Source};
use crate::op::{GgmlOp, Permute};

pub(super) struct Splice {
    pub(super) records: Vec<Record>,
    /// The old record with the same value and line, for each new record.
    pub(super) number: Vec<Option<usize>>,
    /// The new record with the same value, for each old record.
    pub(super) place: Vec<Option<usize>>,
}

struct Emitter<'a> {
    old: &'a [Record],
    window: &'a Window,
    choices: &'a Choices,
    originals: &'a BTreeMap<Node, usize>,
    out: Splice,
    made: BTreeMap<ClassForm, usize>,
    versions: BTreeMap<usize, u32>,
    wanted: BTreeSet<ClassForm>,
}

/// Replaces the window's records with the chosen terms. Returns `None` if no order keeps every read before the write
/// that overwrites its memory.
pub(super) fn splice(
    old: &[Record],
    window: &Window,
    choices: &Choices,
    originals: &BTreeMap<Node, usize>,
    roots: &BTreeMap<usize, ClassForm>,
) -> Option<Splice> {
    let mut e = Emitter {
        old,
        window,
        choices,
        originals,
        out: Splice {
            records: Vec::with_capacity(old.len()),
            number: Vec::new(),
            place: vec![None; old.len()],
        },
        made: BTreeMap::new(),
        versions: window.versions.clone(),
        wanted: BTreeSet::new(),
    };
    for held in roots.values() {
        e.want(held);
    }
    for i in 0..window.range.start {
        e.keep(i)?;
    }
    for i in window.range.clone() {
        if is_kept(&old[i]) {
            e.keep(i)?;
            continue;
        }
        // A term of the capture keeps its position, so that reads stay before writes.
        let class = window.terms.find(window.class[&i]);
        let here: Vec<ClassForm> = e.wanted.iter().filter(|h| h.0 == class).cloned().collect();
        for held in here {
            if e.is_original(&held, i) || roots.get(&i) == Some(&held) {
                e.emit(&held)?;
            }
        }
        if let Some(held) = roots.get(&i) {
            let at = e.emit(held)?;
            e.out.place[i] = Some(e.through(i, held, at));
            if old[i].writes() {
                *e.versions.entry(old[i].root).or_insert(0) += 1;
            }
        }
    }
    for i in window.range.end..old.len() {
        e.keep(i)?;
    }
    Some(e.out)
}

impl Emitter<'_> {
    /// Marks a class and form, and all that its choice needs, as wanted.
    fn want(&mut self, held: &ClassForm) {
        if self.wanted.insert(held.clone())
            && let Some(choice) = self.choices.get(held)
        {
            for child in choice.children.clone() {
                self.want(&child);
            }
        }
    }

    fn is_original(&self, held: &ClassForm, i: usize) -> bool {
        let choice = self.choices.get(held);
        choice.is_some_and(|c| self.originals.get(&c.node) == Some(&i))
    }

    fn push(&mut self, mut t: Record, number: Option<usize>) -> usize {
        let at = self.out.records.len();
        t.line = number.map_or(0, |i| self.old[i].line);
        if !t.is_view {
            t.root = at;
        }
        self.out.records.push(t);
        self.out.number.push(number);
        at
    }

    /// Copies an old record, with the new records of its sources.
    fn keep(&mut self, i: usize) -> Option<usize> {
        let mut t = self.old[i].clone();
        for s in t.src.iter_mut().flatten() {
            *s = self.out.place[*s]?;
        }
        if t.is_view {
            t.root = match t.src.first().copied().flatten() {
                Some(s) if t.is_pure_view() => self.out.records[s].root,
                _ => self.out.place[t.root]?,
            };
        }
        let at = self.push(t, Some(i));
        self.out.place[i] = Some(at);
        Some(at)
    }

    /// Returns the new record of a class and form, appended if missing.
    fn emit(&mut self, held: &ClassForm) -> Option<usize> {
        if let Some(&at) = self.made.get(held) {
            return Some(at);
        }
        let choice = self.choices.get(held)?;
        let at = match &choice.node.op {
            Op::Leaf { record, version } => {
                let root = self.old[*record].root;
                if self.versions.get(&root).copied().unwrap_or(0) != *version {
                    return None;
                }
                return self.out.place[*record];
            }
            op => {
                let op = op.clone();
                let children = choice.children.clone();
                let origin = self.originals.get(&choice.node).copied();
                let src: Option<Vec<usize>> = children.iter().map(|c| self.emit(c)).collect();
                let src = self.by_views(origin, &children, src?);
                let number = origin.or_else(|| self.equal(held));
                let name = self.name(&choice.node, number);
                let facts = &self.window.terms[held.0].data;
                let shape = Shape {
                    ne: facts.ne,
                    nb: held.1.nb,
                    dtype: facts.dtype,
                };
                let mut t = record(&op, &name, shape, &src, &self.out.records)?;
                if let Op::Effect { record, .. } = op {
                    let old = &self.old[record];
                    t.is_view = true;
                    t.layout = old.layout;
                    t.root = self.out.place[old.root]?;
                }
                if let Some(i) = origin {
                    // Several ops can express a view, so the view keeps its op.
                    t.op.clone_from(&self.old[i].op);
                    t.words.clone_from(&self.old[i].words);
                    t.is_output = self.old[i].is_output;
                }
                let at = self.push(t, number);
                if let Some(i) = number {
                    self.out.place[i].get_or_insert(at);
                }
                at
            }
        };
        self.made.insert(held.clone(), at);
        Some(at)
    }

    fn by_views(
        &mut self,
        origin: Option<usize>,
        held: &[ClassForm],
        src: Vec<usize>,
    ) -> Vec<usize> {
        let Some(i) = origin else { return src };
        let old: Vec<usize> = self.old[i].src.iter().flatten().copied().collect();
        let pairs = old.into_iter().zip(held).zip(src);
        pairs.map(|((s, h), at)| self.through(s, h, at)).collect()
    }

    /// Returns the old record `i` if it is an accepted chain of views of the new record `at`, to keep more of the
    /// capture. Otherwise returns `at`.
    fn through(&mut self, i: usize, held: &ClassForm, at: usize) -> usize {
        let Some(chain) = self.chain(i, held, at) else {
            return at;
        };
        let mut at = at;
        for i in chain {
            let there = self.out.place[i];
            if let Some(there) = there
                && self.out.records[there].src.first() == Some(&Some(at))
            {
                at = there;
                continue;
            }
            let mut t = self.old[i].clone();
            let from = t
                .src
                .first()
                .copied()
                .flatten()
                .map_or(0, |s| self.old[s].layout.offset);
            let x = &self.out.records[at];
            t.src = vec![Some(at)];
            t.root = x.root;
            t.layout.offset = x.layout.offset + t.layout.offset.saturating_sub(from);
            at = self.push(t, Some(i));
            self.out.place[i] = Some(at);
        }
        at
    }

    /// Returns the views from the new record `at` to the old record `i`, if the last view has the same form.
    fn chain(&self, i: usize, held: &ClassForm, at: usize) -> Option<Vec<usize>> {
        let mut chain = Vec::new();
        let mut top = i;
        while self.out.place[top] != Some(at) {
            if !self.old[top].is_pure_view() || !self.window.range.contains(&top) {
                return None;
            }
            chain.push(top);
            top = self.old[top].src.first().copied().flatten()?;
        }
        chain.reverse();
        let same =
            |a: &Record, b: &Record| a.layout.ne == b.layout.ne && a.layout.nb == b.layout.nb;
        if !same(&self.old[top], &self.out.records[at]) {
            return None;
        }
        let mut state = held.1.state.clone();
        for &i in &chain {
            let (t, from) = (&self.old[i], &self.old[self.old[i].src[0]?]);
            let call = Call {
                op: &t.op,
                ne: t.ne(),
                nb: t.layout.nb,
                dtype: t.dtype,
                offset: t.layout.offset.saturating_sub(from.layout.offset),
                src: vec![Some(Source {
                    ne: from.ne(),
                    nb: from.layout.nb,
                    dtype: from.dtype,
                    state: &state,
                })],
            };
            let next = rules::apply(&call).ok()?;
            state = next;
        }
        let ends = state.seen() == held.1.state.seen();
        (ends && self.old[i].layout.nb == held.1.nb).then_some(chain)
    }

    fn equal(&self, held: &ClassForm) -> Option<usize> {
        let is_equal = |i: usize, id: Id| {
            self.window.terms.find(id) == held.0
                && self.old[i].layout.nb == held.1.nb
                && !self.out.number.contains(&Some(i))
        };
        let mut all = self.window.class.iter().map(|(&i, &id)| (i, id));
        all.find(|&(i, id)| is_equal(i, id)).map(|(i, _)| i)
    }

    /// Returns a term's name: of its old record, or of one with the same op and first source.
    fn name(&self, node: &Node, number: Option<usize>) -> String {
        let same = || {
            let op = &node.compute()?.op;
            let alike = |n: &Node| {
                n.compute().is_some_and(|c| c.op.kind() == op.kind())
                    && n.children.first() == node.children.first()
            };
            let found = self.originals.iter().find(|(n, _)| alike(n));
            found.map(|(_, &i)| i)
        };
        let named = number.or_else(same).map(|i| self.old[i].name.clone());
        named.unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
struct Shape {
    ne: Sizes4,
    nb: Sizes4,
    dtype: DType,
}

/// Returns the record of a term, with sources among `made`. The caller sets the memory of a write.
fn record(op: &Op, name: &str, shape: Shape, src: &[usize], made: &[Record]) -> Option<Record> {
    let computed = |op: &GgmlOp, words: Vec<i32>, src: Vec<Option<usize>>| Record {
        line: 0,
        name: name.to_owned(),
        op: op.clone(),
        dtype: shape.dtype,
        layout: Layout {
            ne: shape.ne,
            nb: packed(shape.dtype, shape.ne),
            offset: 0,
        },
        words,
        src,
        root: 0,
        is_view: false,
        is_input: false,
        is_output: false,
        role: None,
        also: Vec::new(),
    };
    let first = vec![src.first().copied()];
    let view = |op: &GgmlOp, words: Vec<i32>, offset: u64| {
        let x = &made[*src.first()?];
        Some(Record {
            layout: Layout {
                ne: shape.ne,
                nb: shape.nb,
                offset: x.layout.offset + offset,
            },
            root: x.root,
            is_view: true,
            ..computed(op, words, first.clone())
        })
    };
    match op {
        Op::Leaf { .. } => None,
        Op::Reshape(_) => view(&GgmlOp::Reshape, Vec::new(), 0),
        Op::Permute(axes) => {
            let p = Permute { axes: *axes };
            view(&GgmlOp::Permute(p), p.words(), 0)
        }
        Op::Slice { axis, start, .. } => view(&GgmlOp::View, Vec::new(), start * shape.nb[*axis]),
        Op::View { offset, .. } => view(&GgmlOp::View, Vec::new(), *offset),
        Op::Cont(_) => Some(computed(&GgmlOp::Cont, Vec::new(), first)),
        Op::Compute(c) | Op::Effect { compute: c, .. } => {
            let mut sources = src.iter().copied();
            let of = |&there: &bool| there.then(|| sources.next()).flatten();
            let src = c.present.iter().map(of).collect();
            Some(computed(&c.op, c.words.clone(), src))
        }
    }
}

pub(super) struct Maker<'a> {
    old: &'a [Record],
    pub(super) records: Vec<Record>,
}

impl Maker<'_> {
    pub(super) fn new(old: &[Record]) -> Maker<'_> {
        Maker {
            old,
            records: Vec::new(),
        }
    }

    fn push(&mut self, mut t: Record) -> usize {
        let at = self.records.len();
        t.line = at + 1;
        if !t.is_view {
            t.root = at;
        }
        self.records.push(t);
        at
    }

    pub(super) fn term(&mut self, terms: &Terms, id: Id, op: &Op, src: &[usize]) -> usize {
        let facts = &terms[id].data;
        let nb = match op {
            Op::Leaf { record, .. } => return self.push(self.old[*record].clone()),
            Op::View { nb, .. } => *nb,
            Op::Slice { .. } => self.records[src[0]].layout.nb,
            Op::Permute(axes) => permute_axes(axes, self.records[src[0]].layout.nb),
            _ => packed(facts.dtype, facts.ne),
        };
        let (ne, dtype) = (facts.ne, facts.dtype);
        let shape = Shape { ne, nb, dtype };
        match record(op, "", shape, src, &self.records) {
            Some(t) => self.push(t),
            None => src.first().copied().unwrap_or(0),
        }
    }

    /// Returns the record `at` if it owns packed memory and `name` is empty, else a copy with this name.
    pub(super) fn ensure_packed(&mut self, terms: &Terms, id: Id, at: usize, name: &str) -> usize {
        let t = &self.records[at];
        if !t.is_view && name.is_empty() {
            return at;
        }
        let facts = &terms[id].data;
        let (ne, dtype) = (facts.ne, facts.dtype);
        let nb = packed(dtype, ne);
        let shape = Shape { ne, nb, dtype };
        let copy = record(&Op::Cont(ne), name, shape, &[at], &self.records);
        match copy {
            Some(t) => self.push(Record {
                is_output: !name.is_empty(),
                ..t
            }),
            None => at,
        }
    }
}
