//! The proof's e-graph. Terms are added in program order, each with all consequences of the rules.
//!
//! - `mod.rs`: adding terms, and saturation by rules;
//! - `access.rs`: the terms of an e-class, by kind;
//! - `model_terms.rs`: the terms of the model;
//! - `of_model.rs`: the model's views, sums, repetitions and set slices.

mod access;
mod model_terms;
mod of_model;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use egg::{EGraph, Id};
use rustc_hash::FxHashSet;
use tpc_ir::{Budget, Resource};

use super::analysis::TermAnalysis;
use super::interner::Tables;
use super::language::{Args, Head, Term, is_empty};
use super::relations::Relations;
use model_terms::ModelTerms;

pub(super) use access::Selection;
pub(super) use of_model::{ModelRepetition, Repetition};

/// The maximum number of rounds per e-class. Few are needed: each rule shrinks a term or brings it closer to the model.
const MAX_ROUNDS: usize = 24;
const MAX_TERMS: usize = 400_000;
/// The number of a view's intervals charged as one step.
const INTERVALS: usize = 2;
/// The number of compared intervals charged as one step when index sets are composed.
const COMPOSED: usize = 4;
/// The steps charged for finding the axes of an index set, besides its intervals.
const AXES: usize = 1;
/// The number of terms charged as one step when no term of an e-class is new.
const KNOWN_TERMS: usize = 2;
/// The maximum number of arguments of a term, more than any number of devices.
const MAX_ARGS: usize = 1 << 10;
/// Budget steps per step of this module; each step here compares and adds terms.
const STEP: u64 = 3;
/// The maximum number of an e-class's views that the rules use. Models need a few. If a graph cuts and joins one value
/// in dozens of ways, each value is a view of all others; the first suffice.
const MAX_VIEWS: usize = 32;
/// The maximum length of a chain of terms, each added because of the term before.
const MAX_DEPTH: usize = 96;

pub(super) struct ProofRule {
    pub(super) name: &'static str,
    pub(super) equation: &'static str,
    /// Adds the terms that the equation gives for a term of an e-class, and returns their e-classes.
    pub(super) apply: fn(&mut TermGraph, &Term, Id) -> Vec<Id>,
}

pub(super) struct TermGraph {
    pub(super) graph: EGraph<Term, TermAnalysis>,
    rules: &'static [ProofRule],
    done: FxHashSet<Term>,
    revisit: BTreeSet<Id>,
    depth: usize,
    /// The number of terms at which rules stop adding terms.
    pub(super) max_terms: usize,
    model: ModelTerms,
    pub(super) relations: Relations,
    pub(super) of_model: bool,
    /// Numbers of parts into which the programs divide caches by cells.
    pub(super) cell_parts: Vec<u64>,
    /// The model's attention over parts of the cells, and the parts together.
    pub(super) attention_parts: Vec<Id>,
    /// True if views of the model's values count as slices of the model.
    pub(super) notes_slices: bool,
    without: Option<String>,
    pub(super) found: BTreeMap<&'static str, u64>,
    steps: Meter,
    segments: Meter,
    pub(super) cut_short: bool,
}

#[derive(Debug)]
struct Meter {
    used: Cell<u64>,
    limit: u64,
}

impl Meter {
    fn new(limit: u64) -> Meter {
        Meter {
            used: Cell::new(0),
            limit,
        }
    }

    fn add(&self, n: usize) {
        self.used.set(self.used.get().saturating_add(n as u64));
    }

    fn is_exhausted(&self) -> bool {
        self.used.get() > self.limit
    }
}

impl TermGraph {
    pub(super) fn new(
        rules: &'static [ProofRule],
        without: Option<&str>,
        budget: &Budget,
    ) -> TermGraph {
        let analysis = TermAnalysis {
            tables: Tables::default(),
            contradiction: false,
            domains: Vec::new(),
        };
        TermGraph {
            graph: EGraph::new(analysis),
            rules,
            done: FxHashSet::default(),
            revisit: BTreeSet::new(),
            depth: 0,
            max_terms: usize::try_from(budget.remaining(Resource::Terms))
                .map_or(MAX_TERMS, |n| n.min(MAX_TERMS)),
            model: ModelTerms::default(),
            relations: Relations::default(),
            of_model: true,
            cell_parts: Vec::new(),
            attention_parts: Vec::new(),
            notes_slices: true,
            without: without.map(str::to_owned),
            found: BTreeMap::new(),
            steps: Meter::new(budget.remaining(Resource::Steps) / STEP),
            segments: Meter::new(budget.remaining(Resource::Segments)),
            cut_short: false,
        }
    }

