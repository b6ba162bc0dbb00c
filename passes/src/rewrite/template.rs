//! Rewriting the shape of a region.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use egg::{Id, Runner, SimpleScheduler};
use tpc_ir::{GroupData, Op};

use super::analysis::{Table, Terms, insert};
use super::extract::{Chosen, Classes, Term};
use super::language::{Head, Node, OpRef, OutRef};
use super::layers::{Arg, Shape, Step, class_data};
use super::price::{Applied, Machine, Prices};
use super::rules::{Rule, Runnable};
use super::{Counts, Limits, Stop};

/// What a made step or a root reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A leaf of the region.
    Leaf(u32),
    /// A result of a made step.
    Made(u32, u32),
}

/// A step of a rewritten region.
#[derive(Clone, Debug)]
pub(super) enum Made {
    /// The region's instruction that defines this leaf.
    Leaf(u32),
    /// An op.
    Apply {
        op: OpRef,
        out: OutRef,
        operands: Vec<From>,
        /// Numbers of the region's values that its results are named after.
        origins: Vec<Option<u32>>,
    },
}

/// A rewritten region without names, good for all regions of its shape.
#[derive(Debug)]
pub(super) struct Template {
    /// Ops and types.
    pub(super) table: Table,
    /// Its steps.
    pub(super) steps: Vec<Made>,
    /// Where each root of the shape now comes from.
    pub(super) roots: Vec<From>,
    /// How it went.
    pub(super) outcome: Outcome,
}

/// How rewriting a region went.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) nodes: usize,
    pub(super) classes: usize,
    pub(super) iterations: usize,
    pub(super) stop: Stop,
    pub(super) matches: BTreeMap<&'static str, usize>,
    pub(super) before: Counts,
    pub(super) after: Counts,
}

/// A region's terms: each step's class, and that of each of its values.
struct Built {
    terms: Terms,
    steps: Vec<Option<Id>>,
    values: Vec<Id>,
}

