//! Graphs that differ only in sizes, which show the dimensions that depend on the batch. The capture has the largest
//! graph, with the sizes of the others.

use std::collections::BTreeMap;
use std::fmt::Write;

use tpc_ggml::capture::Record;
use tpc_ggml::op::Family;
use tpc_ir::RANK;

/// The maximum number of size sets per kind, in addition to the largest graph's.
const MAX_SIZES: usize = 15;
const MAX_KINDS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Structures {
    known: BTreeMap<String, usize>,
    kinds: Vec<Kind>,
    computed: u64,
}

#[derive(Debug)]
struct Kind {
    records: Vec<Record>,
    /// The sizes of the other graphs; each graph has one entry per record.
    others: Vec<Vec<[u64; RANK]>>,
}

pub(super) fn sizes(records: &[Record]) -> Vec<[u64; RANK]> {
    records.iter().map(Record::ne).collect()
}

pub(super) fn elements(sizes: &[[u64; RANK]]) -> u64 {
    let each = sizes.iter().map(|ne| ne.iter().product::<u64>());
    each.fold(0, u64::saturating_add)
}

impl Structures {
    pub(super) fn again(&mut self) {
        self.computed += 1;
    }

    pub(super) const fn computed(&self) -> u64 {
        self.computed
    }

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

pub(super) fn with_others(records: &[Record], others: &[Vec<[u64; RANK]>]) -> Vec<Record> {
    let mut out = records.to_vec();
    for (i, record) in out.iter_mut().enumerate() {
        record.also = others.iter().map(|sizes| sizes[i]).collect();
    }
    out
}

/// Returns a key of all fields except sizes, strides and offsets.
pub(super) fn key(records: &[Record]) -> String {
    let mut out = String::new();
    for t in records {
        let words = match t.op.family() {
            // The words of a view are offsets and sizes.
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
