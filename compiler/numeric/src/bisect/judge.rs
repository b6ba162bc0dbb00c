//! Compares the values of pairs, and finds the first op whose value differs.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use tpc_core::golden::Distance;
use tpc_ggml::capture::Record;

use super::classes::{Class, Reading};
use super::pairs::Pairs;
use super::run::Memory;
use super::structure::changes;
use super::values::{between, elements};

/// The pairs of results with their agreement, and the results (graph, record) without a pair whose value the other graph
/// lacks.
pub(super) type Results = (Vec<(usize, usize, Agreement)>, Vec<(usize, usize)>);

/// The agreement of two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Agreement {
    /// The values are equal for all inputs.
    ByStructure,
    /// The values of the run agree.
    ByValue(Distance),
    /// The values of the run differ.
    Differ(Distance),
    /// The run did not compute the values.
    Unknown,
}

impl Agreement {
    pub(super) fn agrees(self) -> bool {
        matches!(self, Agreement::ByStructure | Agreement::ByValue(_))
    }

    pub(super) fn distance(self) -> Option<Distance> {
        match self {
            Agreement::ByStructure => Some(Distance {
                nmse: 0.0,
                max_abs: 0.0,
            }),
            Agreement::ByValue(d) | Agreement::Differ(d) => Some(d),
            Agreement::Unknown => None,
        }
    }
}

/// The kind of the first difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Both graphs have the op.
    Changed,
    /// Only the first graph has the op.
    Missing,
    /// Only the second graph has the op.
    Added,
}

/// The first op whose value differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct First {
    pub(super) kind: Kind,
    /// The op in each graph.
    pub(super) op: [Option<usize>; 2],
    /// The first pair with other values: the op itself, or the first pair that depends on the op.
    pub(super) pair: Option<(usize, usize)>,
}

