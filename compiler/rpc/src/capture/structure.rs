//! Graphs that differ in sizes only.
//!
//! A prompt and a single token are one program with other sizes. Which sizes are those of the batch is seen where there are
//! several graphs: the capture of a kind of graph is its largest one, with the sizes of the others beside it.

use std::collections::BTreeMap;
use std::fmt::Write;

use tpc_ggml::capture::Record;
use tpc_ggml::op::Family;
use tpc_ir::RANK;

/// The most sizes that are kept of a kind of graph, besides its own.
const MAX_SIZES: usize = 15;
/// The most kinds of graphs that are kept.
const MAX_KINDS: usize = 256;

/// The kinds of graphs that were captured.
#[derive(Debug, Default)]
pub(super) struct Structures {
    /// The position of each structure among the kinds.
    known: BTreeMap<String, usize>,
    kinds: Vec<Kind>,
    computed: u64,
}

/// Graphs of one structure.
#[derive(Debug)]
struct Kind {
    /// The largest graph.
    records: Vec<Record>,
    /// The sizes of other graphs, each as many as there are records.
    others: Vec<Vec<[u64; RANK]>>,
}

pub(super) fn sizes(records: &[Record]) -> Vec<[u64; RANK]> {
    records.iter().map(Record::ne).collect()
}

/// The number of elements of all tensors.
pub(super) fn elements(sizes: &[[u64; RANK]]) -> u64 {
    let each = sizes.iter().map(|ne| ne.iter().product::<u64>());
    each.fold(0, u64::saturating_add)
}

impl Structures {
    /// A graph was computed again.
    pub(super) fn again(&mut self) {
        self.computed += 1;
    }

    /// The number of graphs that were computed.
    pub(super) const fn computed(&self) -> u64 {
        self.computed
    }

    /// Adds a graph.
    pub(super) fn add(&mut self, records: Vec<Record>) {
        self.computed += 1;
        let key = key(&records);
        let Some(&at) = self.known.get(&key) else {
            if self.kinds.len() < MAX_KINDS {
                self.known.insert(key, self.kinds.len());
                self.kinds.push(Kind {
                    records,
                    others: Vec::new(),
                });
            }
            return;
        };
        self.kinds[at].add(records);
    }

    /// The records of every kind, with the sizes of its other graphs.
    pub(super) fn records(&self) -> Vec<Vec<Record>> {
        self.kinds.iter().map(Kind::with_sizes).collect()
    }
}

impl Kind {
    fn add(&mut self, records: Vec<Record>) {
        let (own, new) = (sizes(&self.records), sizes(&records));
        if own == new || self.others.contains(&new) {
            return;
        }
        let kept = if elements(&new) > elements(&own) {
            self.records = records;
            own
        } else {
            new
        };
        if self.others.len() < MAX_SIZES {
            self.others.push(kept);
        }
    }

    fn with_sizes(&self) -> Vec<Record> {
        with_others(&self.records, &self.others)
    }
}

/// Records with the sizes of other graphs of their structure beside their own.
pub(super) fn with_others(records: &[Record], others: &[Vec<[u64; RANK]>]) -> Vec<Record> {
    let mut out = records.to_vec();
    for (i, record) in out.iter_mut().enumerate() {
        record.also = others.iter().map(|sizes| sizes[i]).collect();
    }
    out
}

/// Everything of a graph but sizes, strides and offsets.
pub(super) fn key(records: &[Record]) -> String {
    let mut out = String::new();
    for t in records {
        let words = match t.op.family() {
            // Offsets and sizes of views.
            Family::View => &[][..],
            _ => &t.words,
        };
        let root = t.is_view.then_some(t.root);
        let _ = write!(
            out,
            "{}:{}:{words:?}:{:?}:{root:?}:{}{};",
            t.op.name(),
            t.dtype,
            t.src,
            t.is_input,
            t.is_output
        );
    }
    out
}
