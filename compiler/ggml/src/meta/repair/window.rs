use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use egg::Id;

use super::analysis::{Engine, Terms};
use super::language::{Compute, Node, Op};
use super::sizes;
use crate::capture::{Record, packed};
use crate::meta::infer::Inference;
use crate::meta::states::SplitState;
use crate::op::GgmlOp;

pub(super) struct Window {
    pub(super) terms: Terms,
    pub(super) range: Range<usize>,
    pub(super) class: BTreeMap<usize, Id>,
    pub(super) original: Vec<(usize, Node)>,
    /// The records whose values are needed outside the window, in order.
    pub(super) roots: Vec<usize>,
    /// The number of writes before the window, by owner of the memory.
    pub(super) versions: BTreeMap<usize, u32>,
}

type Versions = BTreeMap<usize, u32>;

/// True if a repair leaves the record unchanged.
pub(super) fn is_kept(t: &Record) -> bool {
    t.is_leaf() || t.is_empty()
}

impl Window {
    /// Returns the records of `range` as terms. `inference` has the states of all leaves, and of the records before
    /// the refused one.
    pub(super) fn new(records: &[Record], range: Range<usize>, inference: &Inference) -> Window {
        let mut w = Window {
            terms: Terms::new(Engine::default()),
            range: range.clone(),
            class: BTreeMap::new(),
            original: Vec::new(),
            roots: Vec::new(),
            versions: BTreeMap::new(),
        };
        let mut versions = Versions::new();
        for t in &records[..range.start] {
            if t.writes() {
                *versions.entry(t.root).or_insert(0) += 1;
            }
        }
        w.versions.clone_from(&versions);
        for i in range.clone() {
            let t = &records[i];
            if is_kept(t) {
                continue;
            }
            let id = w.term(records, inference, &mut versions, i);
            w.class.insert(i, id);
            if t.writes() {
                *versions.entry(t.root).or_insert(0) += 1;
            }
        }
        w.roots = roots(records, &range);
        w.terms.rebuild();
        w
    }

    fn add(&mut self, op: Op, children: Vec<Id>) -> Id {
        self.terms.add(Node { op, children })
    }

    fn source(
        &mut self,
        records: &[Record],
        inference: &Inference,
        versions: &Versions,
        i: usize,
    ) -> Id {
        if let Some(&id) = self.class.get(&i) {
            return id;
        }
        let t = &records[i];
        let known = inference.leaves.get(&i).or(inference.states.get(i));
        let state = known.unwrap_or(&SplitState::Mirrored);
        self.terms.analysis.leaf(i, t, state);
        let version = versions.get(&t.root).copied().unwrap_or(0);
        self.add(Op::Leaf { record: i, version }, Vec::new())
    }

    fn term(
        &mut self,
        records: &[Record],
        inference: &Inference,
        versions: &mut Versions,
        i: usize,
    ) -> Id {
        let t = &records[i];
        let there: Vec<usize> = t.src.iter().flatten().copied().collect();
        let children: Vec<Id> = there
            .iter()
            .map(|&s| self.source(records, inference, versions, s))
            .collect();
        let first = there.first().map(|&s| &records[s]);
        let op = match (&t.op, first) {
            _ if t.writes() => Op::Effect {
                record: i,
                compute: compute(t),
            },
            _ if !sizes::fit(t, records) => Op::Compute(unknown(t)),
            (GgmlOp::Reshape, Some(_)) => Op::Reshape(t.ne()),
            (GgmlOp::Permute(p), Some(_)) => Op::Permute(p.axes),
            (GgmlOp::Transpose, Some(_)) => Op::Permute([1, 0, 2, 3]),
            (GgmlOp::Cont, Some(_)) => Op::Cont(t.ne()),
            (GgmlOp::View, Some(from)) => return self.view(t, from, children[0], i),
            _ => Op::Compute(compute(t)),
        };
        // Only a view's first source counts.
        let children = match op {
            Op::Compute(_) | Op::Effect { .. } => children,
            _ => children[..1].to_vec(),
        };
        self.original.push((
            i,
            Node {
                op: op.clone(),
                children: children.clone(),
            },
        ));
        let x = children.first().copied();
        let id = self.add(op.clone(), children);
        if let (Op::Cont(ne), Some(x)) = (op, x) {
            // A copy equals its source, possibly reshaped.
            let same = match self.terms[x].data.ne == ne {
                true => x,
                false => self.add(Op::Reshape(ne), vec![x]),
            };
            self.terms.union(id, same);
            self.terms.rebuild();
        }
        id
    }

