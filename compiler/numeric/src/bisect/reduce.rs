//! The part of a graph whose values are not known to be equal in the other graph.
//!
//! An op of this part may read values that are equal in both graphs. Such a value becomes a leaf, with the same content
//! in both graphs, so that large models need no run of the ops before it.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ggml::capture::{Layout, Record, Role, packed};
use tpc_ggml::op::GgmlOp;
use tpc_ir::{DType, RANK};

use super::classes::{Class, Numbered};

/// The largest size of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct SizeLimits {
    /// The most bytes of all values, at 8 bytes per element.
    pub(super) bytes: u64,
    /// The most multiplications.
    pub(super) products: u64,
}

/// The prefix of the leaves' names; the number of the value follows.
const PREFIX: &str = "value ";

/// A part of a graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) records: Vec<Record>,
    /// The content of memory that each record makes: its number.
    pub(super) makes: BTreeMap<usize, Class>,
    /// The ops that are left out, because the part would be too large.
    pub(super) left_out: usize,
}

/// Facts about the leaves of a part.
#[derive(Clone, Debug, Default)]
pub(super) struct LeafFacts {
    /// The leaves that are weights of the model.
    pub(super) weights: BTreeSet<Class>,
    /// The element type of each paired leaf.
    pub(super) types: BTreeMap<Class, DType>,
}

/// Returns the number of the value in a leaf's name.
pub(super) fn number_in(name: &str) -> Option<Class> {
    let digits = name.strip_prefix(PREFIX)?;
    digits.split('#').next()?.parse().ok()
}

/// Returns the part with these ops, in order, up to the limits of its size.
pub(super) fn part(
    records: &[Record],
    numbered: &Numbered,
    ops: &BTreeSet<usize>,
    facts: &LeafFacts,
    limits: SizeLimits,
) -> Part {
    let mut out = Builder {
        records,
        facts,
        limits,
        part: Part::default(),
        held: BTreeMap::new(),
        leaves: BTreeMap::new(),
        views: BTreeMap::new(),
        bytes: 0,
        products: 0,
        full: false,
    };
    for &i in ops {
        out.op(i, numbered);
    }
    out.part
}

struct Builder<'a> {
    records: &'a [Record],
    facts: &'a LeafFacts,
    limits: SizeLimits,
    part: Part,
    /// The content of each owner that the part computes: its number, and the position of its memory in the part.
    held: BTreeMap<usize, (Class, usize)>,
    leaves: BTreeMap<(Class, DType), usize>,
    views: BTreeMap<(usize, DType, Layout), usize>,
    bytes: u64,
    products: u64,
    full: bool,
}

impl Builder<'_> {
    fn op(&mut self, i: usize, numbered: &Numbered) {
        let t = &self.records[i];
        let row = t.src.first().copied().flatten();
        let depth = row.map_or(1, |s| self.records[s].ne()[0]).max(1);
        let products = t.elements().saturating_mul(depth);
        let whole = self.records[t.root].elements();
        let reads = t.src.iter().flatten();
        let read: u64 = reads
            .map(|s| self.records[self.records[*s].root].elements())
            .sum();
        let bytes = whole.saturating_add(read).saturating_mul(8);
        self.full |= self.bytes.saturating_add(bytes) > self.limits.bytes
            || self.products.saturating_add(products) > self.limits.products;
        if self.full {
            self.part.left_out += 1;
            return;
        }
        self.bytes += whole.saturating_mul(8);
        self.products += products;
        let mut src = Vec::with_capacity(t.src.len());
        for (position, source) in t.src.iter().enumerate() {
            let Some(s) = *source else {
                src.push(None);
                continue;
            };
            let root = self.records[s].root;
            let content = match numbered.reads[i][position] {
                Some(reading) => Some(reading.memory),
                // The op only writes there, so the operand is in the memory of the result.
                None => numbered.before[i],
            };
            src.push(content.map(|c| self.read(s, root, c)));
        }
        let (root, is_view) = match (t.is_view, numbered.before[i]) {
            (true, Some(old)) => (self.memory(t.root, old), true),
            _ => (self.part.records.len(), false),
        };
        if is_view {
            // Later readers of the old content need a leaf of their own.
            self.leaves.retain(|_, leaf| *leaf != root);
        }
        let at = self.part.records.len();
        self.part.records.push(Record {
            src,
            root,
            is_view,
            also: Vec::new(),
            ..t.clone()
        });
        self.part.makes.insert(at, numbered.memory[i]);
        self.held.insert(t.root, (numbered.memory[i], root));
    }

    /// Returns the position of a record in the part, for a reader of this content.
    fn read(&mut self, s: usize, root: usize, content: Class) -> usize {
        let memory = self.memory(root, content);
        let (t, owner) = (&self.records[s], &self.records[root]);
        if t.layout == owner.layout && t.dtype == owner.dtype {
            return memory;
        }
        let key = (memory, t.dtype, t.layout);
        if let Some(&view) = self.views.get(&key) {
            return view;
        }
        let at = self.part.records.len();
        self.part.records.push(Record {
            op: GgmlOp::parse("VIEW", &[]),
            words: Vec::new(),
            src: vec![Some(memory)],
            root: memory,
            is_view: true,
            is_input: false,
            is_output: false,
            role: None,
            also: Vec::new(),
            ..t.clone()
        });
        self.views.insert(key, at);
        at
    }

    /// Returns the position of memory with this content.
    fn memory(&mut self, root: usize, content: Class) -> usize {
        if let Some(&(held, at)) = self.held.get(&root)
            && held == content
        {
            return at;
        }
        let owner = &self.records[root];
        let is_viewed = || {
            let mut all = self.records.iter().enumerate();
            all.any(|(i, t)| t.root == root && i != root)
        };
        let dtype = match self.facts.types.get(&content) {
            Some(&dtype) if dtype != owner.dtype && !is_viewed() => dtype,
            _ => owner.dtype,
        };
        let key = (content, dtype);
        if let Some(&leaf) = self.leaves.get(&key) {
            return leaf;
        }
        let at = self.part.records.len();
        let is_weight = self.facts.weights.contains(&content);
        self.part.records.push(leaf(
            format!("{PREFIX}{content}"),
            dtype,
            owner.ne(),
            at,
            is_weight,
        ));
        self.leaves.insert(key, at);
        self.part.makes.insert(at, content);
        self.bytes += owner.elements().saturating_mul(8);
        at
    }
}

fn leaf(name: String, dtype: DType, ne: [u64; RANK], at: usize, is_weight: bool) -> Record {
    Record {
        line: at + 1,
        name,
        op: GgmlOp::parse("NONE", &[]),
        dtype,
        layout: Layout {
            ne,
            nb: packed(dtype, ne),
            offset: 0,
        },
        words: Vec::new(),
        src: Vec::new(),
        root: at,
        is_view: false,
        is_input: false,
        is_output: false,
        role: Some(match is_weight {
            true => Role::Weight,
            false => Role::Input,
        }),
        also: Vec::new(),
    }
}

/// Adds an op without relation to the others, because a graph whose ops only write to leaves has no result.
pub(super) fn with_result(records: &mut Vec<Record>) {
    let at = records.len();
    let [one, two] =
        [at, at + 1].map(|at| leaf("result".to_owned(), DType::F32, [1, 1, 1, 1], at, false));
    records.push(one);
    records.push(Record {
        op: GgmlOp::parse("SQR", &[]),
        src: vec![Some(at)],
        role: None,
        ..two
    });
}