/// Rewrites the shape of a region.
pub(super) fn rewrite(
    shape: &Shape,
    shared: &Table,
    groups: &[GroupData],
    machine: Machine<'_>,
    limits: Limits,
    rules: &[&'static Rule],
) -> Template {
    let mut table = shared.fork();
    table.classes = class_data(shape);
    table.groups = groups.to_vec();
    table.leaves = shape.leaves.iter().map(|l| l.out).collect();
    let before = Counts::of(shape.steps.iter().filter_map(|s| match s {
        Step::Leaf(_) => None,
        Step::Apply { op, .. } => Some(shared.op(*op)),
    }));
    let mut built = build(shape, table);
    let mut outcome = Outcome {
        before,
        ..Outcome::default()
    };
    if before.total() > 0 {
        saturate(&mut built.terms, limits, rules, &mut outcome);
    }
    outcome.nodes = built.terms.total_number_of_nodes();
    outcome.classes = built.terms.number_of_classes();
    let (steps, roots) = extract(shape, &built, machine, limits.any);
    let table = built.terms.analysis;
    outcome.after = Counts::of(steps.iter().filter_map(|s| match s {
        Made::Leaf(_) => None,
        Made::Apply { op, .. } => Some(table.op(*op)),
    }));
    Template {
        table,
        steps,
        roots,
        outcome,
    }
}

fn build(shape: &Shape, table: Table) -> Built {
    let mut terms = Terms::new(table);
    let mut values: Vec<Id> = Vec::new();
    let leaf = |terms: &mut Terms, i: u32| {
        let head = Head::Leaf(i);
        let operands = Vec::new();
        terms.add(Node { head, operands })
    };
    let mut steps = Vec::new();
    for step in &shape.steps {
        let Step::Apply { op, out, operands } = step else {
            steps.push(None);
            continue;
        };
        let arg = |a: &Arg| match *a {
            Arg::Leaf(i) => leaf(&mut terms, i),
            Arg::Value(i) => values[i as usize],
        };
        let operands = operands.iter().map(arg).collect();
        let head = Head::Op(*op, *out);
        let results = terms.analysis.outs(*out).len();
        let first = u32::try_from(values.len()).ok();
        let id = match results {
            1 => insert(&mut terms, Node { head, operands }, first),
            _ => terms.add(Node { head, operands }),
        };
        steps.push(Some(id));
        if results == 1 {
            values.push(id);
            continue;
        }
        for i in 0..results {
            let head = Head::Result(i as u32);
            let operands = vec![id];
            let origin = first.map(|f| f + i as u32);
            values.push(insert(&mut terms, Node { head, operands }, origin));
        }
    }
    Built {
        terms,
        steps,
        values,
    }
}

fn saturate(terms: &mut Terms, limits: Limits, rules: &[&'static Rule], outcome: &mut Outcome) {
    let rewrites: Vec<egg::Rewrite<Node, Table>> = rules
        .iter()
        .map(|&r| {
            egg::Rewrite::new(r.name, Runnable(r), Runnable(r))
                .expect("invariant: rules bind no variables")
        })
        .collect();
    let all = std::mem::replace(terms, Terms::new(Table::default()));
    let runner = Runner::<Node, Table>::new(Table::default())
        .with_egraph(all)
        .with_scheduler(SimpleScheduler)
        .with_iter_limit(limits.iterations)
        .with_node_limit(limits.nodes)
        .with_time_limit(Duration::MAX)
        .run(&rewrites);
    for iteration in &runner.iterations {
        for rule in rules {
            let name = egg::Symbol::from(rule.name);
            let found = iteration.applied.get(&name).copied().unwrap_or(0);
            if found > 0 {
                *outcome.matches.entry(rule.name).or_insert(0) += found;
            }
        }
    }
    outcome.iterations = runner.iterations.len();
    outcome.stop = match runner.stop_reason {
        Some(egg::StopReason::NodeLimit(_)) => Stop::Nodes,
        Some(egg::StopReason::IterationLimit(_)) => Stop::Iterations,
        _ => Stop::Saturated,
    };
    *terms = runner.egraph;
}

fn extract(
    shape: &Shape,
    built: &Built,
    machine: Machine<'_>,
    any: Option<u64>,
) -> (Vec<Made>, Vec<From>) {
    let terms = &built.terms;
    let mut ids: Vec<Id> = terms.classes().map(|c| c.id).collect();
    ids.sort_unstable();
    let index: HashMap<Id, usize> = ids.iter().enumerate().map(|(i, &id)| (id, i)).collect();
    let at = |id: Id| index[&terms.find(id)];
    let nodes: Vec<Vec<&Node>> = ids
        .iter()
        .map(|&id| {
            let mut nodes: Vec<&Node> = terms[id].nodes.iter().collect();
            nodes.sort_unstable();
            nodes
        })
        .collect();
    let prices = Prices::new(machine, &terms.analysis);
    let term = |node: &&Node| {
        let mut out = Term {
            operands: node.operands.iter().map(|&o| at(o)).collect(),
            us: 0.0,
            transfer: false,
        };
        if let Head::Op(op, results) = node.head {
            let op = terms.analysis.op(op);
            out.transfer = op.is_transfer();
            let of_input = node.operands.iter().any(|&o| {
                let input = |n: &Node| match n.head {
                    Head::Leaf(i) => shape.leaves[i as usize].input,
                    _ => false,
                };
                terms[o].nodes.iter().any(input)
            });
            out.us = prices.us(&Applied {
                op,
                operands: node
                    .operands
                    .iter()
                    .map(|&o| terms.analysis.out(terms[o].data.out))
                    .collect(),
                results: terms.analysis.outs(results),
                of_input,
            });
        }
        out
    };
    let mut classes = Classes {
        terms: nodes.iter().map(|n| n.iter().map(term).collect()).collect(),
        roots: Vec::new(),
        known: vec![None; ids.len()],
    };
    if let Some(seed) = any {
        classes.shuffle(seed);
    }
    let roots: Vec<usize> = (shape.roots.iter())
        .map(|&r| at(built.values[r as usize]))
        .collect();
    classes.roots.clone_from(&roots);
    // The terms that the region was made of: of equal ones the first, so that there is no cycle.
    let mut know = |id: Id, head: Head| {
        let c = at(id);
        let found = nodes[c].iter().position(|n| n.head == head);
        classes.known[c] = classes.known[c].or(found);
    };
    for i in 0..shape.leaves.len() {
        let head = Head::Leaf(i as u32);
        let operands = Vec::new();
        if let Some(id) = terms.lookup(Node { head, operands }) {
            know(id, head);
        }
    }
    let mut value = 0;
    for (step, id) in shape.steps.iter().zip(&built.steps) {
        let (Step::Apply { op, out, .. }, Some(id)) = (step, *id) else {
            continue;
        };
        know(id, Head::Op(*op, *out));
        let results = terms.analysis.outs(*out).len();
        for i in 0..results {
            if results > 1 {
                know(built.values[value + i], Head::Result(i as u32));
            }
        }
        value += results;
    }
    let chosen = classes.cheapest();
    let mut emit = Emit {
        classes: &classes,
        chosen: &chosen,
        nodes: &nodes,
        terms,
        ids: &ids,
        steps: Vec::new(),
        at: vec![None; ids.len()],
        leaf_made: vec![false; shape.leaves.len()],
        own: vec![false; shape.leaves.len()],
    };
    for step in &shape.steps {
        if let Step::Leaf(i) = step {
            emit.own[*i as usize] = true;
        }
    }
    // In the order of the region, each with what it needs just before it.
    let mut wanted = vec![false; ids.len()];
    for c in classes.needed(&chosen).unwrap_or_default() {
        wanted[c] = true;
    }
    for (step, id) in shape.steps.iter().zip(&built.steps) {
        match (step, id) {
            (Step::Leaf(i), _) => emit.leaf(*i),
            (_, Some(id)) if wanted[at(*id)] => {
                emit.class(at(*id));
            }
            _ => {}
        }
    }
    let roots = roots.iter().map(|&c| emit.class(c)).collect();
    (emit.steps, roots)
}

struct Emit<'a> {
    classes: &'a Classes,
    chosen: &'a Chosen,
    nodes: &'a [Vec<&'a Node>],
    terms: &'a Terms,
    ids: &'a [Id],
    steps: Vec<Made>,
    at: Vec<Option<From>>,
    leaf_made: Vec<bool>,
    own: Vec<bool>,
}

