//! Ops with different parameters, types or sizes. Layers repeat most ops.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ggml::capture::{CapturedGraph, Record, Role};
use tpc_ir::{DType, RANK};

use crate::bisect::classes::{Classes, effective_words, number};
use crate::bisect::reduce::{LeafFacts, SizeLimits, part};

/// The largest op that runs: the output matrix of a vocabulary of 64,000, and a prompt of some tokens.
const LIMITS: SizeLimits = SizeLimits {
    bytes: 3 << 30,
    products: 1 << 33,
};

/// An op of the graph and its repetitions.
#[derive(Debug)]
pub(super) struct Distinct {
    /// The first op, by its position in the graph.
    pub(super) record: usize,
    /// The number of ops, with the first.
    pub(super) ops: usize,
    /// The op as a graph; `None` if it is too large.
    pub(super) part: Option<Alone>,
}

/// A graph of one op, whose operands are leaves.
#[derive(Debug)]
pub(super) struct Alone {
    pub(super) records: Vec<Record>,
    /// The position of the op.
    pub(super) wanted: usize,
}

/// The properties of a tensor that an op depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    dtype: DType,
    ne: [u64; RANK],
    nb: [u64; RANK],
    offset: u64,
    owner: [u64; RANK],
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    op: String,
    words: Vec<i32>,
    result: Shape,
    writes: bool,
    operands: Vec<Option<Shape>>,
}

fn shape(records: &[Record], i: usize) -> Shape {
    let t = &records[i];
    Shape {
        dtype: t.dtype,
        ne: t.ne(),
        nb: t.layout.nb,
        offset: t.layout.offset,
        owner: records[t.root].ne(),
    }
}

/// Returns the distinct ops, in order.
pub(super) fn ops(records: &[Record], graph: &CapturedGraph) -> Vec<Distinct> {
    let owners = records.iter().enumerate();
    let owners = owners.filter(|(_, t)| t.is_leaf() && !t.is_view);
    let leaves: BTreeMap<usize, usize> = owners.map(|(i, _)| (i, i)).collect();
    let numbered = number(&mut Classes::default(), 0, records, &leaves);
    let weights = graph.leaves.iter().filter(|leaf| leaf.role == Role::Weight);
    let facts = LeafFacts {
        weights: weights.map(|leaf| numbered.value[leaf.record]).collect(),
        types: BTreeMap::new(),
    };
    let mut known: BTreeMap<Key, usize> = BTreeMap::new();
    let mut out: Vec<Distinct> = Vec::new();
    for (i, t) in records.iter().enumerate() {
        if t.is_leaf() || t.is_pure_view() || t.is_empty() {
            continue;
        }
        let key = Key {
            op: t.op.name().to_owned(),
            words: effective_words(t),
            result: shape(records, i),
            writes: t.is_view,
            operands: t.src.iter().map(|s| s.map(|s| shape(records, s))).collect(),
        };
        if let Some(&at) = known.get(&key) {
            out[at].ops += 1;
            continue;
        }
        known.insert(key, out.len());
        let part = part(records, &numbered, &BTreeSet::from([i]), &facts, LIMITS);
        let op = part.records.len().checked_sub(1);
        out.push(Distinct {
            record: i,
            ops: 1,
            part: op.filter(|_| part.left_out == 0).map(|wanted| Alone {
                records: part.records,
                wanted,
            }),
        });
    }
    out
}
