//! Emits the cheapest graph of a saturated skeleton as the steps of a template.

use super::analysis::EGraph;
use super::extract::{Choice, Extraction};
use super::language::{Head, Node};
use super::price::Machine;
use super::problem::{EClasses, extraction};
use super::report::Counts;
use super::saturate::SkeletonGraph;
use super::skeleton::{Skeleton, Step};
use super::template::{Form, Source, TemplateStep};

/// Returns the cheapest graph. If `ordered` and this graph has late sums, also returns the cheapest graph without them.
/// With a seed, the graph is random instead.
pub(super) fn emit(
    skeleton: &Skeleton,
    graph: &SkeletonGraph,
    machine: Machine<'_>,
    (seed, ordered): (Option<u64>, bool),
) -> (Form, Option<Form>) {
    let classes = EClasses::new(&graph.egraph);
    let mut problem = extraction(skeleton, graph, &classes, machine);
    if let Some(seed) = seed {
        problem.shuffle(seed);
    }
    let choice = problem.cheapest();
    let cheapest = form(skeleton, graph, &classes, &problem, &choice);
    if !ordered || !problem.is_late(&choice) {
        return (cheapest, None);
    }
    let problem = problem.without_late();
    let choice = problem.cheapest();
    let found = !problem.is_late(&choice);
    let ordered = found.then(|| form(skeleton, graph, &classes, &problem, &choice));
    (cheapest, ordered)
}

fn form(
    skeleton: &Skeleton,
    graph: &SkeletonGraph,
    classes: &EClasses<'_>,
    problem: &Extraction,
    choice: &Choice,
) -> Form {
    let mut needed = vec![false; classes.ids.len()];
    for c in problem.reachable_classes(choice).unwrap_or_default() {
        needed[c] = true;
    }
    let mut emitter = Emitter {
        skeleton,
        egraph: &graph.egraph,
        classes,
        problem,
        choice,
        steps: Vec::new(),
        sources: vec![None; classes.ids.len()],
        defined: vec![false; skeleton.leaves.len()],
    };
    // Keep the section's order: each step follows the steps that it needs.
    for (step, id) in skeleton.steps.iter().zip(&graph.steps) {
        match (step, id) {
            (Step::Leaf(i), _) => emitter.leaf(*i),
            (_, Some(id)) if needed[classes.at(*id)] => {
                emitter.class(classes.at(*id));
            }
            _ => {}
        }
    }
    let roots = problem.roots.iter().map(|&c| emitter.class(c)).collect();
    let steps = emitter.steps;
    let table = &graph.egraph.analysis;
    let ops = steps.iter().filter_map(|s| match s {
        TemplateStep::Leaf(_) => None,
        TemplateStep::Apply { op, .. } => Some(table.op(*op)),
    });
    Form {
        transfers: Counts::count_transfers(ops),
        us: problem.cost(choice).unwrap_or(f64::INFINITY),
        steps,
        roots,
    }
}

struct Emitter<'a> {
    skeleton: &'a Skeleton,
    egraph: &'a EGraph,
    classes: &'a EClasses<'a>,
    problem: &'a Extraction,
    choice: &'a Choice,
    steps: Vec<TemplateStep>,
    sources: Vec<Option<Source>>,
    defined: Vec<bool>,
}

impl Emitter<'_> {
    /// Defines a leaf from the section itself, once.
    fn leaf(&mut self, i: u32) {
        let own = self.skeleton.steps.contains(&Step::Leaf(i));
        let defined = std::mem::replace(&mut self.defined[i as usize], true);
        if own && !defined {
            self.steps.push(TemplateStep::Leaf(i));
        }
    }

    fn class(&mut self, c: usize) -> Source {
        let mut stack = vec![(c, false)];
        while let Some((c, ready)) = stack.pop() {
            if self.sources[c].is_some() {
                continue;
            }
            let t = self.choice[c].expect("invariant: needed e-classes have a choice");
            if !ready {
                stack.push((c, true));
                let operands = &self.problem.nodes[c][t].operands;
                stack.extend(operands.iter().rev().map(|&o| (o, false)));
                continue;
            }
            let node = self.classes.nodes[c][t];
            let operands: Vec<Source> = (self.problem.nodes[c][t].operands.iter())
                .map(|&o| self.sources[o].expect("invariant: operands are defined first"))
                .collect();
            let from = match node.head {
                Head::Leaf(i) => {
                    self.leaf(i);
                    Source::Leaf(i)
                }
                Head::Result(i) => match operands[0] {
                    Source::Step(step, _) => Source::Step(step, i),
                    leaf => leaf,
                },
                Head::Op(op, types) => {
                    let origins = self.origins(c, self.egraph.analysis.types(types).len());
                    let step = self.steps.len() as u32;
                    self.steps.push(TemplateStep::Apply {
                        op,
                        types,
                        operands,
                        origins,
                    });
                    Source::Step(step, 0)
                }
            };
            self.sources[c] = Some(from);
        }
        self.sources[c].expect("invariant: the e-class was defined above")
    }

    fn origins(&self, c: usize, results: usize) -> Vec<Option<u32>> {
        if results == 1 {
            return vec![self.egraph[self.classes.ids[c]].data.origin];
        }
        (0..results as u32)
            .map(|i| {
                let head = Head::Result(i);
                let operands = vec![self.classes.ids[c]];
                let id = self.egraph.lookup(Node { head, operands })?;
                self.egraph[id].data.origin
            })
            .collect()
    }
}