impl Emit<'_> {
    /// Defines a leaf of the region's own, once.
    fn leaf(&mut self, i: u32) {
        let made = std::mem::replace(&mut self.leaf_made[i as usize], true);
        if self.own[i as usize] && !made {
            self.steps.push(Made::Leaf(i));
        }
    }

    /// Makes a class with everything it needs.
    fn class(&mut self, c: usize) -> From {
        let mut stack = vec![(c, false)];
        while let Some((c, ready)) = stack.pop() {
            if self.at[c].is_some() {
                continue;
            }
            let t = self.chosen[c].expect("invariant: what is wanted is chosen");
            if !ready {
                stack.push((c, true));
                let operands = &self.classes.terms[c][t].operands;
                stack.extend(operands.iter().rev().map(|&o| (o, false)));
                continue;
            }
            let node = self.nodes[c][t];
            let operands: Vec<From> = (self.classes.terms[c][t].operands.iter())
                .map(|&o| self.at[o].expect("invariant: operands are made first"))
                .collect();
            let from = match node.head {
                Head::Leaf(i) => {
                    self.leaf(i);
                    From::Leaf(i)
                }
                Head::Result(i) => match operands[0] {
                    From::Made(step, _) => From::Made(step, i),
                    leaf => leaf,
                },
                Head::Op(op, out) => {
                    let origins = self.origins(c, self.terms.analysis.outs(out).len());
                    let step = self.steps.len() as u32;
                    self.steps.push(Made::Apply {
                        op,
                        out,
                        operands,
                        origins,
                    });
                    From::Made(step, 0)
                }
            };
            self.at[c] = Some(from);
        }
        self.at[c].expect("invariant: just made")
    }

    /// The numbers of the values that an op's results are named after.
    fn origins(&self, c: usize, results: usize) -> Vec<Option<u32>> {
        if results == 1 {
            return vec![self.terms[self.ids[c]].data.origin];
        }
        (0..results as u32)
            .map(|i| {
                let head = Head::Result(i);
                let operands = vec![self.ids[c]];
                let id = self.terms.lookup(Node { head, operands })?;
                self.terms[id].data.origin
            })
            .collect()
    }
}

impl Counts {
    fn of<'a>(ops: impl Iterator<Item = &'a Op>) -> Counts {
        let mut out = Counts::default();
        ops.for_each(|op| out.add(op));
        out
    }
}