    fn view(&mut self, t: &Record, from: &Record, x: Id, i: usize) -> Id {
        let offset = t.layout.offset.saturating_sub(from.layout.offset);
        let tight = |t: &Record| packed(t.dtype, t.ne()) == t.layout.nb;
        let whole = t.elements() == from.elements();
        if whole && t.ne() == from.ne() && t.layout.nb == from.layout.nb {
            return x;
        }
        let op = if whole && tight(t) && tight(from) {
            Op::Reshape(t.ne())
        } else if t.layout.nb == from.layout.nb
            && let Some(slices) = slices(t, from, offset)
        {
            let mut id = x;
            for &(axis, start, len) in &slices {
                let op = Op::Slice { axis, start, len };
                let node = Node {
                    op: op.clone(),
                    children: vec![id],
                };
                if slices.len() == 1 {
                    self.original.push((i, node.clone()));
                }
                id = self.terms.add(node);
            }
            return id;
        } else if tight(from) {
            Op::View {
                ne: t.ne(),
                nb: t.layout.nb,
                offset,
            }
        } else {
            // Keep a view of a view in another order.
            Op::Compute(compute(t))
        };
        let node = Node {
            op,
            children: vec![x],
        };
        self.original.push((i, node.clone()));
        self.terms.add(node)
    }
}

fn compute(t: &Record) -> Compute {
    Compute {
        op: t.op.clone(),
        words: t.words.clone(),
        ne: t.ne(),
        dtype: t.dtype,
        present: t.src.iter().map(Option::is_some).collect(),
    }
}

/// Returns an unknown op without equations for a record.
fn unknown(t: &Record) -> Compute {
    Compute {
        op: GgmlOp::Unknown(t.op.name().to_owned()),
        ..compute(t)
    }
}

/// Returns the ranges that a view with its source's strides takes of each axis.
fn slices(t: &Record, from: &Record, offset: u64) -> Option<Vec<(usize, u64, u64)>> {
    let mut left = offset;
    let mut out = Vec::new();
    let mut axes: Vec<usize> = (0..4).collect();
    axes.sort_by_key(|&a| std::cmp::Reverse(from.layout.nb[a]));
    for axis in axes {
        let (n, len, nb) = (from.ne()[axis], t.ne()[axis], from.layout.nb[axis]);
        if n == 1 && len == 1 {
            continue;
        }
        let start = left.checked_div(nb).unwrap_or(0).min(n);
        left -= start * nb;
        if start + len > n || (axis == 0 && from.dtype.block_len() > 1 && len != n) {
            return None;
        }
        if len != n {
            out.push((axis, start, len));
        }
    }
    (left == 0 && !out.is_empty()).then_some(out)
}

/// Returns the records in the range that write, are results, or have a reader outside the range.
fn roots(records: &[Record], range: &Range<usize>) -> Vec<usize> {
    let mut read = BTreeSet::new();
    let mut anywhere = BTreeSet::new();
    for (i, t) in records.iter().enumerate() {
        for &s in t.src.iter().flatten() {
            anywhere.insert(s);
            if !range.contains(&i) || is_kept(t) {
                read.insert(s);
            }
        }
        if t.is_view && (!range.contains(&i) || is_kept(t)) {
            read.insert(t.root);
        }
    }
    let wanted = |&i: &usize| {
        let t = &records[i];
        let is_result = !anywhere.contains(&i) && !t.is_pure_view();
        !is_kept(t) && (read.contains(&i) || t.writes() || t.is_output || is_result)
    };
    range.clone().filter(wanted).collect()
}
