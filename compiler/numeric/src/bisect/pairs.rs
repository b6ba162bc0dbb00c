//! Pairs of records of two graphs that should compute the same.
//!
//! Records are paired by the first of these rules that fits: the same name and op; the same value; the same op on
//! paired operands; the same name; the same operand of paired ops. Each rule pairs in the order of computation.

use std::collections::BTreeMap;

use tpc_ggml::capture::Record;

use super::classes::{Class, Classes, Numbered, number};
use super::names::given;

/// The number of rounds. A leaf that is paired by its users gives new values to the next round.
const ROUNDS: usize = 3;

/// Pairs of records, and the numbers of their values.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// The pair of each record, per side.
    pub(super) of: [Vec<Option<usize>>; 2],
    /// The numbers of both sides.
    pub(super) numbered: [Numbered; 2],
}

impl Pairs {
    pub(super) fn find(records: [&[Record]; 2]) -> Pairs {
        let mut leaves = leaves_by_name(records);
        let mut out = round(records, &leaves);
        for _ in 1..ROUNDS {
            let all = all_leaves(records, &out);
            if all == leaves {
                break;
            }
            leaves = all;
            out = round(records, &leaves);
        }
        out
    }
}

/// Pairs of leaves, as (record of the first side, record of the second).
type LeafPairs = Vec<(usize, usize)>;

fn is_leaf(t: &Record) -> bool {
    t.is_leaf() && !t.is_view
}

fn leaves_by_name(records: [&[Record]; 2]) -> LeafPairs {
    let mut groups = Groups::default();
    for (side, records) in records.iter().enumerate() {
        for (i, t) in records.iter().enumerate().filter(|(_, t)| is_leaf(t)) {
            if let Some(name) = given(&t.name) {
                groups.add(side, name.to_owned(), i);
            }
        }
    }
    groups.in_order()
}

fn all_leaves(records: [&[Record]; 2], pairs: &Pairs) -> LeafPairs {
    let paired = pairs.of[0].iter().enumerate();
    paired
        .filter(|(i, _)| is_leaf(&records[0][*i]))
        .filter_map(|(i, j)| Some((i, (*j)?)))
        .collect()
}

/// True if paired leaves have the same content: the same number of elements in the same order.
fn alike(a: &Record, b: &Record) -> bool {
    a.elements() == b.elements() && a.dtype.is_integer() == b.dtype.is_integer()
}

fn round(records: [&[Record]; 2], leaves: &LeafPairs) -> Pairs {
    let mut pairing = Pairing::new(records);
    let mut numbers = [BTreeMap::new(), BTreeMap::new()];
    for (n, &(a, b)) in leaves.iter().enumerate() {
        pairing.pair(a, b);
        if alike(&records[0][a], &records[1][b]) {
            numbers[0].insert(a, n);
            numbers[1].insert(b, n);
        }
    }
    let mut classes = Classes::default();
    let numbered = [0, 1].map(|side| number(&mut classes, side, records[side], &numbers[side]));
    pairing.by_name_and_op(&numbered);
    pairing.by_value(&numbered);
    pairing.by_operands();
    pairing.by_name();
    pairing.by_users();
    Pairs {
        of: pairing.of,
        numbered,
    }
}

/// Records of both sides by a key.
struct Groups<K>(BTreeMap<K, [Vec<usize>; 2]>);

impl<K: Ord> Default for Groups<K> {
    fn default() -> Self {
        Groups(BTreeMap::new())
    }
}

impl<K: Ord> Groups<K> {
    fn add(&mut self, side: usize, key: K, record: usize) {
        self.0.entry(key).or_default()[side].push(record);
    }

    /// Returns the pairs of groups with the same number of records on both sides.
    fn in_order(&self) -> Vec<(usize, usize)> {
        let equal = self.0.values().filter(|[a, b]| a.len() == b.len());
        let pairs = equal.flat_map(|[a, b]| a.iter().copied().zip(b.iter().copied()));
        pairs.collect()
    }