    /// Adds a term and all terms that the rules derive from it. Returns its e-class.
    pub(super) fn add(&mut self, head: Head, args: Vec<Id>) -> Id {
        let mut term = Term {
            head,
            args: args.into(),
        };
        self.settle(&mut term);
        if let Some(id) = self.graph.lookup(term.clone()) {
            return id;
        }
        let size = self.graph.total_size();
        if self.steps.is_exhausted()
            || self.segments.is_exhausted()
            || size >= self.max_terms
            || term.args.len() > MAX_ARGS
            || self.depth > MAX_DEPTH
        {
            self.cut_short = true;
        }
        let sum = (self.of_model && head == Head::Sum).then(|| term.args.to_vec());
        let id = self.graph.add(term);
        if let Some(ty) = self.ty(id).filter(|t| is_empty(t)).cloned() {
            // All values without elements are equal, and rules do not apply to them.
            let ty = self.graph.analysis.tables.types.intern(&ty);
            let empty = self.graph.add(Term {
                head: Head::Zero(ty),
                args: Args::new(),
            });
            self.unite(id, empty);
            return self.graph.find(id);
        }
        if let Some(args) = sum {
            self.model.sums.push((id, args));
        }
        self.depth += 1;
        self.saturate(id);
        while self.depth == 1
            && let Some(parent) = self.revisit.pop_first()
        {
            self.saturate(self.graph.find(parent));
        }
        self.depth -= 1;
        self.graph.find(id)
    }

    pub(super) fn lookup(&self, head: Head, args: Vec<Id>) -> Option<Id> {
        let mut term = Term {
            head,
            args: args.into(),
        };
        self.settle(&mut term);
        self.graph.lookup(term)
    }

    fn settle(&self, term: &mut Term) {
        for a in &mut term.args {
            *a = self.graph.find(*a);
        }
        if term.head == Head::Sum {
            term.args.sort_by_key(|&a| (self.graph[a].data.age, a));
        }
    }

    fn is_settled(&self, term: &Term) -> bool {
        let key = |a: &Id| (self.graph[*a].data.age, *a);
        term.args.iter().all(|&a| self.graph.find(a) == a)
            && (term.head != Head::Sum || term.args.is_sorted_by_key(key))
    }

    fn saturate(&mut self, id: Id) {
        for _ in 0..MAX_ROUNDS {
            if self.is_saturated(id) {
                return;
            }
            let mut changed = false;
            let nodes = self.nodes(id);
            let mut views = 0;
            for term in nodes.iter() {
                if let Head::View(_) = term.head {
                    views += 1;
                    if views > MAX_VIEWS {
                        continue;
                    }
                }
                if self.cut_short || !self.done.insert(term.clone()) {
                    continue;
                }
                self.steps.add(1 + term.args.len());
                for rule in self.rules {
                    changed |= self.apply(rule, term, id);
                }
            }
            if !changed {
                return;
            }
        }
        self.cut_short = true;
    }

    /// True if the rules have seen all terms of an e-class as they are now.
    fn is_saturated(&self, id: Id) -> bool {
        let nodes = &self.graph[self.graph.find(id)].nodes;
        let seen = nodes
            .iter()
            .all(|t| self.is_settled(t) && self.done.contains(t));
        if seen {
            self.steps.add(1 + nodes.len() / KNOWN_TERMS);
        }
        seen
    }

    fn apply(&mut self, rule: &ProofRule, term: &Term, id: Id) -> bool {
        if self.without.as_deref() == Some(rule.name) {
            return false;
        }
        let mut changed = false;
        for other in (rule.apply)(self, term, id) {
            if self.graph.find(other) != self.graph.find(id) {
                *self.found.entry(rule.name).or_default() += 1;
                self.unite(id, other);
                changed = true;
            }
        }
        changed
    }

    /// Merges two e-classes. Terms with either as an argument may then equal other terms.
    fn unite(&mut self, a: Id, b: Id) {
        let parents = |id: Id| {
            self.graph[self.graph.find(id)]
                .parents()
                .collect::<Vec<Id>>()
        };
        let (of_a, of_b) = (parents(a), parents(b));
        self.graph.union(a, b);
        // Rebuilding visits all e-classes. If one of the two has no parents, congruence adds no equality, so rebuilding
        // is not needed.
        if !of_a.is_empty() && !of_b.is_empty() {
            self.revisit.extend(of_a);
            self.revisit.extend(of_b);
            self.graph.rebuild();
        }
    }

    /// Charges `n` steps. Returns true if steps are left.
    pub(super) fn charge(&self, n: usize) -> bool {
        self.steps.add(n);
        !self.steps.is_exhausted()
    }

    pub(super) fn used_resources(&self) -> [(Resource, u64); 3] {
        [
            (Resource::Terms, self.graph.total_size() as u64),
            (Resource::Segments, self.segments.used.get()),
            (Resource::Steps, STEP * self.steps.used.get()),
        ]
    }
}