pub(super) struct Judge<'a> {
    pub(super) records: [&'a [Record]; 2],
    pub(super) pairs: &'a Pairs,
    pub(super) memory: [Memory; 2],
    pub(super) tolerance: f64,
    /// The results of each graph: outputs, and last writes to leaves.
    pub(super) results: [Vec<usize>; 2],
    /// The agreement of each record of the second graph with its pair.
    of_second: OnceCell<Vec<Option<Agreement>>>,
    values: OnceCell<[BTreeSet<Class>; 2]>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        records: [&'a [Record]; 2],
        pairs: &'a Pairs,
        memory: [Memory; 2],
        results: [Vec<usize>; 2],
        tolerance: f64,
    ) -> Judge<'a> {
        Judge {
            records,
            pairs,
            memory,
            tolerance,
            results,
            of_second: OnceCell::new(),
            values: OnceCell::new(),
        }
    }

    fn content(&self, side: usize, memory: Class, record: usize) -> Option<Vec<f64>> {
        let t = &self.records[side][record];
        let owner = &self.records[side][t.root];
        let held = self.memory[side].get(&memory);
        let held = held.or_else(|| self.memory[1 - side].get(&memory))?;
        elements(t, owner, held)
    }

    fn value(&self, side: usize, record: usize) -> Option<Vec<f64>> {
        self.content(side, self.pairs.numbered[side].memory[record], record)
    }

    fn compare(&self, a: Option<Vec<f64>>, b: Option<Vec<f64>>) -> Agreement {
        match (a, b) {
            (Some(a), Some(b)) => {
                let d = between(&a, &b);
                match d.nmse <= self.tolerance {
                    true => Agreement::ByValue(d),
                    false => Agreement::Differ(d),
                }
            }
            _ => Agreement::Unknown,
        }
    }

    /// Compares two operands.
    pub(super) fn readings(&self, a: Reading, b: Reading) -> Agreement {
        if a.value == b.value {
            return Agreement::ByStructure;
        }
        self.compare(
            self.content(0, a.memory, a.record),
            self.content(1, b.memory, b.record),
        )
    }

    /// Returns the agreement of each record of the second graph with its pair; `None` without a pair.
    pub(super) fn agreements(&self) -> &[Option<Agreement>] {
        self.of_second.get_or_init(|| {
            let [of_a, of_b] = &self.pairs.numbered;
            let pairs = self.pairs.of[1].iter().enumerate();
            pairs
                .map(|(j, i)| {
                    let i = (*i)?;
                    if of_a.value[i] == of_b.value[j] {
                        return Some(Agreement::ByStructure);
                    }
                    Some(self.compare(self.value(0, i), self.value(1, j)))
                })
                .collect()
        })
    }

    /// True if another record of the other graph has this record's value.
    fn is_elsewhere(&self, side: usize, record: usize) -> bool {
        let values = self.values.get_or_init(|| {
            [0, 1].map(|side| self.pairs.numbered[side].value.iter().copied().collect())
        });
        if values[1 - side].contains(&self.pairs.numbered[side].value[record]) {
            return true;
        }
        let Some(own) = self.value(side, record) else {
            return false;
        };
        let size = self.records[side][record].elements();
        let other = self.records[1 - side].iter().enumerate();
        other
            .filter(|(_, t)| !t.is_leaf() && t.elements() == size)
            .filter_map(|(j, _)| self.value(1 - side, j))
            .any(|value| between(&own, &value).nmse <= self.tolerance)
    }

    /// Returns the results of both graphs.
    pub(super) fn results(&self) -> Results {
        let mut paired = Vec::new();
        let mut alone = Vec::new();
        let agreements = self.agreements();
        for &j in &self.results[1] {
            match (self.pairs.of[1][j], agreements[j]) {
                (Some(i), Some(agreement)) => paired.push((i, j, agreement)),
                _ if self.is_elsewhere(1, j) => {}
                _ => alone.push((1, j)),
            }
        }
        for &i in &self.results[0] {
            if self.pairs.of[0][i].is_none() && !self.is_elsewhere(0, i) {
                alone.push((0, i));
            }
        }
        (paired, alone)
    }

    /// Returns the changes of the op itself.
    fn is_changed(&self, i: usize, j: usize) -> bool {
        let all = changes(self.records, self.pairs, i, j);
        all.iter().any(|c| c.own)
    }

    /// Finds the first op whose value differs.
    pub(super) fn first(&self) -> Option<First> {
        let agreements = self.agreements();
        let differing: Vec<(usize, usize)> = (0..agreements.len())
            .filter_map(|j| {
                let i = self.pairs.of[1][j]?;
                let differs = match agreements[j]? {
                    Agreement::Differ(_) => true,
                    Agreement::Unknown => self.is_changed(i, j) && !self.records[1][j].is_leaf(),
                    Agreement::ByStructure | Agreement::ByValue(_) => false,
                };
                differs.then_some((i, j))
            })
            .collect();
        let (paired, alone) = self.results();
        let Some(&(i, j)) = differing.first() else {
            let &(side, record) = alone.first()?;
            return Some(self.lone(side, self.first_alone(side, record).unwrap_or(record), None));
        };
        let same_results = alone.is_empty() && paired.iter().all(|(.., a)| a.agrees());
        let renamed = |&(i, j): &(usize, usize)| self.is_elsewhere(0, i) && self.is_elsewhere(1, j);
        if same_results && differing.iter().all(renamed) {
            return None;
        }
        let pair = Some((i, j));
        let changed = First {
            kind: Kind::Changed,
            op: [Some(i), Some(j)],
            pair,
        };
        if self.is_changed(i, j) {
            return Some(changed);
        }
        // Ops of one graph that lead to the pair and whose values the other graph lacks.
        Some(match (self.first_alone(0, i), self.first_alone(1, j)) {
            (Some(a), None) => self.lone(0, a, pair),
            (None, Some(b)) => self.lone(1, b, pair),
            (Some(a), Some(b)) => First {
                op: [Some(a), Some(b)],
                ..changed
            },
            (None, None) => changed,
        })
    }

    fn lone(&self, side: usize, record: usize, pair: Option<(usize, usize)>) -> First {
        let (kind, op) = match side {
            0 => (Kind::Missing, [Some(record), None]),
            _ => (Kind::Added, [None, Some(record)]),
        };
        First { kind, op, pair }
    }

    /// Returns the first op without a pair that leads to a record through ops without pairs, if the other graph lacks
    /// its value.
    fn first_alone(&self, side: usize, record: usize) -> Option<usize> {
        let mut found = BTreeMap::new();
        let mut open: Vec<usize> = self.records[side][record]
            .src
            .iter()
            .flatten()
            .copied()
            .collect();
        while let Some(s) = open.pop() {
            let t = &self.records[side][s];
            if self.pairs.of[side][s].is_some() || t.is_leaf() || found.contains_key(&s) {
                continue;
            }
            found.insert(s, self.is_elsewhere(side, s));
            open.extend(t.src.iter().flatten());
        }
        let lacking = found.into_iter().filter(|(_, elsewhere)| !elsewhere);
        lacking.map(|(s, _)| s).next()
    }
}