    /// Returns the pairs of all groups, up to the shorter side.
    fn first(&self) -> Vec<(usize, usize)> {
        let pairs = self.0.values();
        let pairs = pairs.flat_map(|[a, b]| a.iter().copied().zip(b.iter().copied()));
        pairs.collect()
    }
}

struct Pairing<'r> {
    records: [&'r [Record]; 2],
    of: [Vec<Option<usize>>; 2],
}

impl<'r> Pairing<'r> {
    fn new(records: [&'r [Record]; 2]) -> Pairing<'r> {
        Pairing {
            records,
            of: records.map(|r| vec![None; r.len()]),
        }
    }

    fn pair(&mut self, a: usize, b: usize) {
        if self.of[0][a].is_none() && self.of[1][b].is_none() {
            self.of[0][a] = Some(b);
            self.of[1][b] = Some(a);
        }
    }

    fn pair_all(&mut self, pairs: Vec<(usize, usize)>) {
        for (a, b) in pairs {
            self.pair(a, b);
        }
    }

    /// Returns the unpaired records of a side, except leaves.
    fn open(&self, side: usize) -> Vec<(usize, &'r Record)> {
        let all = self.records[side].iter().enumerate();
        all.filter(|(i, t)| self.of[side][*i].is_none() && !is_leaf(t))
            .collect()
    }

    fn by_name_and_op(&mut self, numbered: &[Numbered; 2]) {
        // A group with more records on one side has an added op, so pair its equal values first.
        for with_value in [true, false] {
            let mut groups = Groups::default();
            for (side, numbered) in numbered.iter().enumerate() {
                for (i, t) in self.open(side) {
                    if let Some(name) = given(&t.name) {
                        let value = with_value.then(|| numbered.value[i]);
                        groups.add(side, (name, t.op.name(), value), i);
                    }
                }
            }
            self.pair_all(groups.in_order());
        }
    }

    fn by_value(&mut self, numbered: &[Numbered; 2]) {
        let mut groups: Groups<Class> = Groups::default();
        for (side, numbered) in numbered.iter().enumerate() {
            for (i, _) in self.open(side) {
                groups.add(side, numbered.value[i], i);
            }
        }
        self.pair_all(groups.first());
    }

    /// Pairs ops of one kind whose operands are pairs.
    fn by_operands(&mut self) {
        for (j, t) in self.open(1) {
            let operands: Vec<Option<Option<usize>>> =
                t.src.iter().map(|s| s.map(|s| self.of[1][s])).collect();
            if !operands.iter().flatten().any(Option::is_some) {
                continue;
            }
            let same = |(_, of_a): &(usize, &Record)| {
                let paired = of_a.src.iter().zip(&operands);
                of_a.op.name() == t.op.name()
                    && of_a.src.len() == operands.len()
                    && paired.into_iter().all(|(a, b)| a.map(Some) == *b)
            };
            if let Some((i, _)) = self.open(0).into_iter().find(same) {
                self.pair(i, j);
            }
        }
    }

    fn by_name(&mut self) {
        let mut groups = Groups::default();
        for side in [0, 1] {
            for (i, t) in self.open(side) {
                if let Some(name) = given(&t.name) {
                    groups.add(side, name, i);
                }
            }
        }
        self.pair_all(groups.in_order());
    }

    /// Pairs the operands of pairs, from the last op to the first.
    fn by_users(&mut self) {
        for i in (0..self.records[0].len()).rev() {
            let Some(j) = self.of[0][i] else { continue };
            let sources = self.records[0][i].src.iter().zip(&self.records[1][j].src);
            let both: Vec<(usize, usize)> =
                sources.filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
            for (a, b) in both {
                let (of_a, of_b) = (&self.records[0][a], &self.records[1][b]);
                if is_leaf(of_a) == is_leaf(of_b) && (!is_leaf(of_a) || alike(of_a, of_b)) {
                    self.pair(a, b);
                }
            }
        }
    }
}
